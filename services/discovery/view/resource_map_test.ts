import { assert, assertEquals } from "@std/assert";
import { Prng } from "../../../tests/support/memory/prng.ts";
import {
  contentVersion,
  type Placed,
  ResourceMap,
  sumOf,
} from "./resource_map.ts";
import { changedNames } from "./view.ts";

function placed(name: string, version: string, service: string): Placed {
  const resource = {
    ...{ kind: "cluster", name, version } as const,
    any: new Uint8Array(0),
  };
  return { resource, service, order: Number(name.slice(1)) };
}

Deno.test("ResourceMap is a map, in the order of services and their claims", () => {
  const draft = ResourceMap.EMPTY.draft();
  for (const name of ["n3", "n1", "n2"]) {
    draft.set(name, placed(name, "1", "b"));
  }
  draft.set("n4", placed("n4", "1", "a"));
  const map = draft.finish(["a", "b", "c"]);
  assertEquals([...map.keys()], ["n4", "n1", "n2", "n3"]);
  assertEquals([...map].map(([name]) => name), [...map.keys()]);
  assertEquals([...map.values()].map(({ name }) => name), [...map.keys()]);
  const reported: string[] = [];
  map.forEach(({ version }, name) => reported.push(`${name} ${version}`));
  assertEquals(reported, ["n4 1", "n1 1", "n2 1", "n3 1"]);
  assertEquals(map.size, 4);
  assert(map.has("n1") && !map.has("n5"));
  assertEquals(map.get("n5"), undefined);
});

Deno.test("ResourceMap finds its order in steps, or at once for who asks before", () => {
  const draft = ResourceMap.EMPTY.draft();
  const services = Array.from({ length: 5_000 }, (_, index) => `s${index}`);
  for (const [index, service] of services.entries()) {
    draft.set(`n${index}`, placed(`n${index}`, "1", service));
  }
  const map = draft.finish(services);
  const steps = map.ordering();
  let count = 1;
  for (; count < 100; count++) assert(!steps.next().done);
  const names = [...map.keys()];
  assertEquals(names, services.map((_, index) => `n${index}`));
  while (!steps.next().done) count++;
  assert(count > 256, `${count} steps`);
  assertEquals([...map.keys()], names);
  assert(map.ordering().next().done);
});

Deno.test("ResourceMap stays as it is, and the same while nothing is said anew", () => {
  const draft = ResourceMap.EMPTY.draft();
  const one = placed("n1", "1", "a");
  draft.set("n1", one);
  const before = draft.finish(["a"]);
  draft.set("n1", placed("n1", "2", "a"));
  draft.set("n2", placed("n2", "1", "a"));
  assertEquals([before.size, before.get("n1")], [1, one.resource]);
  draft.set("n2", undefined);
  draft.set("n1", one);
  assert(draft.finish(["a"]) === before);
  draft.set("n1", undefined);
  const after = draft.finish([]);
  assertEquals([after.size, [...after.keys()]], [0, []]);
  assertEquals([...before.keys()], ["n1"]);
});

Deno.test("ResourceMap finds the difference to any other, as plain maps do", () => {
  const prng = Prng.fromEnvironment();
  const draft = ResourceMap.EMPTY.draft();
  const maps: ResourceMap[] = [ResourceMap.EMPTY];
  for (let step = 0; step < 50; step++) {
    for (let count = prng.below(20); count > 0; count--) {
      const name = `n${prng.below(100)}`;
      const version = `${prng.below(3)}`;
      draft.set(
        name,
        prng.below(3) === 0 ? undefined : placed(name, version, "a"),
      );
    }
    const map = draft.finish(["a"]);
    const other = maps[prng.below(maps.length)]!;
    const at = `SEED=${prng.seed}, step ${step}`;
    assertEquals(map.size, [...map].length, at);
    for (const [one, next] of [[other, map], [map, other]] as const) {
      const changed = [...changedNames(one, next)].sort();
      const plain = changedNames(new Map(one), new Map(next));
      assertEquals(changed, [...plain].sort(), at);
    }
    maps.push(map);
  }
});

Deno.test("the sum of what is in a map does not tell how it got there", () => {
  const [one, other] = [ResourceMap.EMPTY.draft(), ResourceMap.EMPTY.draft()];
  const put = (draft: typeof one, ...names: readonly string[]) => {
    for (const name of names) draft.set(name, placed(name, "1", "s"));
    return draft.finish(["s"]);
  };
  const first = put(one, "n1", "n2", "n3");
  const before = contentVersion(
    put(other, "n3", "n9", "n2", "n1").contentSum(),
  );
  other.set("n9", undefined);
  const second = other.finish(["s"]);
  const version = contentVersion(first.contentSum());
  assertEquals(contentVersion(second.contentSum()), version);
  assertEquals(contentVersion(sumOf(second.values())), version);
  assert(before !== version);
});
