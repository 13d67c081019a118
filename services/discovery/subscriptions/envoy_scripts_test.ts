/** What Envoy 1.40 was seen to do, replayed. */

import { assert, assertEquals } from "@std/assert";
import { ScriptedSubscriber } from "../../../tests/support/xds/scripted_subscriber.ts";

const WORLD = {
  cluster: { a: "1", b: "1" },
  endpoints: { a: "1", b: "1" },
  listener: { a: "1", b: "1" },
} as const;

function envoy(mode: "sotw" | "delta"): ScriptedSubscriber {
  const client = new ScriptedSubscriber(mode);
  client.see(WORLD);
  client.ask("cluster");
  client.ask("endpoints", ["a", "b"]);
  client.ask("listener");
  client.settle();
  return client;
}

Deno.test("Envoy starts: clusters, then endpoints before it has answered about clusters, then listeners", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see(WORLD);
  assertEquals(client.ask("cluster"), ["cluster a=1 b=1"]);
  assertEquals(client.ask("endpoints", ["a", "b"]), ["endpoints a=1 b=1"]);
  assertEquals(client.ack("endpoints"), []);
  assertEquals(client.ack("cluster"), []);
  assertEquals(client.ask("listener"), ["listener a=1 b=1"]);
});

Deno.test("Envoy isNacked its answer about a changed cluster, and has its endpoints without it", () => {
  const client = envoy("sotw");
  const before = client.nonceOf("endpoints");
  const changed = { ...WORLD, cluster: { a: "2", b: "1" } };
  assertEquals(client.see(changed), ["cluster a=2 b=1", "endpoints a=1"]);
  // It repeats its request with the old nonce, which crosses the endpoints.
  assertEquals(client.ask("endpoints", ["a", "b"], { nonce: before }), []);
  assertEquals(client.statusOf("endpoints").staleRequests, 1);
  assertEquals(client.ack("endpoints"), []);
  // And repeats it with the new one: only the cluster that warms is sent.
  assertEquals(client.ack("endpoints"), ["endpoints a=1"]);
  assertEquals(client.settle(), []);
});

Deno.test("Envoy isNacked its answer about clusters for 15 s: endpoints go on, and clusters after 10 s", () => {
  const client = envoy("sotw");
  const changed = { ...WORLD, cluster: { a: "2", b: "1" } };
  client.see(changed);
  client.ack("endpoints");
  assertEquals(client.see({ ...changed, endpoints: { a: "2", b: "1" } }), [
    "endpoints a=2",
  ]);
  client.ack("endpoints");
  const more = { ...changed, cluster: { a: "2", b: "2" } };
  assertEquals(client.see({ ...more, endpoints: { a: "2", b: "1" } }), []);
  assertEquals(client.pass(10_000), ["cluster a=2 b=2", "endpoints a=2 b=1"]);
});

Deno.test("Envoy has a new cluster: its longer list comes with the old nonce", () => {
  const client = envoy("sotw");
  const more = {
    cluster: { a: "1", b: "1", c: "1" },
    endpoints: { a: "1", b: "1", c: "1" },
    listener: { a: "1", b: "1" },
  };
  assertEquals(client.see(more), ["cluster a=1 b=1 c=1"]);
  assertEquals(client.ask("endpoints", ["a", "b", "c"]), ["endpoints c=1"]);
  assertEquals(client.ack("endpoints"), []);
});

Deno.test("Envoy has a new cluster while endpoints are under way: its list is stale, and the next is not", () => {
  const client = envoy("sotw");
  const old = client.nonceOf("endpoints");
  const more = {
    cluster: { a: "1", b: "1", c: "1" },
    endpoints: { a: "2", b: "1", c: "1" },
    listener: { a: "1", b: "1" },
  };
  assertEquals(client.see(more), ["cluster a=1 b=1 c=1", "endpoints a=2"]);
  assertEquals(client.ask("endpoints", ["a", "b", "c"], { nonce: old }), []);
  assertEquals(client.ask("endpoints", ["a", "b", "c"]), ["endpoints c=1"]);
});

Deno.test("Envoy over Delta unsubscribes from a removed cluster's endpoints without a nonce", () => {
  const client = envoy("delta");
  const less = {
    cluster: { a: "1" },
    endpoints: { a: "1" },
    listener: { a: "1" },
  };
  assertEquals(client.see(less), ["listener -b"]);
  assertEquals(client.ack("listener"), ["cluster -b"]);
  assertEquals(client.ask("endpoints", [], { unsubscribe: ["b"] }), []);
  assertEquals(client.ack("cluster"), []);
});

Deno.test("Envoy comes back over SotW: the version kept, no nonce, all kinds at once", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see(WORLD);
  const version = { version: "of an earlier stream", nonce: "" };
  assertEquals(client.ask("cluster", [], version), ["cluster a=1 b=1"]);
  // Endpoints come after clusters, so whatever warms is served by this.
  assertEquals(client.ask("endpoints", ["a", "b"], version), [
    "endpoints a=1 b=1",
  ]);
  assertEquals(client.ask("listener", [], version), ["listener a=1 b=1"]);
  assertEquals(client.settle(), []);
});

Deno.test("Envoy reconnects over Delta: it sends what it has, and receives what differs", () => {
  const client = new ScriptedSubscriber("delta");
  client.see(WORLD);
  assertEquals(client.ask("cluster", [], { initial: { a: "1", b: "0" } }), [
    "cluster b=1",
  ]);
  const names = ["a", "b"];
  const initial = { a: "1", b: "1" };
  assertEquals(client.ask("endpoints", names, { initial }), [
    "endpoints a=1 b=1",
  ]);
  assertEquals(client.ask("listener", [], { initial }), ["listener"]);
});

Deno.test("Envoy cannot bind a listener: it counts as refused, and others go on", () => {
  const client = envoy("sotw");
  client.see({ ...WORLD, listener: { a: "1", b: "2" } });
  client.nack(
    "listener",
    "Error adding/updating listener(s) b: cannot bind '127.0.0.1:80': Address already in use\n",
  );
  const status = client.statusOf("listener");
  assertEquals([status.nackedNames, status.nacked?.names], [["b"], ["b"]]);
  assertEquals(client.see({ ...WORLD, listener: { a: "2", b: "2" } }), [
    "listener a=2 b=1",
  ]);
  client.ack("listener");
  assert(!client.statusOf("listener").isBehind);
});
