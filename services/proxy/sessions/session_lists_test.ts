import { assertEquals, assertStrictEquals } from "@std/assert";
import { forAll, Prng } from "../../../tests/support/memory/prng.ts";
import {
  IdleLink,
  IdleList,
  type ListItem,
  UnorderedList,
} from "./session_lists.ts";

Deno.test("the oldest is the one that was idle for longest, whatever happens", async () => {
  await forAll(20, (random) => {
    const list = new IdleList<IdleLink>();
    const model: IdleLink[] = [];
    for (let nowMs = 1; nowMs < 200; nowMs++) {
      const index = random.below(model.length + 1);
      const item = model[index];
      if (item === undefined) {
        const added = new IdleLink();
        list.add(added, nowMs);
        model.push(added);
      } else {
        model.splice(index, 1);
        if (random.below(2) === 0) list.delete(item);
        else {
          list.touch(item, nowMs);
          model.push(item);
        }
      }
      assertEquals(list.size, model.length);
      assertStrictEquals(list.oldest, model[0]);
      assertEquals(
        [...list].map(({ lastHeardMs }) => lastHeardMs),
        model.map(({ lastHeardMs }) => lastHeardMs),
      );
    }
  });
});

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
