/** The rules of the state of the world, in the order of the protocol's text. */

import { assert, assertEquals, assertNotEquals } from "@std/assert";
import {
  inWorld,
  ScriptedSubscriber,
  WORLD,
} from "../../../tests/support/xds/scripted_subscriber.ts";

/** A client that has taken all of a small world. */
function settled(): ScriptedSubscriber {
  const client = new ScriptedSubscriber("sotw");
  client.see({
    cluster: { a: "1", b: "1" },
    endpoints: { a: "1", b: "1" },
    listener: { a: "1" },
    route: { r: "1" },
  });
  client.ask("cluster");
  client.ask("endpoints", ["a", "b"]);
  client.ask("listener");
  client.ask("route", ["r"]);
  client.settle();
  return client;
}

Deno.test("(a) node is only guaranteed on the stream's first request: none is asked for", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ cluster: { a: "1" } });
  assertEquals(client.ask("cluster"), ["cluster a=1"]);
});

Deno.test("(b) each type is its own sub-stream with own version and nonce", () => {
  const client = settled();
  const kinds = ["cluster", "endpoints", "listener", "route"] as const;
  assertEquals(new Set(kinds.map((kind) => client.nonceOf(kind))).size, 4);
  assertEquals(new Set(kinds.map((kind) => client.versionOf(kind))).size, 4);
  // A nonce of one type is stale in another.
  const nonce = client.nonceOf("cluster");
  assertEquals(client.ask("endpoints", ["a"], { nonce }), []);
  assertEquals(client.statusOf("endpoints").nameCount, 2);
});

Deno.test("(c) a version survives streams, a nonce does not", () => {
  const world = { cluster: { a: "1" }, endpoints: { a: "1" } };
  const versions = [1, 2].map(() => {
    const client = new ScriptedSubscriber("sotw");
    client.see(world);
    client.ask("cluster");
    return client.versionOf("cluster");
  });
  assertEquals(versions[0], versions[1]);
  const again = new ScriptedSubscriber("sotw");
  again.see(world);
  assertEquals(
    again.ask("cluster", [], { version: versions[0]!, nonce: "" }),
    ["cluster a=1"],
  );
});

Deno.test("(d) ACK is nonce and new version, NACK is nonce and error_detail", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ cluster: { a: "1" } });
  client.ask("cluster");
  assertEquals(client.ack("cluster"), []);
  const { acked } = client.statusOf("cluster");
  assertEquals(acked?.version, client.versionOf("cluster"));
  client.see({ cluster: { a: "2" } });
  assertEquals(client.nack("cluster", "no"), []);
  const { nacked, acked: still } = client.statusOf("cluster");
  assertEquals([nacked?.message, nacked?.nonce, nacked?.names], ["no", "2", [
    "a",
  ]]);
  assertEquals(still, acked);
});

Deno.test("(d) a NACK may carry the new version, as A46 clients send it", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ cluster: { a: "1" } });
  client.ask("cluster");
  client.nack("cluster", "no", { version: client.versionOf("cluster") });
  assertEquals(client.statusOf("cluster").acked, undefined);
  assertEquals(client.statusOf("cluster").nacked?.message, "no");
});

Deno.test("(e) a request whose nonce is not the last one sent is stale and ignored wholly", () => {
  const client = settled();
  const old = client.nonceOf("endpoints");
  client.see({
    cluster: { a: "1", b: "1" },
    endpoints: { a: "2", b: "1", c: "1" },
    listener: { a: "1" },
    route: { r: "1" },
  });
  const crossing = client.ask("endpoints", ["a", "b", "c"], { nonce: old });
  assertEquals(crossing, []);
  const { staleRequests, nameCount, inFlightSinceMs } = client.statusOf(
    "endpoints",
  );
  assertEquals([staleRequests, nameCount, inFlightSinceMs], [1, 2, 0]);
});

