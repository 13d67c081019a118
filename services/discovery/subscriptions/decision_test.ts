/** How requests, views and time decide what is sent: a row for each branch. */

import { assert, assertEquals } from "@std/assert";
import {
  inWorld,
  ScriptedSubscriber,
  viewOf,
  WORLD,
} from "../../../tests/support/xds/scripted_subscriber.ts";
import { REPEAT_WAIT_MS } from "./sotw_subscription.ts";
import { ANSWER_WAIT_MS, SLOW_AFTER_MS } from "./ack_tracker.ts";

Deno.test("a NACK that adds nothing is not answered, and one that adds names is", () => {
  const client = inWorld("sotw");
  client.ask("endpoints", ["a"]);
  assertEquals(client.nack("endpoints", "no"), []);
  assertEquals(client.ask("endpoints", ["a", "b"], { error: "no" }), [
    "endpoints b=1",
  ]);
});

Deno.test("an ACK clears the refusal before it", () => {
  const client = inWorld("sotw");
  client.ask("endpoints", ["a"]);
  client.nack("endpoints", "no");
  client.see({ ...WORLD, endpoints: { a: "2", b: "1" } });
  client.ack("endpoints");
  const { nacked, nacks, nackedNames } = client.statusOf("endpoints");
  assertEquals([nacked, nacks, nackedNames], [undefined, 1, []]);
});

Deno.test("no response yet: all that is wanted and exists is sent", () => {
  const client = inWorld("sotw");
  assertEquals(client.ask("endpoints", ["a", "none"]), ["endpoints a=1"]);
  assertEquals(client.ask("route", ["none"]), []);
  assertEquals(client.ask("listener", ["none"]), ["listener"]);
});

Deno.test("added to LDS or CDS: all that is wanted is sent", () => {
  const client = inWorld("sotw");
  client.ask("cluster", ["a"]);
  client.settle();
  assertEquals(client.ask("cluster", ["a", "b"]), ["cluster a=1 b=1"]);
});

Deno.test("added to EDS or RDS: what is added and exists is sent", () => {
  const client = inWorld("sotw");
  client.ask("endpoints", ["a"]);
  client.settle();
  assertEquals(client.ask("endpoints", ["a", "b", "none"]), ["endpoints b=1"]);
  client.settle();
  assertEquals(client.ask("endpoints", ["a", "b", "none", "nor this"]), []);
});

Deno.test("dropping names is not answered", () => {
  const client = inWorld("sotw");
  client.ask("cluster", ["a", "b"]);
  client.ask("endpoints", ["a", "b"]);
  client.settle();
  assertEquals(client.ask("cluster", ["b"]), []);
  assertEquals(client.ask("endpoints", ["b"]), []);
});

Deno.test("one response in inFlight per type: the next goes when it is answered", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = inWorld(mode);
    client.ask("endpoints", ["a", "b"]);
    assertEquals(
      client.see({ ...WORLD, endpoints: { a: "2", b: "1" } }),
      [],
    );
    assertEquals(client.ack("endpoints"), ["endpoints a=2"]);
  }
});

Deno.test("one response in inFlight per type: or when 10 s have passed", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = inWorld(mode);
    client.ask("endpoints", ["a", "b"]);
    assertEquals(client.state.dueMs, Infinity);
    client.see({ ...WORLD, endpoints: { a: "2", b: "1" } });
    assertEquals(client.state.dueMs, ANSWER_WAIT_MS);
    assertEquals(client.pass(ANSWER_WAIT_MS - 1), []);
    assertEquals(client.pass(1), ["endpoints a=2"]);
    assertEquals(client.state.dueMs, Infinity);
    // What is said about the first one now is late.
    client.ack("endpoints", { nonce: "1" });
    assertEquals(client.statusOf("endpoints").staleRequests, 1);
    client.ack("endpoints");
    assertEquals(client.statusOf("endpoints").inFlightSinceMs, undefined);
  }
});

Deno.test("a response in inFlight of one type isNacked up no other", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  client.ask("endpoints", ["a"]);
  client.ack("endpoints");
  assertEquals(client.see({ ...WORLD, endpoints: { a: "2", b: "1" } }), [
    "endpoints a=2",
  ]);
});

