/**
 * One stream's responses and the client's answers, for people: Pilot's syncz,
 * per kind.
 *
 * @module
 */

import type { Resource, ResourceKind } from "../../../proto/xds/resource.ts";
import type { SentEarly } from "./warming.ts";
import type { ByName } from "../view/view.ts";
import type { Names, NameSet } from "./name_set.ts";
import type { AckTracker } from "./ack_tracker.ts";
import type { HeldRemovals } from "./removals.ts";

/** A response, and when it was sent or answered. */
export interface StampedResponse {
  readonly version: string;
  readonly nonce: string;
  readonly atMs: number;
}

/** A response that the client refused. */
export interface NackedResponse extends StampedResponse {
  /** The client's message, cut to `NACK_MESSAGE_MAX`. */
  readonly message: string;
  /** Of `google.rpc.Code`; clients choose it as they like. */
  readonly code: number;
  /** The resources that the client named, or all of the response. */
  readonly names: readonly string[];
}

/** One kind on one stream. */
export interface KindStatus {
  readonly kind: ResourceKind;
  readonly wildcard: boolean;
  /** Names that the client asked for; a wildcard is none of them. */
  readonly names: number;
  readonly sent: StampedResponse | undefined;
  readonly acked: StampedResponse | undefined;
  /** The last refusal, until a later response is acknowledged without any. */
  readonly nacked: NackedResponse | undefined;
  /** Since when a response is not answered. */
  readonly inFlightSinceMs: number | undefined;
  /** Whether the client should have something that it was not sent. */
  readonly isBehind: boolean;
  /** Resources that the client refused; they are not sent until they change. */
  readonly nackedNames: readonly string[];
  /** Whether any resource, or the last answered response, is refused. */
  readonly isRefused: boolean;
  readonly responses: number;
  readonly acks: number;
  readonly nacks: number;
  /** Requests about a response that was not the last (SotW: ignored). */
  readonly stale: number;
}

/** One stream. */
export interface StreamStatus {
  /** In the order in which they are sent; only what was asked for. */
  readonly kinds: readonly KindStatus[];
  /** Clusters that listeners and routes wait for, some of them. */
  readonly waitsFor: readonly string[];
  /** When listeners or routes were last sent before their clusters were acked. */
  readonly early: SentEarly | undefined;
  /** Requested, but not served here. */
  readonly foreignTypes: readonly string[];
}

/**
 * - `synced`: the client acknowledged the resource of the view.
 * - `waiting`: it was sent, and has not answered.
 * - `behind`: it was not sent yet.
 * - `refused`: the client refuses it.
 * - `leaving`: the client has a removed resource.
 * - `absent`: the client asks for a name that does not exist.
 */
export type ResourceSyncState =
  | "synced"
  | "waiting"
  | "behind"
  | "refused"
  | "leaving"
  | "absent";

/** One name of one client. */
export interface ResourceStatus {
  readonly name: string;
  /** The version that the client acknowledged last, if known. */
  readonly has?: string | undefined;
  /** The version of the view. */
  readonly wants?: string | undefined;
  readonly state: ResourceSyncState;
  /** Why it is refused: the client's message. */
  readonly reason?: string | undefined;
}

/** A subscription's facts about a kind. */
interface SubscriptionFacts {
  readonly names: NameSet;
  readonly sent: ByName | undefined;
  readonly now: ByName;
  readonly pending: Names;
  readonly held: HeldRemovals | undefined;
  readonly acks: AckTracker;
}

/** In the order of names. */
export function resourceStatusesOf(
  known: SubscriptionFacts,
): readonly ResourceStatus[] {
  const { names, sent, now, held } = known;
  const inScope = new Set(names.names);
  if (names.isWildcard) {
    for (const name of now.keys()) inScope.add(name);
    if (known.acks.nonce !== "") {
      for (const name of sent?.keys() ?? []) inScope.add(name);
    }
    for (const { name } of held?.resources ?? []) inScope.add(name);
  }
  const inFlight = new Set(
    known.acks.inFlight?.resources.map(({ name }) => name),
  );
  return [...inScope].sort().map((name) =>
    statusOf(known, name, inFlight.has(name))
  );
}

function statusOf(
  known: SubscriptionFacts,
  name: string,
  isInFlight: boolean,
): ResourceStatus {
  const wanted = known.now.get(name);
  const has = versionHad(known, name, isInFlight);
  const state = stateOf(known, wanted, has, isInFlight);
  const reason = known.acks.nacked?.reasonOf(name) ?? known.acks.reason;
  return {
    name,
    has,
    wants: wanted?.version,
    state,
    reason: state === "refused" ? reason : undefined,
  };
}

function stateOf(
  { acks: { nacked, blamed } }: SubscriptionFacts,
  wanted: Resource | undefined,
  has: string | undefined,
  isInFlight: boolean,
): ResourceSyncState {
  if (wanted === undefined) return has === undefined ? "absent" : "leaving";
  if (nacked?.isNacked(wanted)) return "refused";
  if (isInFlight && has !== wanted.version) return "waiting";
  if (blamed.has(wanted.name)) return "refused";
  return has === wanted.version ? "synced" : "behind";
}

function versionHad(
  { sent, pending, held, acks }: SubscriptionFacts,
  name: string,
  isInFlight: boolean,
): string | undefined {
  const { nacked, inFlight, blamed } = acks;
  if (acks.nonce === "") return undefined;
  if (isInFlight) {
    return inFlight!.pending.has(name)
      ? undefined
      : inFlight!.before?.get(name)?.version;
  }
  const kept = held?.get(name);
  if (kept !== undefined) return kept.version;
  if (pending.has(name) || blamed.has(name)) return undefined;
  const last = sent?.get(name);
  if (last === undefined) return undefined;
  return nacked?.isNacked(last) ? nacked.standIn(last)?.version : last.version;
}
