import { assertEquals } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  isNewer,
  ObjectCopy,
  objectKeyOf,
  OBJECTS_REMOVED_MAX,
} from "./object_copy.ts";
import type { KubernetesObject } from "./objects.ts";

function object(name: string, version: number | string): KubernetesObject {
  return { metadata: { name, resourceVersion: `${version}` } };
}

Deno.test("versions are compared as numbers, or only told apart", () => {
  assertEquals(isNewer("10", "9"), true);
  assertEquals(isNewer("9", "10"), false);
  assertEquals(isNewer("9", "9"), false);
  assertEquals(isNewer("18446744073709551616", "18446744073709551615"), true);
  assertEquals(isNewer("b", "a"), true);
  assertEquals(isNewer("a", "a"), false);
});

Deno.test("objects of two namespaces do not meet", () => {
  const key = (namespace: string) =>
    objectKeyOf({ metadata: { name: "a", namespace } });
  assertEquals([key("x"), key("y"), objectKeyOf(object("a", 1))], [
    "x/a",
    "y/a",
    "a",
  ]);
});

Deno.test("a list that is the same is no news", () => {
  const copy = new ObjectCopy();
  copy.replace([object("a", 1), object("b", 2)]);
  assertEquals(copy.replace([object("b", 2), object("a", 1)]), []);
});

Deno.test("the memory of what was removed has an end", () => {
  const copy = new ObjectCopy();
  for (let i = 0; i <= OBJECTS_REMOVED_MAX; i++) {
    copy.put(object(`n${i}`, 10));
    copy.remove(object(`n${i}`, 20));
  }
  assertEquals(copy.put(object("n1", 15)), undefined);
  assertEquals(copy.put(object("n0", 15))?.type, "added");
});

Deno.test("however events are doubled, delayed and mixed with lists, the copy ends equal", () => {
  return forAll(200, (random) => {
    const copy = new ObjectCopy();
    const reported = new Set<string>();
    const truth = new Map<string, KubernetesObject>();
    const events: { isRemoval: boolean; object: KubernetesObject }[] = [];
    for (let version = 1; version <= 40; version++) {
      const name = `n${random.below(5)}`;
      const isRemoval = truth.has(name) && random.below(3) === 0;
      const next = object(name, version);
      if (isRemoval) truth.delete(name);
      else truth.set(name, next);
      events.push({ isRemoval, object: next });
      // Twice, or an older one once more.
      if (random.below(2) === 0) {
        events.push(events[random.below(events.length)]!);
      }
    }
    const note = (change: { type: string; object: KubernetesObject }) => {
      const name = objectKeyOf(change.object);
      if (change.type === "removed") reported.delete(name);
      else reported.add(name);
    };
    for (const { isRemoval, object } of events) {
      const change = isRemoval ? copy.remove(object) : copy.put(object);
      if (change !== undefined) note(change);
    }
    assertEquals(new Map(copy.objects), truth);
    assertEquals(reported, new Set(truth.keys()));
    const list = [...truth.values()].filter(() => random.below(2) === 0);
    for (const change of copy.replace(list)) note(change);
    assertEquals(reported, new Set(list.map(objectKeyOf)));
  });
});
