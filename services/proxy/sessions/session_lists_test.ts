import { assertEquals, assertStrictEquals } from "@std/assert";
import { forAll } from "../../../tests/support/memory/prng.ts";
import { IdleLink, IdleList } from "./session_lists.ts";

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

Deno.test("whoever is at hand may leave, and each is at hand once", () => {
  const list = new IdleList<IdleLink>();
  const all = Array.from({ length: 10 }, () => new IdleLink());
  for (const item of all) list.add(item, 0);
  const seen: IdleLink[] = [];
  for (const item of list) {
    seen.push(item);
    if (seen.length % 3 !== 0) list.delete(item);
  }
  assertEquals(seen, all);
  assertEquals(list.size, 3);
});