Deno.test("(e) what a stale request does not ask for is asked for anew by the next that does", () => {
  const client = settled();
  const old = client.nonceOf("endpoints");
  client.see({
    cluster: { a: "1", b: "1" },
    endpoints: { a: "2", b: "1" },
    listener: { a: "1" },
    route: { r: "1" },
  });
  assertEquals(client.ask("endpoints", ["a"], { nonce: old }), []);
  // In between the client has dropped what it knew of b.
  assertEquals(client.ask("endpoints", ["a", "b"]), ["endpoints b=1"]);
});

Deno.test("(e) except before the first response of the type: that is a first request", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ endpoints: { a: "1" } });
  assertEquals(
    client.ask("endpoints", ["a"], { nonce: "of another stream" }),
    ["endpoints a=1"],
  );
  assertEquals(client.statusOf("endpoints").acks, 0);
});

Deno.test("(f) new requests supersede older ones, and not each is answered", () => {
  const client = new ScriptedSubscriber("sotw");
  client.ask("endpoints", ["a"]);
  client.ask("endpoints", ["a", "b"]);
  client.ask("endpoints", ["b"]);
  assertEquals(client.see({ endpoints: { a: "1", b: "1" } }), [
    "endpoints b=1",
  ]);
});

Deno.test("(g) LDS and CDS responses carry all subscribed resources, absence is deletion", () => {
  const client = settled();
  const world = {
    cluster: { a: "1", b: "1" },
    endpoints: { a: "1", b: "1" },
    route: { r: "1" },
  };
  assertEquals(client.see({ ...world, listener: { a: "1", b: "1" } }), [
    "listener a=1 b=1",
  ]);
  client.settle();
  assertEquals(client.see({ ...world, listener: { b: "1" } }), [
    "listener b=1",
  ]);
  client.settle();
  assertEquals(client.see({ ...world, listener: {} }), ["listener"]);
});

Deno.test("(g) RDS and EDS responses carry what changed, and absence means nothing", () => {
  const client = settled();
  const world = { cluster: { a: "1", b: "1" }, listener: { a: "1" } };
  assertEquals(
    client.see({
      ...world,
      endpoints: { a: "1", b: "2" },
      route: { r: "2" },
    }),
    ["endpoints b=2", "route r=2"],
  );
  client.settle();
  assertEquals(client.see({ ...world, endpoints: { b: "2" }, route: {} }), []);
  assertEquals(
    client.see({ ...world, endpoints: { a: "1", b: "2" }, route: {} }),
    ["endpoints a=1"],
  );
});

Deno.test("(h) a name that is added is sent even if it did not change", () => {
  const client = settled();
  client.ask("endpoints", ["a"]);
  assertEquals(client.ask("endpoints", ["a", "b"]), ["endpoints b=1"]);
});

Deno.test("(h) a name that is added is sent even if it was sent before unasked", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ listener: { a: "1", b: "1" } });
  client.ask("listener");
  client.settle();
  assertEquals(client.ask("listener", ["b"]), ["listener b=1"]);
});

Deno.test("(i) no response has a name twice", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ cluster: { a: "1" }, endpoints: { a: "1" } });
  assertEquals(client.ask("cluster", ["*", "a", "a"]), ["cluster a=1"]);
  assertEquals(client.ask("endpoints", ["a", "a"]), ["endpoints a=1"]);
});

Deno.test("(j) an unknown resource is remembered and sent when it appears", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({});
  assertEquals(client.ask("endpoints", ["a"]), []);
  assertEquals(client.ask("route", ["r"]), []);
  assertEquals(client.see({ endpoints: { a: "1" }, route: { r: "1" } }), [
    "endpoints a=1",
    "route r=1",
  ]);
});

Deno.test("(j) that a listener or cluster does not exist is said at once", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ listener: { other: "1" } });
  assertEquals(client.ask("listener", ["a"]), ["listener"]);
  client.settle();
  assertEquals(client.ask("listener", ["a", "other"]), ["listener other=1"]);
  client.settle();
  assertEquals(client.see({ listener: { a: "1", other: "1" } }), [
    "listener a=1 other=1",
  ]);
});

