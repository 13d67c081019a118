/**
 * What a scenario is made of, drawn from its seed before anything happens:
 * pure data, so that a part of it can be left out and the rest run again.
 *
 * @module
 */

import { type Carrier, EARLY_BYTES_MAX } from "../../proto/link/link.ts";
import { STREAM_IDS_RESERVED } from "../../proto/streams/stream_table.ts";
import { Prng } from "../../tests/support/memory/prng.ts";

/** What one end of a conduit does. −1 where an offset means never. */
export interface TalkPlan {
  /** Bytes to send; of datagrams the number. */
  readonly bytes: number;
  /** At most so much per write; the size of datagrams. */
  readonly chunkBytes: number;
  /** Says nothing for a while when it has sent so much. */
  readonly pauseAt: number;
  readonly pauseMs: number;
  /** Reads nothing for a while when it has read so much. */
  readonly stallAt: number;
  readonly stallMs: number;
  /** Answers what it reads not in the same turn. */
  readonly isLate: boolean;
  /** Gives up when it has sent and read so much in all. */
  readonly resetAt: number;
  /** Ends only when the other end has, as servers do. */
  readonly endsLast: boolean;
}

/** How callers come in. */
export type Way = "grpc" | "connect" | "direct";

/** One caller and what it asks for. */
export interface DialPlan {
  readonly number: number;
  readonly atMs: number;
  readonly way: Way;
  /** Over the connection that others use too; gRPC only. */
  readonly isShared: boolean;
  readonly protocol: "tcp" | "udp";
  /** The first bytes of the caller's, sent along with the question. */
  readonly earlyBytes: number;
  /** What the target does about it, and when. */
  readonly answer: "connect" | "refuse" | "hang";
  readonly answerMs: number;
  /** The caller gives up after so long, if it has no answer by then; or −1. */
  readonly abortMs: number;
  readonly caller: TalkPlan;
  readonly target: TalkPlan;
}

/** Something that goes wrong outside. `index` counts what there is then. */
export type Trouble =
  & { readonly atMs: number; readonly index: number }
  & (
    | {
      readonly kind: "cutLink" | "cutTarget" | "cutFrontend";
      readonly how: "reset" | "lost";
    }
    | { readonly kind: "swallowLink" | "drainAgent" | "stopAgent" }
    | {
      readonly kind: "holdLink" | "holdTarget";
      readonly forMs: number;
      readonly which: "out" | "in" | "both";
    }
  );

/** One agent. */
export interface AgentPlan {
  readonly carrier: Carrier;
  readonly links: number;
}

/** See the module description. */
export interface Plan {
  readonly seed: number;
  readonly agents: readonly AgentPlan[];
  readonly dials: readonly DialPlan[];
  readonly troubles: readonly Trouble[];
  readonly linkLatencyMs: number;
  readonly localLatencyMs: number;
  /** Of sockets' kernels. */
  readonly capacityBytes: number;
  readonly tinyCuts: number;
  /** Windows of links start here, and grow no further when that is set. */
  readonly windowBytes: number;
  readonly windowIsFixed: boolean;
  readonly firstStreamId: number;
  /** Of each process, for what is received and not consumed. */
  readonly budgetBytes: number;
  readonly dialTimeoutMs: number;
  readonly agentTimeoutMs: number;
  readonly keepaliveMs: number;
  /** CONNECT callers get their 200 before the dial is answered. */
  readonly grantsEarly: boolean;
}

const KIB = 1024;
const MIB = 1024 * KIB;

/** A budget up to this is one that scenarios run into. */
export const MEMORY_IS_SHORT_BYTES: number = 256 * KIB;

/** Time in which everything begins. */
const SPAN_MS = 4_000;

/** The scenario of `seed`. */
export function planOf(seed: number): Plan {
  // Not the generator of what happens: leaving out a part moves only that.
  const prng = new Prng((seed ^ 0x5bd1_e995) >>> 0);
  const isQuiet = prng.below(3) === 0;
  const dials = 1 + prng.below(prng.pick([2, 5, 5, 12]));
  const carriers = prng.pick<readonly Carrier[]>([
    ["streams"],
    ["streams"],
    ["packets"],
    ["streams", "packets"],
  ]);
  return {
    seed,
    agents: Array.from({ length: prng.pick([1, 1, 1, 2, 3]) }, () => ({
      carrier: prng.pick(carriers),
      links: prng.pick([1, 2, 2, 4]),
    })),
    dials: Array.from({ length: dials }, (_, at) => dialOf(at, prng, isQuiet)),
    troubles: isQuiet
      ? []
      : Array.from({ length: prng.below(4) }, () => troubleOf(prng)),
    linkLatencyMs: prng.pick([0, 0.1, 1, 10, 40]),
    localLatencyMs: prng.pick([0, 0, 0.1, 1]),
    capacityBytes: prng.pick([4 * KIB, 64 * KIB, 256 * KIB]),
    tinyCuts: prng.pick([0, 0, 5, 40]),
    windowBytes: prng.pick([64 * KIB, 64 * KIB, 34 * KIB, 100_000]),
    windowIsFixed: prng.below(2) === 0,
    // Ids run out after a few dials now and then.
    firstStreamId: prng.below(8) === 0
      ? 2 ** 31 - 1 - 2 * (STREAM_IDS_RESERVED + 1 + prng.below(10))
      : 1,
    // The least is less than one conduit of the packets carrier may hold.
    budgetBytes: [MEMORY_IS_SHORT_BYTES, 48 * KIB][prng.below(24)] ??
      256 * MIB,
    dialTimeoutMs: prng.pick([1_000, 10_000]),
    agentTimeoutMs: prng.pick([500, 5_000]),
    keepaliveMs: prng.pick([2_000, 15_000]),
    grantsEarly: prng.below(4) === 0,
  };
}

