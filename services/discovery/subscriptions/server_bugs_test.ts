/** The known bugs of such servers, each of which is none here. */

import { assert, assertEquals, assertNotEquals } from "@std/assert";
import {
  ScriptedSubscriber,
  viewOf,
} from "../../../tests/support/xds/scripted_subscriber.ts";
import { changedNames } from "../view/view.ts";
import { RESPONSE_PART_BYTES_MAX } from "./selection.ts";

Deno.test("no NACK loop: refused content is not sent again until it changes", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = new ScriptedSubscriber(mode);
    client.see({ cluster: { a: "1" }, endpoints: { a: "1" } });
    client.ask("cluster");
    client.ask("endpoints", ["a"]);
    assertEquals(client.nack("cluster", "no"), []);
    assertEquals(client.nack("endpoints", "no"), []);
    assertEquals(
      client.see({ cluster: { a: "1" }, endpoints: { a: "1" }, route: {} }),
      [],
    );
    assertEquals(client.pass(60_000), []);
    assertEquals(client.see({ cluster: { a: "2" }, endpoints: { a: "2" } }), [
      "cluster a=2",
      "endpoints a=2",
    ]);
  }
});

Deno.test("a NACK is detected by error_detail, not by version", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ cluster: { a: "1" } });
  client.ask("cluster");
  client.ack("cluster", { version: "of long ago" });
  assertEquals(client.statusOf("cluster").nacks, 0);
  assertEquals(client.statusOf("cluster").acks, 1);
});

Deno.test("EDS with empty names is not a wildcard", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ endpoints: { a: "1" } });
  assertEquals(client.ask("endpoints", []), []);
  assertEquals(client.see({ endpoints: { a: "2" } }), []);
});

Deno.test("subscriptions of resources that do not exist yet are not forgotten", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ endpoints: { a: "1" } });
  client.ask("endpoints", ["a", "later"]);
  client.settle();
  client.see({ endpoints: { a: "2" } });
  client.settle();
  assertEquals(client.see({ endpoints: { a: "2", later: "1" } }), [
    "endpoints later=1",
  ]);
});

Deno.test("a request for part of the endpoints is answered", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ endpoints: { x: "1", y: "1" } });
  assertEquals(client.ask("endpoints", ["x"]), ["endpoints x=1"]);
});

Deno.test("endpoints follow each change of their cluster, in the same version and with a new nonce", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = new ScriptedSubscriber(mode);
    client.see({ cluster: { a: "1", b: "1" }, endpoints: { a: "1", b: "1" } });
    client.ask("cluster");
    client.ask("endpoints", ["a", "b"]);
    client.settle();
    const nonce = client.nonceOf("endpoints");
    const sent = client.see({
      cluster: { a: "2", b: "1" },
      endpoints: { a: "1", b: "1" },
    });
    assertEquals(sent, [
      mode === "sotw" ? "cluster a=2 b=1" : "cluster a=2",
      "endpoints a=1",
    ]);
    assertNotEquals(client.nonceOf("endpoints"), nonce);
    // Without waiting for the answer about clusters.
    assert(client.statusOf("cluster").inFlightSinceMs !== undefined);
  }
});

Deno.test("endpoints are not sent before their clusters", () => {
  const client = new ScriptedSubscriber("sotw");
  client.ask("route", ["r"]);
  client.ask("listener");
  client.ask("endpoints", ["a"]);
  client.ask("cluster");
  const world = {
    cluster: { a: "1" },
    endpoints: { a: "1" },
    listener: { a: "1" },
    route: { r: "1" },
  };
  assertEquals(client.see(world), [
    "cluster a=1",
    "endpoints a=1",
    "listener a=1",
    "route r=1",
  ]);
});

Deno.test("endpoints are not sent after they were unsubscribed from", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ endpoints: { a: "1", b: "1" } });
  client.ask("endpoints", ["a", "b"]);
  client.see({ endpoints: { a: "2", b: "2" } });
  assertEquals(client.ask("endpoints", ["b"]), ["endpoints b=2"]);
});

