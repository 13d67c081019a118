import { assert, assertEquals } from "@std/assert";
import { Prng } from "../../../tests/support/memory/prng.ts";
import type { Resource } from "../../../proto/xds/resource.ts";
import { contentVersion, ResourceMap } from "./resource_map.ts";
import { changedNames } from "./view.ts";

function resource(name: string, version: string): Resource {
  return { kind: "cluster", name, version, any: new Uint8Array(0) };
}

Deno.test("ResourceMap is a map, in an order that its names alone decide", () => {
  const names = ["n3", "n1", "n2", "n4"];
  const [map, other] = [names, names.toReversed()].map((names) => {
    const draft = ResourceMap.EMPTY.draft();
    for (const name of names) draft.set(name, resource(name, "1"));
    return draft.finish();
  });
  assertEquals([...map!.keys()], [...other!.keys()]);
  assertEquals([...map!.keys()].sort(), names.toSorted());
  assertEquals([...map!].map(([name]) => name), [...map!.keys()]);
  assertEquals([...map!.values()].map(({ name }) => name), [...map!.keys()]);
  const reported: string[] = [];
  map!.forEach(({ version }, name) => reported.push(`${name} ${version}`));
  assertEquals(reported, [...map!.keys()].map((name) => `${name} 1`));
  assertEquals(map!.size, 4);
  assert(map!.has("n1") && !map!.has("n5"));
  assertEquals(map!.get("n5"), undefined);
});

Deno.test("ResourceMap stays as it is, and the same while nothing is said anew", () => {
  const draft = ResourceMap.EMPTY.draft();
  const one = resource("n1", "1");
  draft.set("n1", one);
  const before = draft.finish();
  draft.set("n1", resource("n1", "2"));
  draft.set("n2", resource("n2", "1"));
  assertEquals([before.size, before.get("n1")], [1, one]);
  draft.set("n2", undefined);
  draft.set("n1", one);
  assertEquals(changedNames(before, draft.finish()).size, 0);
  assert(draft.finish() === draft.finish());
  draft.set("n1", undefined);
  const after = draft.finish();
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
        prng.below(3) === 0 ? undefined : resource(name, version),
      );
    }
    const map = draft.finish();
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

Deno.test("the version of a map does not tell how it got there", () => {
  const [one, other] = [ResourceMap.EMPTY.draft(), ResourceMap.EMPTY.draft()];
  const put = (draft: typeof one, ...names: readonly string[]) => {
    for (const name of names) draft.set(name, resource(name, "1"));
    return draft.finish();
  };
  const first = put(one, "n1", "n2", "n3");
  const before = put(other, "n3", "n9", "n2", "n1");
  other.set("n9", undefined);
  const second = other.finish();
  assertEquals(second.contentVersion, first.contentVersion);
  assertEquals(first.contentVersion.length, 32);
  assert(before.contentVersion !== first.contentVersion);
  const [plain, turned] = [[...first.values()], [...first.values()].reverse()];
  assertEquals(contentVersion(plain), contentVersion(turned));
});
