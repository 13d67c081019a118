import { assertEquals } from "@std/assert";
import { Prng } from "../../../tests/support/memory/prng.ts";
import { type ListItem, UnorderedList } from "./unordered_list.ts";

class AdmittedConnection implements ListItem {
  place = -1;
}

Deno.test("a list is a set, whoever comes and goes", () => {
  const prng = Prng.fromEnvironment();
  const list = new UnorderedList<AdmittedConnection>();
  const model = new Set<AdmittedConnection>();
  const admittedConnections = Array.from(
    { length: 40 },
    () => new AdmittedConnection(),
  );
  for (let step = 0; step < 2_000; step++) {
    const admitted = prng.pick(admittedConnections);
    if (model.delete(admitted)) list.delete(admitted);
    else {
      model.add(admitted);
      list.add(admitted);
    }
    assertEquals(list.size, model.size, `SEED=${prng.seed}`);
    assertEquals(new Set(list), model, `SEED=${prng.seed}`);
  }
  list.delete(new AdmittedConnection());
  assertEquals(list.size, model.size);
});

Deno.test("whoever is at hand may leave, and each is at hand once", () => {
  const list = new UnorderedList<AdmittedConnection>();
  const admittedConnections = Array.from(
    { length: 10 },
    () => new AdmittedConnection(),
  );
  for (const admitted of admittedConnections) list.add(admitted);
  const seen: AdmittedConnection[] = [];
  for (const admitted of list) {
    seen.push(admitted);
    if (seen.length % 3 !== 0) list.delete(admitted);
  }
  assertEquals(new Set(seen), new Set(admittedConnections));
  assertEquals(seen.length, 10);
  assertEquals(list.size, 3);
});
