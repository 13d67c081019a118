/**
 * The problems of a node, the worst first, each in one sentence with the next
 * step.
 *
 * @module
 */

import { code } from "../../net/admin/own_facts.ts";
import { VERSION } from "../../platform/process/version.ts";
import type { EventInfo } from "../../proto/admin/list_answers.ts";
import type { AgentLink } from "../../proto/link/link.ts";
import { hostOf } from "../../proto/peer/host_port.ts";
import { clipped } from "../../proto/peer/quoted.ts";
import { compareVersions, versionIn } from "../../proto/peer/peer_identity.ts";
import type { ServerParts } from "../../server/assembly/server_admin_port.ts";
import type { ViewedNode } from "./node_view.ts";

/**
 * A certificate with automatic renewal is renewed long before this part of its
 * life.
 */
const RENEWAL_OVERDUE_PART = 0.2;

/** A round trip so much longer than the shortest one seen is a queue. */
const SLOW_RATIO = 3;
const SLOW_MS = 50;

/** Longest sentence of a failed dial that is repeated. */
const TROUBLE_LENGTH_MAX = 300;

/** Machines of one identity that are named. */
const PLACES_MAX = 3;

/** Parsing times takes longer than all the rest: done once for each record. */
const TERMS = new WeakMap<
  object,
  { readonly fromMs: number; readonly toMs: number }
>();

/** What went wrong with a node lately. */
export interface NodeTrouble {
  /** The last failed dial, or warning. */
  readonly newest: EventInfo;
  /** The last dial for which its agent had no descriptor. */
  readonly exhausted: EventInfo | undefined;
}

/** What else is known when it is asked for. */
export interface ProblemFacts {
  readonly trouble: NodeTrouble | undefined;
  readonly isDuplicate: boolean;
}

/** One thing to say. */
export interface NodeProblem {
  /** A stable code that `tunnel explain` knows. */
  readonly code?: string | undefined;
  readonly message: string;
}

/** The worst first. */
export function* problemsOf(
  facts: ServerParts,
  node: ViewedNode,
  { trouble, isDuplicate }: ProblemFacts,
): Generator<NodeProblem, void> {
  const { name, record, links, state } = node;
  if (record !== undefined && "damage" in record) {
    yield {
      code: code("TUN801"),
      message: `its record cannot be read: ${record.damage}`,
    };
  }
  if (state === "pending") {
    yield {
      code: code("TUN310"),
      message: `it waits for approval: tunnel node approve ${name}`,
    };
  }
  if (isDuplicate) {
    yield {
      code: code("TUN313"),
      message: `two machines use its identity, ${placesOf(links)}; if the ` +
        `key may be stolen, tunnel node revoke ${name}`,
    };
  }
  const expiry = expiryProblem(node);
  if (expiry !== undefined) yield { code: code("TUN202"), message: expiry };
  if (links.length === 0) return;
  const link = linkProblem(facts, links);
  if (link !== undefined) yield { message: link };
  if (trouble !== undefined) yield* troubles(facts, links, trouble);
  const version = versionProblem(links.at(-1)!);
  if (version !== undefined) yield { code: code("TUN422"), message: version };
}

/** For one link, shown to people who look at a node's links. */
export function linkProblem(
  { registry, timers }: ServerParts,
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
      "the network is blocked";
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

function expiryProblem({ joined }: ViewedNode): string | undefined {
  if (joined?.state !== "approved") return undefined;
  const { issuedAt, expiresAt } = joined.certificate ?? {};
  if (issuedAt === undefined || expiresAt === undefined) return undefined;
  let term = TERMS.get(joined);
  if (term === undefined) {
    term = { fromMs: Date.parse(issuedAt), toMs: Date.parse(expiresAt) };
    TERMS.set(joined, term);
  }
  const { fromMs, toMs } = term;
  const leftMs = toMs - Date.now();
  if (leftMs <= 0) {
    return `its certificate expired at ${expiresAt}: start its agent, which ` +
      `requests another one; its last events name the obstacle`;
  }
  if (!(leftMs < (toMs - fromMs) * RENEWAL_OVERDUE_PART)) return undefined;
  return `its certificate expires at ${expiresAt} and has not renewed itself: ` +
    "the log of its agent names the obstacle";
}

function* troubles(
  { history }: ServerParts,
  links: readonly AgentLink[],
  { newest, exhausted }: NodeTrouble,
): Iterable<NodeProblem> {
  if (exhausted !== undefined) {
    const atMs = Date.parse(exhausted.at);
    // A restarted agent has other descriptors.
    const isSame = links.some((link) =>
      (history.linkFacts(link)?.sinceMs ?? 0) <= atMs
    );
    if (isSame) {
      yield {
        code: code("TUN513"),
        message: "its agent has no file descriptors left: raise the limit of " +
          "its process (ulimit -n, LimitNOFILE=)",
      };
    }
  }
  if (newest === exhausted) return;
  const { message, times = 1 } = newest;
  const often = times === 1 ? "" : ` (${times} times)`;
  const what = newest.kind === "dial-failed" ? "a dial failed" : "a warning";
  yield {
    code: newest.code,
    // The cause may be over, which the next dial will show.
    message: `${what} in the last 5 minutes: ` +
      clipped(message, TROUBLE_LENGTH_MAX) + often,
  };
}

/** The addresses of its links: of two machines either may be here. */
function placesOf(links: readonly AgentLink[]): string {
  const hosts = new Set(links.map(({ peer }) => hostOf(peer.remoteAddress)));
  const few = [...hosts].slice(-PLACES_MAX).join(" and ");
  return few === "" ? "none is linked now" : `linked now from ${few}`;
}

function versionProblem({ peer: { software } }: AgentLink): string | undefined {
  const version = versionIn(software);
  const order = version === undefined ? 0 : compareVersions(version, VERSION);
  if (order === 0) return undefined;
  return order < 0
    ? `it runs ${software}, older than this server (${VERSION})`
    : `it runs ${software}, newer than this server (${VERSION}): servers are ` +
      "upgraded first";
}
