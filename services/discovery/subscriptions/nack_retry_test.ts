/** What a client refused is offered again, ever more seldom. */

import { assertEquals } from "@std/assert";
import {
  ScriptedSubscriber,
  WORLD,
} from "../../../tests/support/xds/scripted_subscriber.ts";
import { PLAIN_PROFILE } from "./kind_subscription.ts";
import {
  NACK_RETRIES_MAX,
  NACK_RETRY_MS_MAX,
  NACK_RETRY_MS_MIN,
} from "./nacked.ts";

const MODES = ["sotw", "delta"] as const;

type Mode = typeof MODES[number];

const LISTENERS = { ...WORLD, listener: { a: "1", b: "1" } };

function refusing(mode: Mode): ScriptedSubscriber {
  const client = new ScriptedSubscriber(mode);
  client.state.profile = { ...PLAIN_PROFILE, retriesNacked: true };
  client.see(LISTENERS);
  client.ask("listener");
  client.nack("listener", "b: cannot bind");
  return client;
}

const OFFER = { sotw: "listener a=1 b=1", delta: "listener b=1" } as const;

Deno.test("a listener that was refused is offered again after a minute, then after two", () => {
  for (const mode of MODES) {
    const client = refusing(mode);
    let waitMs = NACK_RETRY_MS_MIN;
    for (let times = 1; times < 8; times++) {
      assertEquals(client.state.dueMs, client.nowMs + waitMs);
      assertEquals(client.pass(waitMs - 1), []);
      assertEquals(client.pass(1), [OFFER[mode]]);
      assertEquals(client.nack("listener", "b: cannot bind"), []);
      waitMs = Math.min(2 * waitMs, NACK_RETRY_MS_MAX);
    }
    assertEquals(client.statusOf("listener").nackedNames, ["b"]);
  }
});

Deno.test("a listener that is taken at last is offered no more", () => {
  for (const mode of MODES) {
    const client = refusing(mode);
    client.pass(NACK_RETRY_MS_MIN);
    assertEquals(client.ack("listener"), []);
    assertEquals(client.state.dueMs, Infinity);
    assertEquals(client.statusOf("listener").nackedNames, []);
    assertEquals(client.statusOf("listener").nacked, undefined);
    assertEquals(client.pass(NACK_RETRY_MS_MAX), []);
  }
});

Deno.test("an retryNacked that is refused without a name counts, too", () => {
  for (const mode of MODES) {
    const client = refusing(mode);
    client.pass(NACK_RETRY_MS_MIN);
    assertEquals(client.nack("listener", "no"), []);
    assertEquals(client.pass(2 * NACK_RETRY_MS_MIN - 1), []);
    assertEquals(client.pass(1), [OFFER[mode]]);
  }
});

Deno.test("what changes is sent at once, and waits a minute again when it is refused", () => {
  for (const mode of MODES) {
    const client = refusing(mode);
    client.pass(NACK_RETRY_MS_MIN);
    client.nack("listener", "b: cannot bind");
    const sent = client.see({ ...LISTENERS, listener: { a: "1", b: "2" } });
    assertEquals(sent.length, 1);
    client.nack("listener", "b: cannot bind");
    assertEquals(client.state.dueMs, client.nowMs + NACK_RETRY_MS_MIN);
  }
});

Deno.test("suspects are offered one by one, and some at a time: NACK_RETRIES_MAX", () => {
  for (const mode of MODES) {
    const names = Array.from(
      { length: NACK_RETRIES_MAX + 2 },
      (_, at) => `n${at}`,
    );
    const endpoints = Object.fromEntries(names.map((name) => [name, "1"]));
    const client = new ScriptedSubscriber(mode);
    client.state.profile = { ...PLAIN_PROFILE, retriesNacked: true };
    client.see({ endpoints });
    client.ask("endpoints", names);
    client.nack("endpoints", "no");
    const heard = client.received.length;
    client.pass(NACK_RETRY_MS_MIN);
    client.settle();
    assertEquals(client.received.length - heard, NACK_RETRIES_MAX);
    for (const { body } of client.received.slice(heard)) {
      assertEquals(body.resources.length, 1);
    }
    client.pass(1_000);
    client.settle();
    assertEquals(client.received.length - heard, names.length);
    assertEquals(client.statusOf("endpoints").nackedNames, []);
  }
});

Deno.test("Delta: what was sent as gone beside what was refused is sent again, once", () => {
  const client = new ScriptedSubscriber("delta");
  client.see({ cluster: { a: "1", b: "1" } });
  client.ask("cluster");
  client.ack("cluster");
  assertEquals(client.see({ cluster: { a: "2" } }), ["cluster a=2 -b"]);
  assertEquals(client.nack("cluster", "a is bad"), ["cluster -b"]);
  assertEquals(client.nack("cluster", "no"), []);
});
