/**
 * kube-apiserver's habits, as a real one showed them: what it rejects, and how
 * it ends connections.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import type { Carrier } from "../../proto/link/link.ts";
import { ProbeTarget } from "../support/peers/probe_target.ts";
import { RawCaller } from "../support/peers/raw_caller.ts";
import { scriptedAgent } from "../support/peers/scripted_agent.ts";
import { readToEnd, writeAll } from "../support/peers/sockets.ts";
import { eventually, Tunnel } from "../support/rigs/tunnel_harness.ts";
import { sameBytes } from "../../proto/bytes/byte_arrays.ts";

const CARRIERS: readonly Carrier[] = ["streams", "packets"];
const BANNER = "SSH-2.0-banner\r\n";
const OK = "HTTP/1.1 200 Connection Established\r\n\r\n";
const DIALS = 200;
const DIALS_AT_ONCE = 20;

/** Runs `action` {@linkcode DIALS} times. */
async function manyTimes(action: () => Promise<void>): Promise<void> {
  let left = DIALS;
  const worker = async () => {
    while (left-- > 0) await action();
  };
  await Promise.all(Array.from({ length: DIALS_AT_ONCE }, worker));
}

/**
 * An agent that says in one breath that it has connected and what the target
 * said: the worst that can happen to whoever must keep the two apart.
 */
async function hastyAgent(tunnel: Tunnel): Promise<() => void> {
  const agent = await scriptedAgent(tunnel);
  await tunnel.log.until(/^agent linked$/);
  let connectId = 0;
  let isOver = false;
  const answering = eventually("the test is over", () => {
    for (const packet of agent.packets.splice(0)) {
      if (packet.type !== "DIAL_REQ") continue;
      const { random } = packet;
      agent.say({
        type: "DIAL_RSP",
        error: "",
        connectId: ++connectId,
        random,
      });
      agent.data(connectId, BANNER);
    }
    return isOver;
  });
  return () => {
    isOver = true;
    void answering.then(() => agent.call.cancel());
  };
}

/**
 * Of {@linkcode HASTY_DIALS}; with nothing held it is none. Not all of them,
 * because a machine that is busy for 5 ms hands over both at once.
 */
const APART_MIN = 5;
const HASTY_DIALS = 10;

Deno.test("a hasty agent: nothing stands behind the 200 in one read", async () => {
  await using tunnel = await Tunnel.open();
  const dismiss = await hastyAgent(tunnel);
  let apart = 0;
  for (let index = 0; index < HASTY_DIALS; index++) {
    const path = tunnel.socketPath;
    using conn = await Deno.connect({ transport: "unix", path });
    const buffer = new Uint8Array(1024);
    const reading = conn.read(buffer);
    const request = "CONNECT node:80 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    await writeAll(conn, new TextEncoder().encode(request));
    const count = await reading;
    const head = new TextDecoder().decode(buffer.subarray(0, count!));
    assert(`${OK}${BANNER}`.startsWith(head), head);
    if (head === OK) apart++;
  }
  assert(apart >= APART_MIN, `${apart} of ${HASTY_DIALS}`);
  dismiss();
});

Deno.test("a hasty agent: a Go client receives its connection in a read of its own", async () => {
  await using tunnel = await Tunnel.open();
  const dismiss = await hastyAgent(tunnel);
  let apart = 0;
  for (let index = 0; index < HASTY_DIALS; index++) {
    const caller = await RawCaller.open(tunnel.socketPath);
    await caller.dial("node:80");
    await caller.receives(/^DATA/);
    if (caller.readsHeard.length === 2) apart++;
    caller.close();
  }
  assert(apart >= APART_MIN, `${apart} of ${HASTY_DIALS}`);
  dismiss();
});

for (const carrier of CARRIERS) {
  Deno.test(`${carrier}: nothing stands behind the 200 in one read, 200 of 200 times`, async () => {
    await using tunnel = await Tunnel.linked(carrier);
    const greeter = new ProbeTarget(BANNER);
    await manyTimes(async () => {
      const path = tunnel.socketPath;
      using conn = await Deno.connect({ transport: "unix", path });
      // Its very words, in one write.
      const request =
        `CONNECT ${greeter.address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
      const buffer = new Uint8Array(1024);
      const reading = conn.read(buffer);
      await writeAll(conn, new TextEncoder().encode(request));
      const count = await reading;
      assertEquals(new TextDecoder().decode(buffer.subarray(0, count!)), OK);
      const next = await conn.read(buffer);
      assertEquals(new TextDecoder().decode(buffer.subarray(0, next!)), BANNER);
    });
    await greeter.close();
  });

  Deno.test(`${carrier}: a Go client receives its connection before any data, 200 of 200 times`, async () => {
    await using tunnel = await Tunnel.linked(carrier);
    const greeter = new ProbeTarget(BANNER);
    await manyTimes(async () => {
      const caller = await RawCaller.open(tunnel.socketPath);
      const { connectId } = await caller.dial(greeter.address);
      await caller.receives(/^DATA/);
      assertEquals(caller.script.received, [
        `DIAL_RSP ${connectId} ok`,
        `DATA ${connectId} ${JSON.stringify(BANNER)}`,
      ]);
      // Not in one read: the client registers the connection in between.
      assertEquals(caller.readsHeard, [1, 2]);
      caller.close();
    });
    await greeter.close();
  });

  Deno.test(`${carrier}: what kube-apiserver said before it hung up is delivered`, async () => {
    await using tunnel = await Tunnel.linked(carrier);
    for (const bytes of [1024, 48 * 1024]) {
      const caller = await RawCaller.open(tunnel.socketPath);
      const { connectId } = await caller.dial(tunnel.target.address);
      const target = await tunnel.target.next();
      const last = crypto.getRandomValues(new Uint8Array(bytes));
      caller.hold();
      caller.script.data(connectId, last);
      caller.script.say({ type: "CLOSE_REQ", connectId, reset: "" });
      await caller.hangUp();
      await target.ended;
      assert(sameBytes(target.bytes, last));
      target.finish();
      assertEquals(await target.closed, { kind: "clean" });
    }
    const established = "konnectivity_network_proxy_server_established_" +
      "connections";
    await eventually(
      "no connection is left",
      async () => await tunnel.metric(established) === 0,
    );
  });

  Deno.test(`${carrier}: a caller that dies without a word leaves nothing behind`, async () => {
    await using tunnel = await Tunnel.linked(carrier);
    const caller = await RawCaller.open(tunnel.socketPath);
    await caller.dial(tunnel.target.address);
    const target = await tunnel.target.next();
    caller.close();
    await target.closed;
  });

  Deno.test(`${carrier}: CONNECT in any cutting, with early bytes behind it`, async () => {
    await using tunnel = await Tunnel.linked(carrier);
    const path = tunnel.socketPath;
    using conn = await Deno.connect({ transport: "unix", path });
    const request =
      `CONNECT ${tunnel.target.address} HTTP/1.1\r\nHost: a\r\n\r\nearly`;
    for (const byte of new TextEncoder().encode(request)) {
      await writeAll(conn, Uint8Array.of(byte));
    }
    await conn.closeWrite();
    const target = await tunnel.target.next();
    await target.ended;
    assertEquals(target.text, "early");
    target.send("late");
    target.finish();
    const answer = new TextDecoder().decode(await readToEnd(conn));
    assertEquals(answer, `${OK}late`);
  });
}