/** Leaves out all dials and troubles but these; all of a list that is not given. */
export function partOf(
  plan: Plan,
  dials?: readonly number[],
  troubles?: readonly number[],
): Plan {
  return {
    ...plan,
    dials: plan.dials.filter((_, at) => dials?.includes(at) ?? true),
    troubles: plan.troubles.filter((_, at) => troubles?.includes(at) ?? true),
  };
}

function dialOf(number: number, prng: Prng, isQuiet: boolean): DialPlan {
  const way = prng.pick<Way>(["grpc", "grpc", "connect", "connect", "direct"]);
  const protocol = way !== "connect" && prng.below(6) === 0 ? "udp" : "tcp";
  const caller = talkOf(prng, protocol, isQuiet);
  // Two that wait for each other would wait for ever, and rightly so.
  const target = { ...talkOf(prng, protocol, isQuiet) };
  if (caller.endsLast) Object.assign(target, { endsLast: false });
  const early = prng.below(3) === 0
    ? Math.min(caller.bytes, 1 + prng.below(EARLY_BYTES_MAX))
    : 0;
  return {
    number,
    // Some come before the first agent has.
    atMs: prng.pick([0, 500, 500, 500]) +
      (prng.below(2) === 0 ? prng.below(50) : prng.below(SPAN_MS)),
    way,
    isShared: prng.below(2) === 0,
    protocol,
    earlyBytes: protocol === "tcp" ? early : 0,
    answer: isQuiet ? "connect" : prng.pick([
      "connect",
      "connect",
      "connect",
      "connect",
      "refuse",
      "hang",
    ]),
    answerMs: prng.pick([0, 0, 1, prng.below(300)]),
    abortMs: !isQuiet && prng.below(8) === 0 ? prng.below(400) : -1,
    caller,
    target,
  };
}

function talkOf(
  prng: Prng,
  protocol: "tcp" | "udp",
  isQuiet: boolean,
): TalkPlan {
  const isTcp = protocol === "tcp";
  const bytes = isTcp
    ? prng.below(prng.pick([1, 100, 5_000, 5_000, 70_000, 300_000, 300_000])) +
      (prng.below(60) === 0 ? MIB : 0)
    : prng.below(30);
  const at = (odds: number) =>
    prng.below(odds) === 0 ? prng.below(bytes + 1) : -1;
  const stallMs = prng.pick([50, 1_000, prng.below(8_000), 15_000, 45_000]);
  return {
    bytes,
    chunkBytes: isTcp
      ? prng.pick([100, 1_500, 16_384, 65_536, 130_000])
      : prng.pick([4, 64, 1_200, 9_000]),
    pauseAt: at(4),
    pauseMs: prng.below(prng.pick([20, 3_000])),
    stallAt: isTcp ? at(3) : -1,
    stallMs,
    isLate: prng.below(4) === 0,
    resetAt: isQuiet ? -1 : at(7),
    endsLast: prng.below(3) === 0,
  };
}

function troubleOf(prng: Prng): Trouble {
  const atMs = prng.below(2) === 0 ? prng.below(300) : prng.below(SPAN_MS * 2);
  const index = prng.below(16);
  const how = prng.pick(["reset", "lost"] as const);
  const which = prng.pick(["out", "in", "both"] as const);
  const forMs = prng.pick([10, 300, 1_500]);
  const kind = prng.pick(
    [
      "cutLink",
      "cutLink",
      "swallowLink",
      "holdLink",
      "holdLink",
      "cutTarget",
      "holdTarget",
      "cutFrontend",
      "drainAgent",
      "stopAgent",
    ] as const,
  );
  switch (kind) {
    case "cutLink":
    case "cutTarget":
    case "cutFrontend":
      return { kind, atMs, index, how };
    case "holdLink":
    case "holdTarget":
      return { kind, atMs, index, forMs, which };
    default:
      return { kind, atMs, index };
  }
}
