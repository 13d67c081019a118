/**
 * Refusals that do not say what is bad: of a response with several resources
 * nobody knows which were taken, so what was there before must not come back.
 */

import { assertEquals } from "@std/assert";
import {
  type Parts,
  ScriptedSubscriber,
} from "../../../tests/support/xds/scripted_subscriber.ts";

const MODES = ["sotw", "delta"] as const;

/** A client that has taken version 1 of three clusters and their endpoints. */
function settled(mode: "sotw" | "delta"): ScriptedSubscriber {
  const client = new ScriptedSubscriber(mode);
  client.see(world("1", { a: "1", b: "1", c: "1" }));
  client.ask("cluster");
  client.ask("endpoints", ["a", "b", "c"]);
  client.settle();
  return client;
}

function world(cluster: string, endpoints: Record<string, string>): Parts {
  return { cluster: { a: cluster, b: cluster, c: "1" }, endpoints };
}

/** What was received of endpoints. */
function endpointsIn(lines: readonly string[]): readonly string[] {
  return lines.filter((line) => line.startsWith("endpoints"));
}

Deno.test("a cluster that changes after an anonymous refusal gets no older endpoints", () => {
  for (const mode of MODES) {
    const client = settled(mode);
    client.see(world("1", { a: "2", b: "2", c: "1" }));
    assertEquals(client.nack("endpoints", "one is bad"), [], mode);
    const changed = { cluster: { a: "2", b: "1", c: "1" } };
    const endpoints = { a: "2", b: "2", c: "1" };
    assertEquals(
      endpointsIn(client.see({ ...changed, endpoints })),
      ["endpoints a=2"],
      mode,
    );
    assertEquals(endpointsIn(client.settle()), []);
    // It was not the one: from now on it is like any other.
    assertEquals(
      client.statusOf("endpoints").nackedNames,
      ["b"],
      mode,
    );
  }
});

Deno.test("what may be bad is tried alone, beside all that is not", () => {
  for (const mode of MODES) {
    const client = settled(mode);
    client.see(world("1", { a: "2", b: "2", c: "1" }));
    client.nack("endpoints", "one is bad");
    const sent = client.see({
      cluster: { a: "2", b: "2", c: "2" },
      endpoints: { a: "2", b: "2", c: "1" },
    });
    assertEquals(endpointsIn(sent), ["endpoints c=1"], mode);
    assertEquals(client.ack("endpoints"), ["endpoints a=2"], mode);
    // Now it is known, and its cluster still waits for something.
    assertEquals(client.nack("endpoints", "this one"), ["endpoints a=1"]);
    assertEquals(client.ack("endpoints"), ["endpoints b=2"]);
    assertEquals(client.ack("endpoints"), []);
    assertEquals(client.statusOf("endpoints").nackedNames, ["a"]);
  }
});

Deno.test("what was refused alone is not tried again, and what it had comes back", () => {
  for (const mode of MODES) {
    const client = settled(mode);
    client.see(world("1", { a: "2", b: "1", c: "1" }));
    assertEquals(client.nack("endpoints", "bad"), []);
    for (const cluster of ["2", "3"]) {
      const sent = client.see({
        cluster: { a: cluster, b: "1", c: "1" },
        endpoints: { a: "2", b: "1", c: "1" },
      });
      assertEquals(endpointsIn(sent), ["endpoints a=1"], mode);
      client.settle();
    }
  }
});

Deno.test("a client that refuses all and names nothing is not asked for ever", () => {
  for (const mode of MODES) {
    const client = settled(mode);
    client.see(world("1", { a: "2", b: "2", c: "1" }));
    client.nack("endpoints", "one is bad");
    let sent = endpointsIn(client.see(world("2", { a: "2", b: "2", c: "1" })));
    const received = [...sent];
    while (sent.length > 0) {
      received.push(...sent = client.nack("endpoints", "no"));
    }
    assertEquals(received, [
      "endpoints a=2",
      "endpoints a=1",
      "endpoints b=2",
      "endpoints b=1",
    ], mode);
    client.settle();
    const again = client.see(world("3", { a: "2", b: "2", c: "1" }));
    assertEquals(endpointsIn(again), ["endpoints a=1 b=1"], mode);
  }
});

Deno.test("a name without endpoints does not hold up what may be bad", () => {
  const client = settled("sotw");
  client.see(world("1", { a: "2", b: "2", c: "1" }));
  client.nack("endpoints", "one is bad");
  const endpoints = { a: "2", b: "2", c: "2" };
  assertEquals(client.see(world("1", endpoints)), ["endpoints c=2"]);
  client.see({ cluster: { a: "2", b: "1", c: "1" }, endpoints });
  // The answer to c asks for one more, while the cluster of a has changed.
  const sent = client.ask("endpoints", ["a", "b", "c", "none"]);
  assertEquals(sent, ["endpoints a=2"]);
});

Deno.test("a refusal by name is believed at once", () => {
  for (const mode of MODES) {
    const client = settled(mode);
    client.see(world("1", { a: "2", b: "2", c: "1" }));
    assertEquals(client.nack("endpoints", "a is bad"), []);
    const sent = client.see(world("2", { a: "2", b: "2", c: "1" }));
    assertEquals(endpointsIn(sent), ["endpoints a=1 b=2"], mode);
  }
});

Deno.test("content that changes is sent with the rest, whatever was refused before", () => {
  for (const mode of MODES) {
    const client = settled(mode);
    client.see(world("1", { a: "2", b: "2", c: "1" }));
    client.nack("endpoints", "one is bad");
    const sent = client.see(world("2", { a: "3", b: "3", c: "1" }));
    assertEquals(endpointsIn(sent), ["endpoints a=3 b=3"], mode);
    client.settle();
    assertEquals(client.statusOf("endpoints").nackedNames, []);
  }
});