Deno.test("listeners and routes wait while clusters that they could lead to cannot be sent", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  client.ask("listener");
  client.ask("route", ["r"]);
  client.ack("listener");
  client.ack("route");
  const next = {
    ...WORLD,
    cluster: { a: "1", b: "1", c: "1" },
    listener: { a: "1", c: "1" },
    route: { r: "2" },
  };
  assertEquals(client.see(next), []);
  assertEquals(client.ack("cluster"), [
    "cluster a=1 b=1 c=1",
    "listener a=1 c=1",
    "route r=2",
  ]);
});

Deno.test("listeners that are asked for do not wait for clusters", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  client.see({ ...WORLD, cluster: { a: "2", b: "1" } });
  assertEquals(client.ask("listener"), ["listener a=1"]);
});

Deno.test("a slow client keeps no old state: what came and went may be sent twice", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = inWorld(mode);
    client.ask("endpoints", ["a"]);
    client.pass(SLOW_AFTER_MS);
    client.see({ ...WORLD, endpoints: { a: "2", b: "1" } });
    client.see(WORLD);
    assertEquals(client.ack("endpoints"), ["endpoints a=1"]);
    assertEquals(client.ack("endpoints"), []);
  }
});

Deno.test("a client that takes nothing keeps no old state, though nobody asks what to send", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = inWorld(mode);
    client.ask("endpoints", ["a", "b"]);
    client.settle();
    const { state } = client;
    state.onView(viewOf({ ...WORLD, endpoints: { a: "2", b: "1" } }), 0);
    state.onView(viewOf({ ...WORLD, endpoints: { a: "3" } }), SLOW_AFTER_MS);
    state.onView(viewOf(WORLD), SLOW_AFTER_MS);
    const sent = client.pass(SLOW_AFTER_MS);
    assertEquals(sent, ["endpoints a=1 b=1"]);
  }
});

Deno.test("a refusal names resources as clients do", () => {
  const cases: ReadonlyArray<readonly [string, readonly string[]]> = [
    ["Error adding/updating cluster(s) default/web:80: no good", [
      "default/web:80",
    ]],
    ["Error adding/updating listener(s) default/web:8080: bind", [
      "default/web:8080",
    ]],
    ["in default/web:80, and in default/web:80/udp.", [
      "default/web:80",
      "default/web:80/udp",
    ]],
    ["'default/web:80/udp'", ["default/web:80/udp"]],
    ['xds: resource "web" is bad', ["web"]],
    ["It is web.", ["web"]],
    ["other/web:80", []],
    ["web-2, web_3, web/4, 5web, web:9, web.default", []],
    ["", []],
  ];
  const names = [
    "default/web:80",
    "default/web:8080",
    "default/web:80/udp",
    "web",
  ];
  for (const [message, named] of cases) {
    const client = new ScriptedSubscriber("sotw");
    client.see({
      cluster: Object.fromEntries(names.map((name) => [name, "1"])),
    });
    client.ask("cluster");
    client.nack("cluster", message);
    assertEquals(client.statusOf("cluster").nackedNames, named, message);
    const blamed = named.length > 0 ? named : names;
    assertEquals(client.statusOf("cluster").nacked?.names, blamed);
  }
});

Deno.test("a refused resource of a whole state stays as the client had it", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  client.settle();
  client.see({ ...WORLD, cluster: { a: "2", b: "2", c: "1" } });
  client.nack("cluster", "a: no");
  assertEquals(client.see({ ...WORLD, cluster: { a: "2", b: "3", c: "1" } }), [
    "cluster a=1 b=3 c=1",
  ]);
  client.settle();
  // It changed, so it is sent, and if it is what the client had before.
  assertEquals(client.see({ ...WORLD, cluster: { a: "3", b: "3", c: "1" } }), [
    "cluster a=3 b=3 c=1",
  ]);
});

Deno.test("a refused resource that a client never had is left out of the whole state", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  client.settle();
  client.see({ ...WORLD, cluster: { a: "1", b: "1", c: "1" } });
  client.nack("cluster", "c: no");
  assertEquals(client.see({ ...WORLD, cluster: { a: "2", b: "1", c: "1" } }), [
    "cluster a=2 b=1",
  ]);
});

Deno.test("a refused resource that a client may have from an earlier stream is not removed", () => {
  const client = inWorld("sotw");
  client.ask("cluster", [], { version: "of an earlier stream" });
  client.nack("cluster", "a: no");
  assertEquals(client.see({ ...WORLD, cluster: { a: "1", b: "2", c: "1" } }), [
    "cluster a=1 b=2 c=1",
  ]);
  client.nack("cluster", "a: no; c: no");
  // What is new on this stream it cannot have from an earlier one.
  assertEquals(client.see({ ...WORLD, cluster: { a: "1", b: "3", c: "1" } }), [
    "cluster a=1 b=3",
  ]);
});

