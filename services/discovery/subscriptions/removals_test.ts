/** Make before break: what is gone stays until nothing leads to it. */

import { assert, assertEquals } from "@std/assert";
import { ScriptedSubscriber } from "../../../tests/support/xds/scripted_subscriber.ts";
import { REMOVAL_GRACE_MS } from "./removals.ts";

const BEFORE = {
  cluster: { a: "1", b: "1" },
  endpoints: { a: "1", b: "1" },
  listener: { a: "1", b: "1" },
  route: { a: "1", b: "1" },
} as const;

const AFTER = {
  cluster: { a: "1" },
  endpoints: { a: "1" },
  listener: { a: "1" },
  route: { a: "1" },
} as const;

function settled(mode: "sotw" | "delta"): ScriptedSubscriber {
  const client = new ScriptedSubscriber(mode);
  client.see(BEFORE);
  client.ask("cluster");
  client.ask("endpoints", ["a", "b"]);
  client.ask("listener");
  client.ask("route", ["a", "b"]);
  client.settle();
  return client;
}

Deno.test("SotW: a cluster goes when listeners without it are acknowledged", () => {
  const client = settled("sotw");
  assertEquals(client.see(AFTER), ["listener a=1"]);
  assertEquals(client.ack("listener"), ["cluster a=1"]);
  assertEquals(client.ack("cluster"), []);
});

Deno.test("Delta: routes go after listeners, clusters after both, endpoints last", () => {
  const client = settled("delta");
  assertEquals(client.see(AFTER), ["listener -b"]);
  assertEquals(client.ack("listener"), ["route -b"]);
  assertEquals(client.ack("route"), ["cluster -b"]);
  assertEquals(client.ack("cluster"), ["endpoints -b"]);
  assertEquals(client.ack("endpoints"), []);
});

Deno.test("Delta: endpoints that the client has unsubscribed from meanwhile are not sent as gone", () => {
  const client = settled("delta");
  client.see(AFTER);
  client.ack("listener");
  client.ack("route");
  assertEquals(client.ask("endpoints", [], { unsubscribe: ["b"] }), []);
  assertEquals(client.ack("cluster"), []);
});

Deno.test("a cluster goes at once when nothing else changed", () => {
  const client = settled("sotw");
  assertEquals(client.see({ ...BEFORE, cluster: { a: "1" } }), ["cluster a=1"]);
});

Deno.test("a cluster goes at once where nobody asked for listeners or routes", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = new ScriptedSubscriber(mode);
    client.see(BEFORE);
    client.ask("cluster");
    client.settle();
    assertEquals(client.see(AFTER), [
      mode === "sotw" ? "cluster a=1" : "cluster -b",
    ]);
  }
});

Deno.test("what is added goes at once, with all that is kept", () => {
  const client = settled("sotw");
  const renamed = {
    cluster: { a: "1", c: "1" },
    endpoints: { a: "1", c: "1" },
    listener: { a: "1", c: "1" },
    route: { a: "1", c: "1" },
  };
  assertEquals(client.see(renamed), [
    "cluster a=1 b=1 c=1",
    "listener a=1 c=1",
  ]);
  assertEquals(client.ask("endpoints", ["a", "b", "c"]), ["endpoints c=1"]);
  client.ack("cluster");
  assertEquals(client.ack("listener"), ["cluster a=1 c=1"]);
});

Deno.test("a client that refuses listeners keeps the cluster for 30 s", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = settled(mode);
    client.see(AFTER);
    assertEquals(client.nack("listener", "no"), []);
    assertEquals(client.state.dueMs, REMOVAL_GRACE_MS);
    assertEquals(client.pass(REMOVAL_GRACE_MS - 1), []);
    const gone = client.pass(1);
    assertEquals(gone[0], mode === "sotw" ? "cluster a=1" : "cluster -b");
  }
});

Deno.test("a client that does not answer keeps the cluster for 30 s", () => {
  const client = settled("sotw");
  client.see(AFTER);
  client.pass(REMOVAL_GRACE_MS - 1);
  assert(client.statusOf("cluster").isBehind);
  assertEquals(client.pass(1), ["cluster a=1"]);
});

Deno.test("later changes of listeners do not keep a cluster longer", () => {
  const client = settled("sotw");
  assertEquals(client.see(AFTER), ["listener a=1"]);
  client.see({ ...AFTER, listener: { a: "2" } });
  // The answer is about the first change, and the second one waits for it.
  assertEquals(client.ack("listener"), ["cluster a=1", "listener a=2"]);
});

Deno.test("a cluster that comes back was never gone", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = new ScriptedSubscriber(mode);
    client.see(BEFORE);
    client.ask("cluster");
    client.ask("listener");
    client.settle();
    client.see(AFTER);
    client.see(BEFORE);
    const sent = client.ack("listener");
    assertEquals(
      sent.at(-1),
      mode === "sotw" ? "listener a=1 b=1" : "listener b=1",
    );
    client.settle();
    assertEquals(client.pass(REMOVAL_GRACE_MS), []);
    for (const { kind, body } of client.received.slice(2)) {
      if (kind !== "cluster") continue;
      assertEquals(body.removed, []);
      if (mode === "sotw") assertEquals(body.resources.length, 2);
    }
  }
});

Deno.test("who asks for a kept cluster by name gets it, and its endpoints", () => {
  const client = settled("delta");
  client.see(AFTER);
  assertEquals(
    client.ask("cluster", ["b"]),
    ["cluster b=1", "endpoints b=1"],
  );
});

Deno.test("Pilot: a cluster that is removed with its listener is in the last but one CDS", () => {
  const client = settled("sotw");
  client.see({ ...AFTER, cluster: { a: "2" } });
  const cluster = client.received.findLast(({ kind }) => kind === "cluster")!;
  assertEquals(cluster.body.resources.map(({ name }) => name).sort(), [
    "a",
    "b",
  ]);
});
