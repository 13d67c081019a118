/** The rules of the state of the world, in the order of the protocol's text. */

import { transcripts } from "../../../tests/support/xds/transcripts.ts";
import { assertEquals, assertNotEquals } from "@std/assert";
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

Deno.test("(b) each type is its own sub-stream with own version and nonce", () => {
  const client = settled();
  const kinds = ["cluster", "endpoints", "listener", "route"] as const;
  assertEquals(new Set(kinds.map((kind) => client.nonceOf(kind))).size, 4);
  assertEquals(new Set(kinds.map((kind) => client.versionOf(kind))).size, 4);
  // A nonce of one type is stale in another.
  const nonce = client.nonceOf("cluster");
  assertEquals(client.ask("endpoints", ["a"], { nonce }), []);
  assertEquals(client.statusOf("endpoints").names, 2);
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

transcripts(
  `
# sotw: (a) node is only guaranteed on the stream's first request: none is asked for
see cluster a=1
ask cluster -> cluster a=1

# sotw settled: (e) a request whose nonce is not the last one sent is stale and ignored wholly
see endpoints a=2 b=1 c=1 -> endpoints a=2
ask endpoints a b c nonce=2
status endpoints stale=1 names=2 inFlightSinceMs=0

# sotw settled: (e) what a stale request does not ask for is asked for anew by the next that does
see endpoints a=2 b=1 -> endpoints a=2
ask endpoints a nonce=2
// In between the client has dropped what it knew of b.
ask endpoints a b -> endpoints b=1

# sotw: (e) except before the first response of the type: that is a first request
see endpoints a=1
ask endpoints a nonce=of another stream -> endpoints a=1
status endpoints acks=0

# sotw: (f) new requests supersede older ones, and not each is answered
ask endpoints a
ask endpoints a b
ask endpoints b
see endpoints a=1 b=1 -> endpoints b=1

# sotw settled: (g) LDS and CDS responses carry all subscribed resources, absence is deletion
see listener a=1 b=1 -> listener a=1 b=1
settle
see listener b=1 -> listener b=1
settle
see listener - -> listener

# sotw settled: (g) RDS and EDS responses carry what changed, and absence means nothing
see endpoints a=1 b=2 route r=2 -> endpoints b=2 | route r=2
settle
see endpoints b=2 route -
see endpoints a=1 b=2 -> endpoints a=1

# sotw settled: (h) a name that is added is sent even if it did not change
ask endpoints a
ask endpoints a b -> endpoints b=1

# sotw: (h) a name that is added is sent even if it was sent before unasked
see listener a=1 b=1
ask listener -> listener a=1 b=1
settle
ask listener b -> listener b=1

# sotw: (i) no response has a name twice
see cluster a=1 endpoints a=1
ask cluster * a a -> cluster a=1
ask endpoints a a -> endpoints a=1

# sotw: (j) an unknown resource is remembered and sent when it appears
see
ask endpoints a
ask route r
see endpoints a=1 route r=1 -> endpoints a=1 | route r=1

# sotw: (j) that a listener or cluster does not exist is said at once
see listener other=1
ask listener a -> listener
settle
ask listener a other -> listener other=1
settle
see listener a=1 other=1 -> listener a=1 other=1

# sotw settled: (k) responses are sent on change only
see
see endpoints a=1 b=1 c=1

# sotw: (k) what comes and goes while a response is in inFlight is not sent
see endpoints a=1 b=1
ask endpoints a b -> endpoints a=1 b=1
see endpoints a=2 b=1
see endpoints a=1 b=1
ack endpoints

# sotw: wildcard: empty names that never named any are all, for LDS and CDS only
see cluster a=1 endpoints a=1 listener a=1 route r=1
ask cluster -> cluster a=1
ask listener -> listener a=1
ask endpoints
ask route
status cluster wildcard=true

# sotw: wildcard: once any name was sent, an empty list is unsubscribing from all
see listener a=1 b=1
ask listener a -> listener a=1
settle
ask listener
see listener a=2 b=1
status listener wildcard=false

# sotw: wildcard: '*' and names are both, and each can go alone
see cluster a=1 b=1
ask cluster -> cluster a=1 b=1
settle
ask cluster * a -> cluster a=1 b=1
settle
ask cluster a
see cluster a=1 b=2
ask cluster
see cluster a=3 b=3
ask cluster * -> cluster a=3 b=3

# sotw: wildcard: for EDS and RDS '*' is a name like others
see endpoints a=1
ask endpoints *

# sotw settled: a nonce that is empty mid-stream is no ACK, is not stale, and its names count
see endpoints a=2 b=1 c=1 -> endpoints a=2
ask endpoints a c nonce=
status endpoints acks=1 stale=0
ack endpoints -> endpoints c=1
`,
  {
    settled: `
    see cluster a=1 b=1 endpoints a=1 b=1 listener a=1 route r=1
    ask cluster
    ask endpoints a b
    ask listener
    ask route r
    settle
  `,
  },
);
