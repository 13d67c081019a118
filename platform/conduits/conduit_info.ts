/**
 * Live conduits as people are shown them: what `/v1/conduits` answers, the same
 * for a server, an agent and a service proxy.
 *
 * @module
 */

import {
  CONDUIT_SORTS,
  type ConduitInfo,
  type ConduitsAnswer,
  type ConduitSort,
} from "../../proto/admin/node_answer.ts";
import type { ConnectionFacts } from "../log/connection_log.ts";
import { LiveConduit } from "./live_conduit.ts";
import type { LiveConduits, LiveDial } from "./live_conduits.ts";
import { RATE_TICK_MS } from "./rate_samples.ts";

/** How many are listed unless a number is said, and at most. */
export const CONDUITS_LISTED = { usual: 100, most: 10_000 } as const;

/** Which ones are wanted. */
export interface ConduitQuery {
  readonly sort: ConduitSort;
  readonly limit: number;
  readonly node?: string | undefined;
  readonly caller?: string | undefined;
  readonly target?: string | undefined;
  readonly service?: string | undefined;
}

/** A link that owes a sign of life for this long carries nothing. */
const STILL_MS = 500;

/**
 * @param params Of the URL. @throws {RangeError} One sentence for the sender.
 */
export function conduitQuery(params: URLSearchParams): ConduitQuery {
  const sort = params.get("sort") ?? "rate";
  if (!(CONDUIT_SORTS as readonly string[]).includes(sort)) {
    throw new RangeError(
      `Cannot sort by that: wanted one of ${CONDUIT_SORTS.join(", ")}`,
    );
  }
  const text = (name: string) => params.get(name) || undefined;
  return {
    sort: sort as ConduitSort,
    limit: limitOf(params, CONDUITS_LISTED),
    node: text("node"),
    caller: text("caller"),
    target: text("target"),
    service: text("service"),
  };
}

/** `?limit=` @throws {RangeError} One sentence for the sender. */
export function limitOf(
  params: URLSearchParams,
  limits: { readonly usual: number; readonly most: number },
): number {
  const text = params.get("limit");
  if (text === null) return limits.usual;
  if (!/^\d{1,9}$/.test(text)) {
    throw new RangeError(
      `Cannot read limit: wanted a number from 0 to ${limits.most}`,
    );
  }
  return Math.min(Number(text), limits.most);
}

/** The biggest matches of a query, and the number of all. */
export function conduitsAnswer(
  list: LiveConduits,
  query: ConduitQuery,
): ConduitsAnswer {
  const { limit, sort } = query;
  const nowMs = list.nowMs;
  const wanted: LiveConduit[] = [];
  for (const conduit of list.all()) {
    if (matches(conduit.facts, query)) wanted.push(conduit);
  }
  const dials = [...list.dials].filter(({ facts }) => matches(facts, query));
  const keys = new Float64Array(wanted.length);
  for (const [at, conduit] of wanted.entries()) {
    keys[at] = keyOf(list, conduit, sort, nowMs);
  }
  const biggest = indexesOfBiggest(keys, limit)
    .map((at) => conduitInfo(list, wanted[at]!, nowMs));
  const begun = dials.slice(0, Math.max(0, limit - biggest.length))
    .map((dial) => dialInfo(dial, nowMs));
  return {
    conduits: [...biggest, ...begun],
    total: wanted.length + dials.length,
  };
}

/** One, by its id. */
export function conduitInfoOf(
  list: LiveConduits,
  id: string,
): ConduitInfo | undefined {
  const found = list.find(id);
  if (found === undefined) return undefined;
  return found instanceof LiveConduit
    ? conduitInfo(list, found, list.nowMs)
    : dialInfo(found, list.nowMs);
}