Deno.test("LDS and CDS are never sent in part in SotW", () => {
  const client = new ScriptedSubscriber("sotw");
  client.see({ listener: { a: "1", b: "1" } });
  client.ask("listener");
  client.settle();
  assertEquals(client.see({ listener: { a: "1", b: "2" } }), [
    "listener a=1 b=2",
  ]);
});

Deno.test("nonces of two streams differ when they are sent apart", () => {
  const nonces = ["x-", "y-"].map((noncePrefix) => {
    const client = new ScriptedSubscriber("sotw", { noncePrefix });
    client.see({ cluster: { a: "1" } });
    client.ask("cluster");
    return client.nonceOf("cluster");
  });
  assertEquals(nonces, ["x-1", "y-1"]);
});

Deno.test("versions are not used again for something else after a restart", () => {
  const versionAfter = (version: string) => {
    const client = new ScriptedSubscriber("sotw");
    client.see({ cluster: { a: version } });
    client.ask("cluster");
    return client.versionOf("cluster");
  };
  assertEquals(versionAfter("1"), versionAfter("1"));
  assertNotEquals(versionAfter("1"), versionAfter("2"));
});

Deno.test("nothing is answered before there is a view, and everything then", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = new ScriptedSubscriber(mode);
    assertEquals(client.ask("cluster"), []);
    assertEquals(client.ask("endpoints", ["a"]), []);
    assertEquals(client.pass(120_000), []);
    assertEquals(client.state.dueMs, Infinity);
    assertEquals(client.see({ cluster: { a: "1" }, endpoints: { a: "1" } }), [
      "cluster a=1",
      "endpoints a=1",
    ]);
  }
});

Deno.test("what piles up for a slow client is one response, however much happens", () => {
  for (const mode of ["sotw", "delta"] as const) {
    const client = new ScriptedSubscriber(mode);
    client.see({ endpoints: { a: "0", b: "0" } });
    client.ask("endpoints", ["a", "b"]);
    for (let i = 1; i <= 100; i++) {
      assertEquals(client.see({ endpoints: { a: `${i}`, b: "0" } }), []);
      client.pass(50);
    }
    assertEquals(client.ack("endpoints"), ["endpoints a=100"]);
    assertEquals(client.ack("endpoints"), []);
  }
});

Deno.test("a response over 4 MiB is split where it can be", () => {
  const bytes = RESPONSE_PART_BYTES_MAX / 3;
  const world = viewOf({
    cluster: { a: "1", b: "1", c: "1", d: "1" },
    endpoints: { a: "1", b: "1", c: "1", d: "1" },
  }, bytes);
  const client = new ScriptedSubscriber("sotw");
  client.see(world);
  assertEquals(client.ask("endpoints", ["a", "b", "c", "d", "none"]), [
    "endpoints a=1 b=1",
  ]);
  assertEquals(client.ack("endpoints"), ["endpoints c=1 d=1"]);
  assertEquals(client.ack("endpoints"), []);
  const whole = new ScriptedSubscriber("sotw");
  whole.see(world);
  assertEquals(whole.ask("cluster"), ["cluster a=1 b=1 c=1 d=1"]);
  const delta = new ScriptedSubscriber("delta");
  delta.see(world);
  assertEquals(delta.ask("cluster"), ["cluster a=1 b=1"]);
  assertEquals(delta.ack("cluster"), ["cluster c=1 d=1"]);
  const names = ["a", "b", "c", "d", "none"];
  assertEquals(delta.ask("endpoints", names), ["endpoints a=1 b=1"]);
  assertEquals(delta.ack("endpoints"), ["endpoints c=1 d=1 -none"]);
});

Deno.test("a resource that is too large for any response is sent alone", () => {
  const client = new ScriptedSubscriber("delta");
  client.see(
    viewOf({ endpoints: { a: "1", b: "1" } }, RESPONSE_PART_BYTES_MAX + 1),
  );
  assertEquals(client.ask("endpoints", ["a", "b"]), ["endpoints a=1"]);
  assertEquals(client.ack("endpoints"), ["endpoints b=1"]);
});

Deno.test("a resource that was made again with the same content is not sent again", () => {
  const before = viewOf({ endpoints: { a: "1" } }).resources.endpoints;
  const after = viewOf({ endpoints: { a: "1" } }).resources.endpoints;
  assertEquals([...changedNames(before, after)], []);
});
