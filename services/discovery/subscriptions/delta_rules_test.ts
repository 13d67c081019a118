/** The rules of Delta, in the order of the protocol's text. */

import { assertEquals } from "@std/assert";
import {
  inWorld,
  ScriptedSubscriber,
  WORLD,
} from "../../../tests/support/xds/scripted_subscriber.ts";
import { PLAIN_PROFILE } from "./kind_subscription.ts";

Deno.test("Delta: nonces pair ACK and NACK with responses", () => {
  const client = inWorld("delta");
  client.ask("cluster");
  client.ack("cluster");
  assertEquals(client.statusOf("cluster").acked?.nonce, "1");
  client.see({ ...WORLD, cluster: { a: "2", b: "1" } });
  client.nack("cluster", "no");
  assertEquals(client.statusOf("cluster").nacked?.nonce, "2");
});

Deno.test("Delta: a nonce is not used to reject a request: names on a stale one count", () => {
  const client = inWorld("delta");
  client.ask("endpoints", ["a"]);
  client.settle();
  client.see({ ...WORLD, endpoints: { a: "2", b: "1" } });
  assertEquals(client.ask("endpoints", ["b"], { nonce: "1" }), []);
  assertEquals(client.statusOf("endpoints").staleRequests, 1);
  assertEquals(client.ack("endpoints"), ["endpoints b=1"]);
});

Deno.test("Delta: names that ride on an ACK count", () => {
  const client = inWorld("delta");
  client.ask("endpoints", ["a"]);
  const nonce = client.nonceOf("endpoints");
  assertEquals(client.ask("endpoints", ["b"], { nonce }), ["endpoints b=1"]);
  assertEquals(client.statusOf("endpoints").acks, 1);
});

Deno.test("Delta: a spontaneous request omits the nonce and answers nothing", () => {
  const client = inWorld("delta");
  client.ask("endpoints", ["a"]);
  assertEquals(client.ask("endpoints", ["b"]), []);
  assertEquals(client.statusOf("endpoints").acks, 0);
  assertEquals(client.ack("endpoints"), ["endpoints b=1"]);
});

Deno.test("Delta: subscribing to a name that is subscribed to sends it again", () => {
  const client = inWorld("delta");
  client.ask("endpoints", ["a", "b"]);
  client.settle();
  assertEquals(client.ask("endpoints", ["a"]), ["endpoints a=1"]);
});

Deno.test("Delta: an unknown name is answered with removed_resources, and sent when it appears", () => {
  const client = inWorld("delta");
  assertEquals(client.ask("endpoints", ["a", "new"]), ["endpoints a=1 -new"]);
  client.settle();
  assertEquals(
    client.see({ ...WORLD, endpoints: { a: "1", b: "1", new: "1" } }),
    ["endpoints new=1"],
  );
});

Deno.test("Delta: unsubscribing needs no answer", () => {
  const client = inWorld("delta");
  client.ask("endpoints", ["a", "b"]);
  client.settle();
  assertEquals(client.ask("endpoints", [], { unsubscribe: ["a"] }), []);
  assertEquals(client.see({ ...WORLD, endpoints: { a: "2", b: "2" } }), [
    "endpoints b=2",
  ]);
});

Deno.test("Delta: unsubscribing what nobody subscribed to is ignored", () => {
  const client = inWorld("delta");
  client.ask("endpoints", ["a"]);
  client.settle();
  assertEquals(client.ask("endpoints", [], { unsubscribe: ["x", "*"] }), []);
  client.ask("cluster");
  client.settle();
  assertEquals(client.ask("cluster", [], { unsubscribe: ["a"] }), []);
});

Deno.test("Delta: unsubscribing a name beside a wildcard is answered with it, or as removed", () => {
  const client = inWorld("delta");
  client.ask("cluster", ["*", "a", "new"]);
  client.settle();
  assertEquals(client.ask("cluster", [], { unsubscribe: ["a", "new"] }), [
    "cluster a=1 -new",
  ]);
});

Deno.test("Delta: a first request with initial_resource_versions is sent the differences", () => {
  const client = inWorld("delta");
  assertEquals(
    client.ask("cluster", [], { initial: { a: "0", b: "1" } }),
    ["cluster a=1"],
  );
  assertEquals(client.ask("route", ["r"], { initial: { r: "0" } }), [
    "route r=1",
  ]);
});

Deno.test("Delta: names in initial_resource_versions that exist no longer are removed", () => {
  const client = inWorld("delta");
  assertEquals(
    client.ask("cluster", [], { initial: { a: "1", b: "1", old: "7" } }),
    ["cluster -old"],
  );
  assertEquals(
    client.ask("route", ["r", "old"], { initial: { r: "1", old: "7" } }),
    ["route -old"],
  );
});