Deno.test("(k) responses are sent on change only", () => {
  const client = settled();
  const same = {
    cluster: { a: "1", b: "1" },
    endpoints: { a: "1", b: "1" },
    listener: { a: "1" },
    route: { r: "1" },
  };
  assertEquals(client.see(same), []);
  assertEquals(
    client.see({ ...same, endpoints: { ...same.endpoints, c: "1" } }),
    [],
  );
});

Deno.test("(k) what comes and goes while a response is in inFlight is not sent", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ endpoints: { a: "1", b: "1" } });
  client.ask("endpoints", ["a", "b"]);
  client.see({ endpoints: { a: "2", b: "1" } });
  client.see({ endpoints: { a: "1", b: "1" } });
  assertEquals(client.ack("endpoints"), []);
});

Deno.test("wildcard: empty names that never named any are all, for LDS and CDS only", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({
    cluster: { a: "1" },
    endpoints: { a: "1" },
    listener: { a: "1" },
    route: { r: "1" },
  });
  assertEquals(client.ask("cluster"), ["cluster a=1"]);
  assertEquals(client.ask("listener"), ["listener a=1"]);
  assertEquals(client.ask("endpoints"), []);
  assertEquals(client.ask("route"), []);
  assert(client.statusOf("cluster").isWildcard);
});

Deno.test("wildcard: once any name was sent, an empty list is unsubscribing from all", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ listener: { a: "1", b: "1" } });
  assertEquals(client.ask("listener", ["a"]), ["listener a=1"]);
  client.settle();
  assertEquals(client.ask("listener", []), []);
  assertEquals(client.see({ listener: { a: "2", b: "1" } }), []);
  assertEquals(client.statusOf("listener").isWildcard, false);
});

Deno.test("wildcard: `*` and names are both, and each can go alone", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ cluster: { a: "1", b: "1" } });
  assertEquals(client.ask("cluster", []), ["cluster a=1 b=1"]);
  client.settle();
  assertEquals(client.ask("cluster", ["*", "a"]), ["cluster a=1 b=1"]);
  client.settle();
  assertEquals(client.ask("cluster", ["a"]), []);
  assertEquals(client.see({ cluster: { a: "1", b: "2" } }), []);
  assertEquals(client.ask("cluster", []), []);
  assertEquals(client.see({ cluster: { a: "3", b: "3" } }), []);
  assertEquals(client.ask("cluster", ["*"]), ["cluster a=3 b=3"]);
});

Deno.test("wildcard: for EDS and RDS `*` is a name like others", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ endpoints: { a: "1" } });
  assertEquals(client.ask("endpoints", ["*"]), []);
});

Deno.test("a nonce that is empty mid-stream is no ACK, is not stale, and its names count", () => {
  const client = settled();
  client.see({
    cluster: { a: "1", b: "1" },
    endpoints: { a: "2", b: "1", c: "1" },
    listener: { a: "1" },
    route: { r: "1" },
  });
  assertEquals(client.ask("endpoints", ["a", "c"], { nonce: "" }), []);
  const { acks, staleRequests } = client.statusOf("endpoints");
  assertEquals([acks, staleRequests], [1, 0]);
  assertEquals(client.ack("endpoints"), ["endpoints c=1"]);
});

Deno.test("versions of different subsets on one stream differ", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ endpoints: { a: "1", b: "1" } });
  client.ask("endpoints", ["a"]);
  client.settle();
  const first = client.versionOf("endpoints");
  client.ask("endpoints", ["a", "b"]);
  assertNotEquals(client.versionOf("endpoints"), first);
});

Deno.test("gRFC A88: a whole state reports names that do not exist", () => {
  const client = inWorld("sotw");
  client.ask("listener", ["a", "none"]);
  const absent = () => client.received.at(-1)!.body.absent;
  assertEquals(absent(), ["none"]);
  client.ack("listener");
  client.see({ ...WORLD, listener: { a: "1", none: "1" } });
  assertEquals(absent(), undefined);
  client.ask("cluster");
  assertEquals(absent(), undefined);
  client.ask("endpoints", ["a", "none"]);
  assertEquals(absent(), undefined);
});
