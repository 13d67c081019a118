/** Versions that people compare: who should have the same is shown the same. */

import { assert, assertEquals, assertNotEquals } from "@std/assert";
import {
  inWorld,
  type Parts,
  ScriptedSubscriber,
  WORLD,
} from "../../../tests/support/xds/scripted_subscriber.ts";

const MODES = ["sotw", "delta"] as const;
const LATER = { ...WORLD, endpoints: { a: "2", b: "1" } };

/** The version that a client was sent last of endpoints of `names`. */
function versionAfter(
  mode: typeof MODES[number],
  names: readonly string[],
  ...views: readonly Parts[]
): string {
  const client = new ScriptedSubscriber(mode);
  client.see(WORLD);
  client.ask("endpoints", names);
  client.settle();
  for (const view of views) {
    client.see(view);
    client.settle();
  }
  return client.versionOf("endpoints");
}

Deno.test("two clients that have the same are sent the same version, however they came there", () => {
  const expected = versionAfter("sotw", ["a", "b"], LATER);
  for (const mode of MODES) {
    assertEquals(versionAfter(mode, ["b", "a"], LATER), expected);
    const gone = { ...WORLD, endpoints: { b: "1" } };
    assertEquals(versionAfter(mode, ["a", "b"], gone, LATER), expected);
  }
});

Deno.test("a change of what a client does not ask for is none of its version", () => {
  for (const mode of MODES) {
    const version = versionAfter(mode, ["b"]);
    assertEquals(versionAfter(mode, ["b"], LATER), version);
    assertNotEquals(versionAfter(mode, ["a"], LATER), version);
  }
});

Deno.test("a removal leaves the version of what is left", () => {
  const left = { ...WORLD, cluster: { b: "1" } };
  const versions = MODES.flatMap((mode) => {
    const client = inWorld(mode);
    client.ask("cluster");
    client.settle();
    client.see(left);
    client.settle();
    const late = new ScriptedSubscriber(mode);
    late.see(left);
    late.ask("cluster");
    return [client, late].map((one) => one.versionOf("cluster"));
  });
  assertEquals(new Set(versions).size, 1);
  assert(/^[0-9a-f]{32}$/.test(versions[0]!));
});

Deno.test("what is kept or stood in for is not taken for what there is", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  client.settle();
  client.see({ ...WORLD, cluster: { a: "2", b: "1" } });
  const refused = client.versionOf("cluster");
  client.nack("cluster", "a is bad");
  client.see({ ...WORLD, cluster: { a: "2", b: "2" } });
  assertNotEquals(client.versionOf("cluster"), refused);
  const other = inWorld("sotw");
  other.see({ ...WORLD, cluster: { a: "2", b: "2" } });
  other.ask("cluster");
  assertNotEquals(client.versionOf("cluster"), other.versionOf("cluster"));
});
