import { assertEquals, assertStrictEquals } from "@std/assert";
import { forAll } from "../../../tests/support/memory/prng.ts";
import { IdleLink, IdleList } from "./idle_list.ts";

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
