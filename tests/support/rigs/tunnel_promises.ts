/**
 * What the tunnel promises to its callers, as tests that run over every carrier
 * and every frontend, with our programs and with Konnectivity's.
 *
 * A promise knows only how to make connections; which programs carry them is
 * whoever's who made the {@linkcode PromiseRig}.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import { sameBytes } from "../../../proto/bytes/byte_arrays.ts";
import { assert, assertEquals } from "@std/assert";
import type { FrontendProtocol } from "../../../client/tunnel_route.ts";
import type { TunnelDial } from "../../../client/tunnel_dialer.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import { ConduitProbe } from "../memory/conduit_probe.ts";
import { closedAddress, ProbeTarget } from "../peers/probe_target.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

/** What makes connections: a whole tunnel, or a carrier alone. */
export interface Connecting {
  /** Both ends of one new connection. */
  connect(): Promise<{ caller: ConduitProbe; target: ConduitProbe }>;
}

/** A tunnel that is up, and what a promise may do with it. */
export interface PromiseRig extends Connecting {
  readonly protocol: FrontendProtocol;
  /** What `connect` reaches. */
  readonly target: ProbeTarget;
  dial(dial: TunnelDial): Promise<Conduit>;
  /** Breaks the link as the death of a machine does. */
  cut(): void;
}

/** One promise; fails by throwing. */
export type PromiseCheck<Rig = PromiseRig> = (rig: Rig) => Promise<void>;

type ByteCheck = PromiseCheck<Connecting>;

const writeThenClose = (bytes: number): ByteCheck => async (rig) => {
  const sent = someBytes(bytes);
  const { caller, target } = await rig.connect();
  caller.send(sent);
  caller.finish();
  await target.ended;
  assert(sameBytes(target.bytes, sent), `${target.receivedBytes} have arrived`);
  target.send(sent);
  target.finish();
  await caller.ended;
  assert(sameBytes(caller.bytes, sent), `${caller.receivedBytes} came back`);
  assertEquals(await caller.closed, { kind: "clean" });
  assertEquals(await target.closed, { kind: "clean" });
};

const targetThenClose = (bytes: number): ByteCheck => async (rig) => {
  const sent = someBytes(bytes);
  const { caller, target } = await rig.connect();
  target.send(sent);
  target.finish();
  await caller.ended;
  assert(sameBytes(caller.bytes, sent), `${caller.receivedBytes} have arrived`);
  caller.finish();
  assertEquals(await caller.closed, { kind: "clean" });
};

const BANNER = "SSH-2.0-banner\r\n";

/** Dials that are under way at the same time. */
const BANNERS_AT_ONCE = 20;

/** Promises about bytes that hold with any peer, and over a carrier alone. */
const PROMISES_ABOUT_BYTES = {
  "1 KiB written and then closed arrive": targetThenClose(KIB),
  "8 MiB written and then closed arrive": targetThenClose(8 * MIB),

  "writes of 5 MiB at once arrive whole, both ways": async (rig) => {
    const { caller, target } = await rig.connect();
    const sent = someBytes(5 * MIB);
    caller.send(sent);
    await target.received(sent.length);
    assert(sameBytes(target.bytes, sent));
    target.send(sent);
    await caller.received(sent.length);
    assert(sameBytes(caller.bytes, sent));
  },

  "20 connections at once keep their bytes apart": async (rig) => {
    const pairs = [];
    for (let index = 0; index < 20; index++) pairs.push(await rig.connect());
    for (const [index, { caller, target }] of pairs.entries()) {
      caller.send(new Uint8Array(100_000).fill(index));
      target.send(new Uint8Array(200_000).fill(255 - index));
    }
    for (const [index, { caller, target }] of pairs.entries()) {
      await target.received(100_000);
      await caller.received(200_000);
      assert(target.bytes.every((byte) => byte === index));
      assert(caller.bytes.every((byte) => byte === 255 - index));
    }
  },
} satisfies Readonly<Record<string, ByteCheck>>;

