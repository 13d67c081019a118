/** Nothing leads to a cluster that the client does not have yet. */

import { assertEquals } from "@std/assert";
import {
  type Parts,
  resourceOf,
  ScriptedSubscriber,
} from "../../../tests/support/xds/scripted_subscriber.ts";
import { transcripts } from "../../../tests/support/xds/transcripts.ts";
import { REMOVAL_PATIENCE_MS } from "./removals.ts";
import { PLAIN_PROFILE } from "./kind_subscription.ts";
import {
  INTERIM_SETTLE_MS,
  INTERIM_WAIT_MS,
  WARMING_WAIT_MS,
} from "./warming.ts";

const FIRST = "see cluster a=1 endpoints a=1 listener l=1>a route r=1>a";
/** A cluster is new, and everything leads to it. */
const NEXT =
  "see cluster a=1 b=1 endpoints a=1 b=1 listener l=2>b route r=2>a,b";
const LEADING = "listener l=2>b | route r=2>a,b";

transcripts(
  `
# both settled: what leads to a new cluster waits until its endpoints are taken, too
${NEXT} -> cluster (a=1) b=1
status stream waitsFor=["b"]
status route isBehind=true
ask endpoints (a) b -> endpoints b=1
// Either may be acknowledged first.
ack cluster
ack endpoints -> ${LEADING}
status stream waitsFor=[] early=undefined

# both settled: it waits for clusters before anybody asks for their endpoints
${NEXT} -> cluster (a=1) b=1
ack cluster -> ${LEADING}

# both settled: it does not wait for ever, and that is sent: WARMING_WAIT_MS
${NEXT} -> cluster (a=1) b=1
due ${WARMING_WAIT_MS}
pass ${WARMING_WAIT_MS - 1}
pass 1 -> ${LEADING}
status stream early={"atMs":${WARMING_WAIT_MS},"clusters":["b"]}
settle
due Infinity
// Until a later one goes well.
pass 1
see cluster c=1 route r=3>c -> cluster (a=1 b=1) c=1
settle -> route r=3>c | cluster (c=1) [-a -b]
status stream early=undefined

# both settled: a cluster that is refused holds up nothing
${NEXT} -> cluster (a=1) b=1
nack cluster "b is bad" -> ${LEADING}

# both settled: a cluster that is refused without a name holds up nothing
${NEXT} -> cluster (a=1) b=1
nack cluster "no" -> ${LEADING}

# both settled: a cluster that is gone holds up nothing
${NEXT} -> cluster (a=1) b=1
see cluster a=1 -> ${LEADING}

# delta named: a cluster that nobody asks for holds up nothing
${NEXT} -> route r=2>a,b

# both settled: a cluster that only changed is there, so nothing waits for it
see cluster a=2 route r=2>a -> cluster a=2 | endpoints a=1 | route r=2>a

# both: what is sent first waits for nothing
${NEXT}
ask cluster -> cluster a=1 b=1
ask listener -> listener l=2>b
ask route r -> route r=2>a,b

# both settled: services that keep coming do not keep a route from its own
${NEXT} -> cluster (a=1) b=1
see cluster a=1 b=1 c=1 endpoints a=1 b=1 c=1 listener l=2>b route r=3>c
ask endpoints (a) b -> endpoints b=1
ack endpoints
// The second cluster is sent now, and its route waits.
ack cluster -> cluster (a=1 b=1) c=1 | ${LEADING}
ack listener
ack route
ack cluster -> route r=3>c

# both settled: who asks for what waits gets it when that may be sent
see cluster a=1 b=1 endpoints a=1 b=1 listener l=2>b route r=2>b s=1>b -> cluster (a=1) b=1
ask route (r) s [-> route -s]
settle -> listener l=2>b | route r=2>b s=1>b
`,
  {
    // Like Envoy: all clusters and listeners, and what they lead to.
    settled: `
      ${FIRST}
      ask cluster
      ask endpoints a
      ask listener
      ask route r
      settle
    `,
    named: `
      ${FIRST}
      ask cluster a
      ask route r
      settle
    `,
  },
);

const BEFORE: Parts = {
  cluster: { a: "1" },
  endpoints: { a: "1" },
  listener: { l: "1>a" },
  route: { r: "1>a" },
};

const AFTER: Parts = {
  cluster: { a: "1", b: "1" },
  endpoints: { a: "1", b: "1" },
  listener: { l: "2>b" },
  route: { r: "2>a,b" },
};

Deno.test("what waits is shown as what there is", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see(BEFORE);
  client.ask("cluster");
  client.ask("route", ["r"]);
  client.settle();
  client.see(AFTER);
  assertEquals(client.state.resourceStatuses.get("route"), [
    {
      name: "r",
      has: "1>a",
      wants: "2>a,b",
      state: "behind",
      reason: undefined,
    },
  ]);
});

Deno.test("a cluster goes a second after all that led to it, where that is wanted", () => {
  const client = new ScriptedSubscriber("sotw");
  client.state.profile = {
    ...PLAIN_PROFILE,
    removalPatienceMs: REMOVAL_PATIENCE_MS,
  };
  client.see(AFTER);
  client.ask("cluster", ["a", "b"]);
  client.ask("route", ["r"]);
  client.settle();
  client.see({ ...AFTER, cluster: { b: "1" }, route: { r: "3>b" } });
  assertEquals(client.ack("route"), []);
  assertEquals(client.state.dueMs, REMOVAL_PATIENCE_MS);
  assertEquals(client.pass(REMOVAL_PATIENCE_MS - 1), []);
  assertEquals(client.pass(1), ["cluster b=1"]);
});

/** Like grpc-go: what it asks for follows from what it received. */
function withPrelude(): ScriptedSubscriber {
  const client = new ScriptedSubscriber("sotw");
  client.state.profile = {
    ...PLAIN_PROFILE,
    interimRoutesOf: (before) => {
      const resource = resourceOf("route", "r", "1+>a,b");
      const routes = new Map(before).set("r", resource);
      return before.get("r")?.version === "1>a"
        ? { routes, clusters: new Map([["r", ["b"]]]) }
        : undefined;
    },
  };
  client.see(BEFORE);
  client.ask("cluster", ["a"]);
  client.ask("endpoints", ["a"]);
  client.ask("route", ["r"]);
  client.settle();
  return client;
}

Deno.test("a interim is sent first, and the routes when its clusters were taken", () => {
  const client = withPrelude();
  assertEquals(client.see(AFTER), ["route r=1+>a,b"]);
  assertEquals(client.ack("route"), []);
  assertEquals(client.ask("cluster", ["a", "b"]), ["cluster a=1 b=1"]);
  client.ack("cluster");
  client.ask("endpoints", ["a", "b"]);
  assertEquals(client.ack("endpoints"), []);
  assertEquals(client.state.dueMs, INTERIM_SETTLE_MS);
  assertEquals(client.state.soonMs, INTERIM_SETTLE_MS);
  assertEquals(client.pass(INTERIM_SETTLE_MS), ["route r=2>a,b"]);
  client.settle();
  assertEquals(client.state.dueMs, Infinity);
  assertEquals(client.state.soonMs, Infinity);
});

Deno.test("a interim that does not help is given up: INTERIM_WAIT_MS", () => {
  const client = withPrelude();
  client.see(AFTER);
  client.ack("route");
  assertEquals(client.pass(INTERIM_WAIT_MS - 1), []);
  assertEquals(client.pass(1), ["route r=2>a,b"]);
  assertEquals(client.state.status.early, undefined);
});