Deno.test("Delta: when nothing differs, all of a kind is answered with nothing, and names not at all", () => {
  const client = inWorld("delta");
  assertEquals(client.ask("cluster", [], { initial: { a: "1", b: "1" } }), [
    "cluster",
  ]);
  assertEquals(client.ask("listener", ["*"], { initial: { a: "1" } }), [
    "listener",
  ]);
  assertEquals(client.ask("route", ["r"], { initial: { r: "1" } }), []);
});

Deno.test("Delta: endpoints are sent in full to who comes back: a cluster may wait for them", () => {
  const client = inWorld("delta");
  assertEquals(
    client.ask("endpoints", ["a", "old"], { initial: { a: "1", old: "1" } }),
    ["endpoints a=1 -old"],
  );
});

Deno.test("Delta: a client that keeps its endpoints is sent those that differ", () => {
  const client = inWorld("delta");
  client.state.profile = { ...PLAIN_PROFILE, keepsEndpoints: true };
  const initial = { a: "1", b: "0", old: "1" };
  assertEquals(client.ask("endpoints", ["a", "b", "old"], { initial }), [
    "endpoints b=1 -old",
  ]);
});

Deno.test("Delta: initial_resource_versions count in a first request only", () => {
  const client = inWorld("delta");
  client.ask("endpoints", ["a"]);
  client.settle();
  assertEquals(client.ask("endpoints", ["b"], { initial: { b: "1" } }), [
    "endpoints b=1",
  ]);
});

Deno.test("Delta: an empty world is sent to who asks for all of it", () => {
  const client = new ScriptedSubscriber("delta");
  client.see({});
  assertEquals(client.ask("cluster"), ["cluster"]);
  assertEquals(client.ask("endpoints"), []);
});

Deno.test("Delta: a NACK is of the response, and names the resource when it can", () => {
  const client = inWorld("delta");
  client.ask("endpoints", ["a", "b"]);
  client.nack("endpoints", "bad: a: no such thing");
  assertEquals(client.statusOf("endpoints").nackedNames, ["a"]);
  assertEquals(client.see({ ...WORLD, endpoints: { a: "1", b: "2" } }), [
    "endpoints b=2",
  ]);
});

Deno.test("Delta: what is gone is sent by its name, once", () => {
  const client = inWorld("delta");
  client.ask("listener");
  client.settle();
  assertEquals(client.see({ ...WORLD, listener: {} }), ["listener -a"]);
  client.settle();
  assertEquals(client.see({ ...WORLD, cluster: {}, listener: {} }), []);
});

Deno.test("Delta: nothing is sent of what came and went unseen", () => {
  const client = inWorld("delta");
  client.ask("cluster");
  client.see({ ...WORLD, cluster: { a: "1", b: "1", c: "1" } });
  client.see(WORLD);
  assertEquals(client.ack("cluster"), []);
});

Deno.test("Delta wildcard: a first request without names is all, and names come beside it", () => {
  const client = inWorld("delta");
  assertEquals(client.ask("cluster"), ["cluster a=1 b=1"]);
  client.settle();
  assertEquals(client.ask("cluster", ["a"]), ["cluster a=1"]);
  client.settle();
  assertEquals(client.ask("cluster", [], { unsubscribe: ["*"] }), []);
  assertEquals(client.see({ ...WORLD, cluster: { a: "2", b: "2" } }), [
    "cluster a=2",
  ]);
  client.settle();
  assertEquals(client.ask("cluster", [], { unsubscribe: ["a"] }), []);
  assertEquals(client.see({ ...WORLD, cluster: { a: "3", b: "3" } }), []);
});

Deno.test("Delta wildcard: it is sent again to who asks for it again", () => {
  const client = inWorld("delta");
  client.ask("cluster", ["*"]);
  client.settle();
  assertEquals(client.ask("cluster", ["*"]), ["cluster a=1 b=1"]);
});

Deno.test("Delta wildcard: for EDS a first request without names is nothing, and `*` does not exist", () => {
  const client = inWorld("delta");
  assertEquals(client.ask("endpoints"), []);
  assertEquals(client.ask("endpoints", ["*"]), ["endpoints -*"]);
});

Deno.test("Delta wildcard: a first request that only unsubscribes is no wildcard", () => {
  const client = inWorld("delta");
  assertEquals(client.ask("cluster", [], { unsubscribe: ["a"] }), []);
  assertEquals(client.statusOf("cluster").isWildcard, false);
});