/** Promises that hold with any peer, by the sentence that each makes true. */
export const PROMISES_TO_ALL = {
  ...PROMISES_ABOUT_BYTES,

  "200 of 200 dials to a target that speaks first get its banner": async (
    rig,
  ) => {
    const greeter = new ProbeTarget(BANNER);
    const dialOne = async () => {
      const target = { protocol: "tcp", address: greeter.address };
      const caller = new ConduitProbe(await rig.dial({ target }));
      await caller.received(BANNER.length);
      assertEquals(caller.text, BANNER);
      const far = await greeter.next();
      caller.finish();
      far.finish();
      await caller.ended;
      assertEquals(caller.text, BANNER);
    };
    let left = 200;
    const dialMany = async () => {
      while (left-- > 0) await dialOne();
    };
    await Promise.all(Array.from({ length: BANNERS_AT_ONCE }, dialMany));
    await greeter.close();
  },

  "a dial that cannot succeed says why": async (rig) => {
    const target = { protocol: "tcp", address: closedAddress() };
    const error = await rig.dial({ target }).then(
      () => undefined,
      (error: Error) => error,
    );
    assert(error?.message.includes("connection refused"), error?.message);
  },
} satisfies Readonly<Record<string, PromiseCheck>>;

/** Promises that only our own two ends can keep. */
export const PROMISES_AMONG_OURS = {
  "1 KiB up, half-close, 1 KiB down: all arrive": writeThenClose(KIB),
  "8 MiB up, half-close, 8 MiB down: all arrive": writeThenClose(8 * MIB),

  "the caller's half-close leaves the way back open": async (rig) => {
    const { caller, target } = await rig.connect();
    caller.send("upload");
    caller.finish();
    await target.ended;
    assertEquals(target.text, "upload");
    assertEquals(caller.end, undefined);
    target.send(new Uint8Array(MIB));
    await caller.received(MIB);
    assertEquals(caller.hasEnded, false);
    target.finish();
    assertEquals(await caller.closed, { kind: "clean" });
  },

  "the target's half-close leaves the way in open": async (rig) => {
    const { caller, target } = await rig.connect();
    target.send("banner");
    target.finish();
    await caller.ended;
    assertEquals(caller.text, "banner");
    caller.send(new Uint8Array(MIB));
    await target.received(MIB);
    assertEquals(target.hasEnded, false);
    caller.finish();
    assertEquals(await target.closed, { kind: "clean" });
    assertEquals(await caller.closed, { kind: "clean" });
  },
} satisfies Readonly<Record<string, ByteCheck>>;

/** All that needs no more than connections, for whatever is under a tunnel. */
export const PROMISES_OF_CONNECTIONS: Readonly<Record<string, ByteCheck>> = {
  ...PROMISES_ABOUT_BYTES,
  ...PROMISES_AMONG_OURS,
};

/**
 * How connections end when they do not end in order. Not for CONNECT over a unix
 * socket: such sockets know no reset, so all that can be seen there is an end.
 */
export const PROMISES_ABOUT_ENDS = {
  "a reset by the caller is a reset at the target": async (rig) => {
    const { caller, target } = await rig.connect();
    caller.reset("gave up");
    assertEquals((await target.closed).kind, "reset");
    assertEquals(target.hasEnded, false);
  },

  "a reset by the target is no end at the caller": async (rig) => {
    const { caller, target } = await rig.connect();
    target.reset("gave up");
    assertEquals((await caller.closed).kind, "reset");
    assertEquals(caller.hasEnded, false);
  },

  "a broken link is a loss at the caller, never an end": async (rig) => {
    const { caller, target } = await rig.connect();
    target.send("the first half");
    await caller.received(14);
    rig.cut();
    const end = await caller.closed;
    assertEquals(end.kind, rig.protocol === "grpc" ? "lost" : "reset");
    assertEquals(caller.hasEnded, false);
    await target.closed;
  },
} satisfies Readonly<Record<string, PromiseCheck>>;

let random = new Uint8Array(0);

/** The same each time, and longer on demand. */
function someBytes(length: number): Uint8Array {
  if (random.length < length) random = new Uint8Array(randomBytes(length));
  return random.subarray(0, length);
}
