/** Nothing leads to a cluster that the client does not have yet. */

import { assertEquals } from "@std/assert";
import {
  type Parts,
  resourceOf,
  ScriptedSubscriber,
} from "../../../tests/support/xds/scripted_subscriber.ts";
import { REMOVAL_PATIENCE_MS } from "./removals.ts";
import { PLAIN_PROFILE } from "./kind_subscription.ts";
import {
  INTERIM_SETTLE_MS,
  INTERIM_WAIT_MS,
  WARMING_WAIT_MS,
} from "./warming.ts";

const BEFORE = {
  cluster: { a: "1" },
  endpoints: { a: "1" },
  listener: { l: "1>a" },
  route: { r: "1>a" },
} as const;

/** A cluster is new, and everything leads to it. */
const AFTER = {
  cluster: { a: "1", b: "1" },
  endpoints: { a: "1", b: "1" },
  listener: { l: "2>b" },
  route: { r: "2>a,b" },
} as const;

const MODES = ["sotw", "delta"] as const;

type Mode = typeof MODES[number];

/** Like Envoy: all clusters and listeners, and what they lead to. */
function settled(mode: Mode, view: Parts = BEFORE): ScriptedSubscriber {
  const client = new ScriptedSubscriber(mode);
  client.see(view);
  client.ask("cluster");
  client.ask("endpoints", Object.keys(view.endpoints ?? {}));
  client.ask("listener");
  client.ask("route", ["r"]);
  client.settle();
  return client;
}

function askMore(client: ScriptedSubscriber, ...names: string[]) {
  return client.ask(
    "endpoints",
    client.mode === "sotw" ? ["a", ...names] : names,
  );
}

const NEW_CLUSTER = { sotw: "cluster a=1 b=1", delta: "cluster b=1" } as const;

Deno.test("what leads to a new cluster waits until its endpoints are taken, too", () => {
  for (const mode of MODES) {
    const client = settled(mode);
    assertEquals(client.see(AFTER), [NEW_CLUSTER[mode]]);
    assertEquals(client.state.status.waitsFor, ["b"]);
    assertEquals(client.statusOf("route").isBehind, true);
    assertEquals(askMore(client, "b"), ["endpoints b=1"]);
    // Either may be acknowledged first.
    assertEquals(client.ack("cluster"), []);
    assertEquals(client.ack("endpoints"), ["listener l=2>b", "route r=2>a,b"]);
    assertEquals(client.state.status.waitsFor, []);
    assertEquals(client.state.status.early, undefined);
  }
});

Deno.test("it waits for clusters before anybody asks for their endpoints", () => {
  for (const mode of MODES) {
    const client = settled(mode);
    client.see(AFTER);
    assertEquals(client.ack("cluster"), ["listener l=2>b", "route r=2>a,b"]);
  }
});

Deno.test("it does not wait for ever, and that is sent: WARMING_WAIT_MS", () => {
  for (const mode of MODES) {
    const client = settled(mode);
    client.see(AFTER);
    assertEquals(client.state.dueMs, WARMING_WAIT_MS);
    assertEquals(client.pass(WARMING_WAIT_MS - 1), []);
    assertEquals(client.pass(1), ["listener l=2>b", "route r=2>a,b"]);
    assertEquals(client.state.status.early, {
      atMs: WARMING_WAIT_MS,
      clusters: ["b"],
    });
    client.settle();
    assertEquals(client.state.dueMs, Infinity);
    // Until a later one goes well.
    client.pass(1);
    client.see({ ...AFTER, cluster: { c: "1" }, route: { r: "3>c" } });
    client.settle();
    assertEquals(client.state.status.early, undefined);
  }
});

Deno.test("a cluster that is refused, dropped or gone isNacked up nothing", () => {
  for (const mode of MODES) {
    const lines = ["listener l=2>b", "route r=2>a,b"];
    const refusing = settled(mode);
    refusing.see(AFTER);
    assertEquals(refusing.nack("cluster", "b is bad"), lines);
    const nameless = settled(mode);
    nameless.see(AFTER);
    assertEquals(nameless.nack("cluster", "no"), lines);
    const gone = settled(mode);
    gone.see(AFTER);
    assertEquals(gone.see({ ...AFTER, cluster: { a: "1" } }), lines);
  }
  const naming = new ScriptedSubscriber("delta");
  naming.see(BEFORE);
  naming.ask("cluster", ["a"]);
  naming.ask("route", ["r"]);
  naming.settle();
  assertEquals(naming.see(AFTER), ["route r=2>a,b"]);
});

Deno.test("a cluster that only changed is there, so nothing waits for it", () => {
  for (const mode of MODES) {
    const client = settled(mode);
    assertEquals(
      client.see({
        ...BEFORE,
        cluster: { a: "2" },
        route: { r: "2>a" },
      }),
      ["cluster a=2", "endpoints a=1", "route r=2>a"],
    );
  }
});

Deno.test("what is sent first waits for nothing", () => {
  for (const mode of MODES) {
    const client = new ScriptedSubscriber(mode);
    client.see(AFTER);
    assertEquals(client.ask("cluster"), ["cluster a=1 b=1"]);
    assertEquals(client.ask("listener"), ["listener l=2>b"]);
    assertEquals(client.ask("route", ["r"]), ["route r=2>a,b"]);
  }
});

Deno.test("services that keep coming do not keep a route from its own", () => {
  for (const mode of MODES) {
    const client = settled(mode);
    client.see(AFTER);
    const next = {
      cluster: { a: "1", b: "1", c: "1" },
      endpoints: { a: "1", b: "1", c: "1" },
      listener: { l: "2>b" },
      route: { r: "3>c" },
    } as const;
    assertEquals(client.see(next), []);
    assertEquals(askMore(client, "b"), ["endpoints b=1"]);
    client.ack("endpoints");
    // The second cluster is sent now, and its route waits.
    assertEquals(client.ack("cluster"), [
      mode === "sotw" ? "cluster a=1 b=1 c=1" : "cluster c=1",
      "listener l=2>b",
      "route r=2>a,b",
    ]);
    client.ack("listener");
    client.ack("route");
    assertEquals(client.ack("cluster"), ["route r=3>c"]);
  }
});

Deno.test("who asks for what waits gets it when that may be sent", () => {
  for (const mode of MODES) {
    const client = settled(mode);
    client.see({ ...AFTER, route: { r: "2>b", s: "1>b" } });
    const more = mode === "sotw" ? ["r", "s"] : ["s"];
    const early = client.ask("route", more);
    assertEquals(early, mode === "sotw" ? [] : ["route -s"]);
    client.settle();
    const { body } = client.received.findLast(({ kind }) => kind === "route")!;
    assertEquals(body.resources.map(({ name }) => name), ["r", "s"]);
  }
});

Deno.test("what waits is shown as what there is", () => {
  const client = settled("sotw");
  client.see(AFTER);
  assertEquals(client.state.resourceStatuses.get("route"), [
    { name: "r", has: "1>a", wants: "2>a,b", state: "behind" },
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
