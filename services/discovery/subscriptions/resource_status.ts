/**
 * What a client has of one kind, and what it should have, name by name: for
 * people who compare the two. In the line of `ClientConfig.GenericXdsConfig` of
 * xDS's client status discovery (CSDS).
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import type { ByName } from "../view/view.ts";
import type { NameSet } from "./name_set.ts";
import type { NackedResources } from "./nacked.ts";
import type { HeldRemovals } from "./removals.ts";
import type { Names } from "./shared_names.ts";

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
  readonly has?: string;
  /** The version of the view. */
  readonly wants?: string;
  readonly state: ResourceSyncState;
  /** Why it is refused: the client's message. */
  readonly reason?: string;
}

/** What a subscription knows of a kind. */
export interface SubscriptionFacts {
  readonly names: NameSet;
  readonly sent: ByName | undefined;
  readonly now: ByName;
  readonly pending: Names;
  readonly nacked: NackedResources | undefined;
  readonly held: HeldRemovals | undefined;
  readonly wasSent: boolean;
  /** Names that were new in a refused whole state, and are maybe refused. */
  readonly blamed: Names;
  /** The client's message about them. */
  readonly reason: string | undefined;
  /** The response that is not answered yet. */
  readonly inFlight: {
    readonly resources: readonly Resource[];
    readonly before: ByName | undefined;
    readonly pending: Names;
  } | undefined;
}

/** In the order of names. */
export function resourceStatusesOf(
  known: SubscriptionFacts,
): readonly ResourceStatus[] {
  const { names, sent, now, held } = known;
  const inScope = new Set(names.names);
  if (names.isWildcard) {
    for (const name of now.keys()) inScope.add(name);
    if (known.wasSent) {
      for (const name of sent?.keys() ?? []) inScope.add(name);
    }
    for (const { name } of held?.resources ?? []) inScope.add(name);
  }
  const inFlight = new Set(known.inFlight?.resources.map(({ name }) => name));
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
  const reason = known.nacked?.reasonOf(name) ?? known.reason;
  return {
    name,
    ...(has === undefined ? {} : { has }),
    ...(wanted === undefined ? {} : { wants: wanted.version }),
    state,
    ...(state === "refused" && reason !== undefined ? { reason } : {}),
  };
}

function stateOf(
  { nacked, blamed }: SubscriptionFacts,
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
  { sent, pending, nacked, held, inFlight, wasSent, blamed }: SubscriptionFacts,
  name: string,
  isInFlight: boolean,
): string | undefined {
  if (!wasSent) return undefined;
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
