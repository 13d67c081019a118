import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { Families, FAMILY_LOOK_MS, familyOf } from "./families.ts";

Deno.test("addresses beyond this machine and its links are of a family", () => {
  const families = [
    ["10.0.0.1", "fd00::1", "::ffff:10.0.0.1"].map(familyOf),
    ["127.0.0.1", "169.254.1.1", "::1", "fe80::1", "a.example"].map(familyOf),
  ];
  const none = undefined;
  assertEquals(families, [[4, 6, 4], [none, none, none, none, none]]);
});

// deno-fmt-ignore: the columns are the point.
const MACHINES: readonly [readonly string[], 4 | 6 | undefined][] = [
  [["127.0.0.1", "::1", "10.0.0.7", "fe80::7"],            6],
  [["127.0.0.1", "::1", "fd00::7"],                        4],
  [["127.0.0.1", "::1", "10.0.0.7", "2001:db8::7"],        undefined],
  [["127.0.0.1", "::1"],                                   undefined],
  [[],                                                     undefined],
];

for (const [addresses, lacking] of MACHINES) {
  Deno.test(`a machine with ${addresses} lacks ${lacking ?? "nothing"}`, () => {
    assertEquals(
      new Families(new FakeTimers(), () => addresses).lacking,
      lacking,
    );
  });
}

Deno.test("an address that comes later is seen", () => {
  const timers = new FakeTimers();
  const addresses = ["10.0.0.7"];
  const families = new Families(timers, () => addresses);
  assertEquals(families.lacking, 6);
  addresses.push("fd00::7");
  assertEquals(families.lacking, 6);
  timers.advance(FAMILY_LOOK_MS);
  assertEquals(families.lacking, undefined);
});

Deno.test("this machine can be asked", () => {
  const { lacking } = new Families(new FakeTimers());
  assertEquals([4, 6, undefined].includes(lacking), true);
});
