/**
 * How many times the line between server and agent is crossed before the first
 * answer: shown by blocking one direction, not by measuring time.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { forward } from "../../client/forward.ts";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import { openDialer } from "../../client/tunnel_dialer.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { EARLY_WAIT_MS } from "../../net/stream/first_bytes.ts";
import { conduitOf } from "../../net/stream/stream_conduit.ts";
import { denoStream } from "../../net/stream/platform_stream.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import { ConduitProbe } from "../support/memory/conduit_probe.ts";
import type { CuttableLine } from "../support/peers/cuttable_line.ts";
import { Trouble } from "../support/memory/trouble.ts";
import {
  portOf,
  Tunnel,
  type TunnelConfig,
} from "../support/rigs/tunnel_harness.ts";

const FRONTENDS = ["unix", "tcp"] as const;
const ASK = new TextEncoder().encode("ask");

/**
 * Waits for what a caller says first for as long as it takes: on a busy machine
 * it comes later than a forward waits, and this is not about that.
 */
const PATIENT_TIMERS: Timers = {
  now: systemTimers.now,
  after: (delayMs, callback) =>
    delayMs === EARLY_WAIT_MS
      ? { cancel: () => {} }
      : systemTimers.after(delayMs, callback),
};

/** A tunnel of the streams carrier and its line, which the agent goes `up`. */
async function open(
  config: TunnelConfig,
): Promise<{ tunnel: Tunnel; line: CuttableLine }> {
  const tunnel = await Tunnel.open(config);
  const line = tunnel.newLine();
  await tunnel.link({ carrier: "streams", serverPort: line.port });
  return { tunnel, line };
}

/**
 * The question reaches the target though the agent cannot say a word, and the
 * answer comes though the server cannot: one round trip.
 */
async function assertOneRoundTrip(
  { tunnel, line }: { tunnel: Tunnel; line: CuttableLine },
  ask: () => Promise<ConduitProbe>,
): Promise<void> {
  line.block("up");
  const asking = ask();
  const target = await tunnel.target.next();
  await target.received(ASK.length);
  assertEquals(target.text, "ask");
  line.block("down");
  line.unblock("up");
  target.send("answer");
  const caller = await asking;
  await caller.received(6);
  assertEquals(caller.text, "answer");
  line.unblock("down");
  caller.finish();
  target.finish();
  assertEquals(await caller.closed, { kind: "clean" });
}

function dialing(
  tunnel: Tunnel,
  protocol: FrontendProtocol,
  earlyData?: Uint8Array,
): Promise<Conduit> {
  const target = { protocol: "tcp", address: tunnel.target.address };
  return tunnel.dial(protocol, {
    target,
    ...(earlyData === undefined ? {} : { earlyData }),
  });
}

for (const frontend of FRONTENDS) {
  for (const protocol of ["grpc", "http-connect"] as const) {
    Deno.test(`${protocol} over ${frontend}: early data is answered after one round trip`, async () => {
      const scene = await open({ frontend });
      await using tunnel = scene.tunnel;
      await assertOneRoundTrip(
        scene,
        async () => new ConduitProbe(await dialing(tunnel, protocol, ASK)),
      );
    });

    Deno.test(`${protocol} over ${frontend}: a forwarded port costs one round trip`, async () => {
      const scene = await open({ frontend });
      await using tunnel = scene.tunnel;
      const dialer = openDialer(await tunnel.route(protocol));
      const trouble = new Trouble();
      const port = await forward({
        hostname: "127.0.0.1",
        port: 0,
        address: tunnel.target.address,
        protocol: "tcp",
        dialer,
        onRefused: trouble.report,
        onProblem: trouble.report,
        timers: PATIENT_TIMERS,
      });
      await trouble.instead(assertOneRoundTrip(scene, async () => {
        const conn = await Deno.connect({
          hostname: "127.0.0.1",
          port: portOf(port.listening),
        });
        const caller = new ConduitProbe(conduitOf(denoStream(conn)));
        caller.send(ASK);
        return caller;
      }));
      await port.close();
      dialer.close();
    });
  }

  Deno.test(`CONNECT over ${frontend}: an early 200 costs one round trip`, async () => {
    const scene = await open({ frontend, connectEarly200: true });
    await using tunnel = scene.tunnel;
    await assertOneRoundTrip(scene, async () => {
      // Answered although the agent cannot say a word.
      const caller = new ConduitProbe(await dialing(tunnel, "http-connect"));
      caller.send(ASK);
      return caller;
    });
  });

  Deno.test(`CONNECT over ${frontend}: without an early 200 nothing is granted early`, async () => {
    const { tunnel: opened, line } = await open({ frontend });
    await using tunnel = opened;
    line.block("up");
    let isGranted = false;
    const caller = dialing(tunnel, "http-connect").then((conduit) => {
      isGranted = true;
      return new ConduitProbe(conduit);
    });
    const target = await tunnel.target.next();
    assertEquals(isGranted, false);
    line.unblock("up");
    (await caller).finish();
    target.finish();
  });
}
