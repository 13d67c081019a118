import { assertEquals } from "@std/assert";
import { Prng } from "../../../tests/support/memory/prng.ts";
import { type Member, Roster } from "./roster.ts";

class Guest implements Member {
  place = -1;
}

Deno.test("a roster is a set, whoever comes and goes", () => {
  const prng = Prng.fromEnvironment();
  const roster = new Roster<Guest>();
  const model = new Set<Guest>();
  const guests = Array.from({ length: 40 }, () => new Guest());
  for (let step = 0; step < 2_000; step++) {
    const guest = prng.pick(guests);
    if (model.delete(guest)) roster.delete(guest);
    else {
      model.add(guest);
      roster.add(guest);
    }
    assertEquals(roster.size, model.size, `SEED=${prng.seed}`);
    assertEquals(new Set(roster), model, `SEED=${prng.seed}`);
  }
  roster.delete(new Guest());
  assertEquals(roster.size, model.size);
});

Deno.test("whoever is at hand may leave, and each is at hand once", () => {
  const roster = new Roster<Guest>();
  const guests = Array.from({ length: 10 }, () => new Guest());
  for (const guest of guests) roster.add(guest);
  const seen: Guest[] = [];
  for (const guest of roster) {
    seen.push(guest);
    if (seen.length % 3 !== 0) roster.delete(guest);
  }
  assertEquals(new Set(seen), new Set(guests));
  assertEquals(seen.length, 10);
  assertEquals(roster.size, 3);
});