Deno.test("what was taken before a chain of refusals is still what stands in", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  client.settle();
  for (const version of ["2", "3"]) {
    client.see({ ...WORLD, cluster: { a: version, b: "1" } });
    client.nack("cluster", "a: no");
  }
  assertEquals(client.see({ ...WORLD, cluster: { a: "3", b: "2" } }), [
    "cluster a=1 b=2",
  ]);
});

Deno.test("without a name in the refusal a whole state is sent again when anything changes", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  client.nack("cluster", "no");
  assertEquals(client.statusOf("cluster").nackedNames, []);
  assertEquals(client.see({ ...WORLD, cluster: { a: "1", b: "2" } }), [
    "cluster a=1 b=2",
  ]);
});

Deno.test("a NACK may have been applied in part: what was good before is sent again", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = inWorld(mode);
    client.ask("endpoints", ["a"]);
    client.ask("listener");
    client.settle();
    client.see({
      ...WORLD,
      endpoints: { a: "2", b: "1" },
      listener: { a: "2" },
    });
    client.nack("endpoints", "no");
    client.nack("listener", "a: no");
    assertEquals(client.see(WORLD), ["endpoints a=1", "listener a=1"]);
  }
});

Deno.test("refused endpoints are not sent when their cluster changes, but what was good is", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  client.ask("endpoints", ["a", "b"]);
  client.settle();
  client.see({ ...WORLD, endpoints: { a: "2", b: "1" } });
  client.nack("endpoints", "a: no");
  assertEquals(
    client.see({
      ...WORLD,
      cluster: { a: "2", b: "2" },
      endpoints: { a: "2", b: "1" },
    }),
    ["cluster a=2 b=2", "endpoints a=1 b=1"],
  );
});

Deno.test("refused endpoints that were never good are not sent when their cluster changes", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = inWorld(mode);
    client.ask("cluster");
    client.ack("cluster");
    client.ask("endpoints", ["a"]);
    client.nack("endpoints", "no");
    client.see({ ...WORLD, cluster: { a: "2", b: "1" } });
    assertEquals(client.ack("cluster"), []);
    assertEquals(client.statusOf("endpoints").responses, 1);
  }
});

Deno.test("a refused name is sent to a client that unsubscribes and asks again", () => {
  const client = inWorld("sotw");
  client.ask("endpoints", ["a", "b"]);
  client.nack("endpoints", "a: no");
  client.ask("endpoints", ["b"]);
  assertEquals(client.ask("endpoints", ["a", "b"]), ["endpoints a=1"]);
});

Deno.test("a request that repeats an answered nonce is answered", () => {
  const client = inWorld("sotw");
  client.ask("endpoints", ["a", "b"]);
  client.settle();
  assertEquals(client.ack("endpoints"), ["endpoints a=1 b=1"]);
});

Deno.test("a request that repeats an answered nonce is answered once a second at most", () => {
  const client = inWorld("sotw");
  client.ask("endpoints", ["a"]);
  client.settle();
  assertEquals(client.ack("endpoints"), ["endpoints a=1"]);
  client.settle();
  assertEquals(client.ack("endpoints"), []);
  assertEquals(client.state.dueMs, REPEAT_WAIT_MS);
  assertEquals(client.pass(REPEAT_WAIT_MS), ["endpoints a=1"]);
});

Deno.test("a request that repeats an answered nonce of LDS or CDS is not answered", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  client.settle();
  assertEquals(client.ack("cluster"), []);
});

Deno.test("a request without nonce and without news is answered: the client may have forgotten", () => {
  const client = inWorld("sotw");
  client.ask("cluster");
  client.settle();
  assertEquals(client.ask("cluster", [], { nonce: "" }), ["cluster a=1 b=1"]);
});

Deno.test("a view that changes nothing of interest is no event", () => {
  const client = inWorld("sotw");
  client.ask("endpoints", ["a"]);
  client.settle();
  client.see({ ...WORLD, endpoints: { a: "1", b: "2", c: "1" } });
  assert(!client.statusOf("endpoints").isBehind);
  assertEquals(client.state.dueMs, Infinity);
});