function conduitInfo(
  list: LiveConduits,
  conduit: LiveConduit,
  nowMs: number,
): ConduitInfo {
  const { id, facts, askedMs, openedMs, carrier, state } = conduit;
  const { toTargetRate, fromTargetRate, movedMs } = list.flow(conduit, nowMs);
  const { roundTripMs } = carrier ?? {};
  const waitsFor = waitOf(conduit, nowMs, nowMs - movedMs);
  return {
    id,
    state: conduit.isEnding ? "closing" : "open",
    ...who(facts),
    startedAt: wallTime(askedMs, nowMs),
    ageMs: Math.round(nowMs - askedMs),
    dialMs: Math.round(openedMs - askedMs),
    toTargetBytes: conduit.sentBytes,
    fromTargetBytes: conduit.receivedBytes,
    toTargetRate,
    fromTargetRate,
    roundTripMs: roundTripMs && rounded(roundTripMs),
    windowBytes: state?.windowBytes,
    queuedBytes: queuedBytesOf(conduit),
    waitsFor,
    idleMs: Math.round(nowMs - movedMs),
  };
}

function dialInfo(
  { id, facts, askedMs }: LiveDial,
  nowMs: number,
): ConduitInfo {
  const ageMs = Math.round(nowMs - askedMs);
  return {
    id,
    state: "dialing",
    ...who(facts),
    startedAt: wallTime(askedMs, nowMs),
    ageMs,
    toTargetBytes: 0,
    fromTargetBytes: 0,
    toTargetRate: 0,
    fromTargetRate: 0,
    waitsFor: "dial",
    idleMs: ageMs,
  };
}

function who(
  { who, from, node, forwardedTo, service, target }: ConnectionFacts,
): Pick<
  ConduitInfo,
  "caller" | "from" | "node" | "forwardedTo" | "service" | "target"
> {
  return {
    caller: who ?? "",
    from,
    node,
    forwardedTo,
    service,
    target: target === undefined ? "" : `${target.protocol} ${target.address}`,
  };
}

/** Why no bytes move, as far as this side can see. */
function waitOf(
  conduit: LiveConduit,
  nowMs: number,
  idleMs: number,
): ConduitInfo["waitsFor"] {
  const { askedMs } = conduit.carrier ?? {};
  if (askedMs !== undefined && nowMs - askedMs >= STILL_MS) return "link";
  const { state } = conduit;
  if (state !== undefined && state.unreadBytes > 0) return "caller";
  if (state?.isFull === true || state?.windowBytes === 0) return "target";
  return idleMs >= RATE_TICK_MS ? "nothing" : undefined;
}

/**
 * Bytes in the transfer between its two sides, and on the way to the target.
 */
function queuedBytesOf(conduit: LiveConduit): number {
  return conduit.queuedBytes + (conduit.state?.unsentBytes ?? 0);
}

function keyOf(
  list: LiveConduits,
  conduit: LiveConduit,
  sort: ConduitSort,
  nowMs: number,
): number {
  if (sort === "age") return nowMs - conduit.askedMs;
  if (sort === "bytes") return conduit.sentBytes + conduit.receivedBytes;
  if (sort === "queue") return queuedBytesOf(conduit);
  const flow = list.flow(conduit, nowMs);
  if (sort === "idle") return nowMs - flow.movedMs;
  return flow.toTargetRate + flow.fromTargetRate;
}

/** The biggest first. Ten thousand numbers are sorted, not as many objects. */
function indexesOfBiggest(keys: Float64Array, limit: number): number[] {
  if (limit === 0 || keys.length === 0) return [];
  const sorted = keys.slice().sort();
  const least = sorted[Math.max(0, sorted.length - limit)]!;
  let ofLeast = limit - sorted.reduce((n, key) => key > least ? n + 1 : n, 0);
  const found: number[] = [];
  for (const [at, key] of keys.entries()) {
    if (key > least || key === least && ofLeast-- > 0) found.push(at);
  }
  return found.sort((a, b) => keys[b]! - keys[a]!);
}

function matches(facts: ConnectionFacts, query: ConduitQuery): boolean {
  const { node, caller, target, service } = query;
  return (node === undefined || facts.node === node) &&
    (caller === undefined || facts.who?.includes(caller) === true) &&
    (service === undefined || facts.service === service) &&
    (target === undefined || facts.target?.address.includes(target) === true);
}

/** A time of the clock as the machine's; RFC 3339. */
export function wallTime(atMs: number, nowMs: number): string {
  return new Date(Date.now() - (nowMs - atMs)).toISOString();
}

/** Rounded to a hundredth: microseconds are noise. */
function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}
