/**
 * The worst thing to say of a node, in one sentence with the next step.
 *
 * @module
 */

import { VERSION } from "../../platform/process/version.ts";
import type { EventInfo } from "../../proto/admin/event_answer.ts";
import type { AgentLink } from "../../proto/link/link.ts";
import { clipped } from "../../proto/peer/quoted.ts";
import type { ServerFacts } from "./server_facts.ts";
import type { ViewedNode } from "./node_view.ts";

/** A certificate that renews itself does so long before this part of its life. */
const RENEWAL_OVERDUE_PART = 0.2;

/** A round trip so much longer than the shortest one seen is a queue. */
const SLOW_RATIO = 3;
const SLOW_MS = 50;

/** Longest sentence of a failed dial that is repeated. */
const TROUBLE_LENGTH_MAX = 300;

/** To read times takes longer than all the rest: once for each record. */
const TERMS = new WeakMap<
  object,
  { readonly fromMs: number; readonly toMs: number }
>();

/** What else is known when it is asked for. */
export interface ProblemFacts {
  readonly trouble: EventInfo | undefined;
  readonly isDuplicate: boolean;
}

/** @returns `undefined` when there is nothing to say. */
export function problemOf(
  facts: ServerFacts,
  node: ViewedNode,
  { trouble, isDuplicate }: ProblemFacts,
): string | undefined {
  const { name, record, links, state } = node;
  if (record !== undefined && "damage" in record) {
    return `its record cannot be read: ${record.damage}`;
  }
  if (state === "pending") {
    return `it waits for approval: tunnel node approve ${name}`;
  }
  if (isDuplicate) {
    return "two machines use its identity: tunnel node describe " +
      `${name} says from where; if the key may be stolen, tunnel node revoke ` +
      name;
  }
  const expiry = expiryProblem(node);
  if (expiry !== undefined) return expiry;
  if (links.length === 0) return undefined;
  return linkProblem(facts, links) ??
    (trouble === undefined ? undefined : troubleText(trouble)) ??
    versionProblem(links.at(-1)!);
}

/** Of one link, for people who look at the links of a node. */
export function linkProblem(
  { registry, timers }: ServerFacts,
  links: readonly AgentLink[],
): string | undefined {
  const staying = links.filter(({ isDraining }) => !isDraining);
  if (staying.length === 0) {
    return "all its links drain: its agent, or who asked it to, goes elsewhere";
  }
  if (!staying.some((link) => registry.isHealthy(link))) {
    const { askedMs } = staying[0]!;
    const seconds = askedMs === undefined
      ? ""
      : ` for ${((timers.now() - askedMs) / 1_000).toFixed(1)} s`;
    return `it gives no sign of life${seconds}: its machine, its process or ` +
      "the network stands still";
  }
  const slow = staying.every((link) => slowness(link) !== undefined)
    ? slowness(staying[0]!)
    : undefined;
  return slow;
}

function slowness(
  { roundTripMs, leastRoundTripMs }: AgentLink,
): string | undefined {
  if (roundTripMs === undefined || leastRoundTripMs === undefined) {
    return undefined;
  }
  const isSlow = roundTripMs > leastRoundTripMs * SLOW_RATIO &&
    roundTripMs > leastRoundTripMs + SLOW_MS;
  if (!isSlow) return undefined;
  return `a round trip takes ${Math.round(roundTripMs)} ms, at best ` +
    `${Math.round(leastRoundTripMs)} ms: a queue on the way is full, or its ` +
    "machine is busy";
}

function expiryProblem({ name, record }: ViewedNode): string | undefined {
  if (record === undefined || !("state" in record)) return undefined;
  if (record.state !== "approved") return undefined;
  const { issuedAt, expiresAt } = record.certificate ?? {};
  if (issuedAt === undefined || expiresAt === undefined) return undefined;
  let term = TERMS.get(record);
  if (term === undefined) {
    term = { fromMs: Date.parse(issuedAt), toMs: Date.parse(expiresAt) };
    TERMS.set(record, term);
  }
  const { fromMs, toMs } = term;
  const leftMs = toMs - Date.now();
  if (leftMs <= 0) {
    return `its certificate expired at ${expiresAt}: start its agent, which ` +
      `asks for another one; tunnel node describe ${name} has its last events`;
  }
  if (!(leftMs < (toMs - fromMs) * RENEWAL_OVERDUE_PART)) return undefined;
  return `its certificate expires at ${expiresAt} and has not renewed itself: ` +
    "the log of its agent says what is in the way";
}

function troubleText({ code, message, times = 1 }: EventInfo): string {
  if (code === "TUN513") {
    return "its agent has no file descriptors left: raise the limit of its " +
      "process (ulimit -n, LimitNOFILE=)";
  }
  const often = times === 1 ? "" : ` (${times} times)`;
  return clipped(message, TROUBLE_LENGTH_MAX) + often;
}

function versionProblem({ peer: { software } }: AgentLink): string | undefined {
  const version = /^tunnel\/(\d+)\.(\d+)\.(\d+)/.exec(software);
  const own = /^(\d+)\.(\d+)\.(\d+)/.exec(VERSION);
  if (version === null || own === null) return undefined;
  for (let part = 1; part <= 3; part++) {
    const difference = Number(version[part]) - Number(own[part]);
    if (difference > 0) return undefined;
    if (difference < 0) {
      return `it runs ${software}, older than this server (${VERSION})`;
    }
  }
  return undefined;
}
