import { assertEquals } from "@std/assert";
import { Prng } from "../../../tests/support/memory/prng.ts";
import { type ListItem, UnorderedList } from "./unordered_list.ts";

class Guest implements ListItem {
  place = -1;
}

Deno.test("a list is a set, whoever comes and goes", () => {
  const prng = Prng.fromEnvironment();
  const list = new UnorderedList<Guest>();
  const model = new Set<Guest>();
  const guests = Array.from({ length: 40 }, () => new Guest());
  for (let step = 0; step < 2_000; step++) {
    const guest = prng.pick(guests);
    if (model.delete(guest)) list.delete(guest);
    else {
      model.add(guest);
      list.add(guest);
    }
    assertEquals(list.size, model.size, `SEED=${prng.seed}`);
    assertEquals(new Set(list), model, `SEED=${prng.seed}`);
  }
  list.delete(new Guest());
  assertEquals(list.size, model.size);
});

Deno.test("whoever is at hand may leave, and each is at hand once", () => {
  const list = new UnorderedList<Guest>();
  const guests = Array.from({ length: 10 }, () => new Guest());
  for (const guest of guests) list.add(guest);
  const seen: Guest[] = [];
  for (const guest of list) {
    seen.push(guest);
    if (seen.length % 3 !== 0) list.delete(guest);
  }
  assertEquals(new Set(seen), new Set(guests));
  assertEquals(seen.length, 10);
  assertEquals(list.size, 3);
});
