/** What status shows of refusals, whatever the client's message is. */

import { assertEquals } from "@std/assert";
import {
  inWorld,
  type ScriptedSubscriber,
  WORLD,
} from "../../../tests/support/xds/scripted_subscriber.ts";
import type { ResourceKind } from "../../../proto/xds/resource.ts";
import { syncStateOf } from "./client_answers.ts";

const MODES = ["sotw", "delta"] as const;

function stateOf(client: ScriptedSubscriber, kind: ResourceKind) {
  return syncStateOf(client.statusOf(kind));
}

Deno.test("what was never sent is not synced", () => {
  const client = inWorld("sotw");
  client.ask("endpoints", ["nobody"]);
  assertEquals(stateOf(client, "endpoints"), "unsent");
});

Deno.test("a refusal that names nothing is one, and has a reason", () => {
  for (const mode of MODES) {
    const client = inWorld(mode);
    client.ask("cluster");
    client.nack("cluster", "resource index 0: bad");
    assertEquals(stateOf(client, "cluster"), "refused");
    const reason = "resource index 0: bad";
    assertEquals(client.state.resourceStatuses.get("cluster"), [
      { name: "a", has: undefined, wants: "1", state: "refused", reason },
      { name: "b", has: undefined, wants: "1", state: "refused", reason },
    ]);
    // What comes next is taken: nothing is refused any more.
    client.see({ ...WORLD, cluster: { a: "2", b: "2" } });
    client.ack("cluster");
    assertEquals(stateOf(client, "cluster"), "synced");
    assertEquals(client.statusOf("cluster").nacked, undefined);
  }
});

Deno.test("what the client had before is not refused with what is new", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  client.ack("cluster");
  client.see({ ...WORLD, cluster: { a: "1", b: "2" } });
  client.nack("cluster", "no");
  assertEquals(
    client.state.resourceStatuses.get("cluster")!.map(({ state }) => state),
    ["synced", "refused"],
  );
});

Deno.test("the reason stays until what was refused is replaced", () => {
  for (const mode of MODES) {
    const client = inWorld(mode);
    client.ask("cluster");
    client.nack("cluster", "a is bad");
    client.see({ ...WORLD, cluster: { a: "1", b: "2" } });
    client.ack("cluster");
    assertEquals(stateOf(client, "cluster"), "refused");
    assertEquals(client.statusOf("cluster").nacked?.message, "a is bad");
    assertEquals(
      client.state.resourceStatuses.get("cluster")![0]?.reason,
      "a is bad",
    );
    client.see({ ...WORLD, cluster: { a: "2", b: "2" } });
    client.ack("cluster");
    assertEquals(client.statusOf("cluster").nacked, undefined);
    assertEquals(stateOf(client, "cluster"), "synced");
  }
});

Deno.test("what was refused and is gone is refused no more", () => {
  for (const mode of MODES) {
    const client = inWorld(mode);
    client.ask("cluster");
    client.nack("cluster", "a is bad");
    client.see({ ...WORLD, cluster: { b: "1" } });
    client.settle();
    assertEquals(stateOf(client, "cluster"), "synced");
    assertEquals(client.statusOf("cluster").nacked, undefined);
  }
});
