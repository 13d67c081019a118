/**
 * kube-apiserver's habits, as a real one showed them: what it rejects, and how
 * it ends connections.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import type { Carrier } from "../../proto/link/link.ts";
import { ProbeTarget } from "../support/peers/probe_target.ts";
import { RawCaller } from "../support/peers/raw_caller.ts";
import { writeAll } from "../support/peers/sockets.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";

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
}
