import { assertEquals } from "@std/assert";
import { Prng } from "../../tests/support/prng.ts";
import { IdleLink, IdleList } from "./idle_list.ts";

Deno.test("the oldest is who was not heard of for longest, whatever happens", () => {
  const random = new Prng();
  const list = new IdleList<IdleLink>();
  const model: IdleLink[] = [];
  for (let nowMs = 1; nowMs < 2_000; nowMs++) {
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
    assertEquals(list.oldest === model[0], true, random.seedText);
  }
});
