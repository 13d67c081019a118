/**
 * What a client has of one kind, and what it should have, name by name: for
 * people who compare the two.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import type { ByName } from "../view/view.ts";
import type { NameSet } from "./name_set.ts";
import type { Parking } from "./parking.ts";
import type { HeldRemovals } from "./removals.ts";
import type { Names } from "./shared_names.ts";

/**
 * - `synced`: it has taken what there is.
 * - `waiting`: it was told, and has not answered.
 * - `behind`: it was not told yet.
 * - `refused`: it does not want what there is.
 * - `leaving`: it has what there is no more.
 * - `absent`: it asks for what there is not.
 */
export type HoldingState =
  | "synced"
  | "waiting"
  | "behind"
  | "refused"
  | "leaving"
  | "absent";

/** One name. */
export interface Holding {
  readonly name: string;
  /** The version that it took last, as far as that is known. */
  readonly has?: string;
  /** The version that there is. */
  readonly wants?: string;
  readonly state: HoldingState;
  /** Why it is refused, in the client's words. */
  readonly reason?: string;
}

/** What a subscription knows. */
export interface Known {
  readonly names: NameSet;
  readonly told: ByName | undefined;
  readonly now: ByName;
  readonly owed: Names;
  readonly parking: Parking | undefined;
  readonly held: HeldRemovals | undefined;
  readonly wasSent: boolean;
  /** Maybe refused: new in a whole state that the client refused. */
  readonly blamed: Names;
  /** The client's words about that. */
  readonly reason: string | undefined;
  /** Of the response that waits for its answer. */
  readonly flight: {
    readonly resources: readonly Resource[];
    readonly before: ByName | undefined;
    readonly owed: Names;
  } | undefined;
}

/** In the order of names. */
export function holdingsOf(known: Known): readonly Holding[] {
  const { names, told, now, held } = known;
  const inScope = new Set(names.names);
  if (names.isWildcard) {
    for (const name of now.keys()) inScope.add(name);
    if (known.wasSent) {
      for (const name of told?.keys() ?? []) inScope.add(name);
    }
    for (const { name } of held?.resources ?? []) inScope.add(name);
  }
  const inFlight = new Set(known.flight?.resources.map(({ name }) => name));
  return [...inScope].sort().map((name) =>
    holdingOf(known, name, inFlight.has(name))
  );
}

function holdingOf(known: Known, name: string, isInFlight: boolean): Holding {
  const wanted = known.now.get(name);
  const has = versionHad(known, name, isInFlight);
  const state = stateOf(known, wanted, has, isInFlight);
  const reason = known.parking?.reasonOf(name) ?? known.reason;
  return {
    name,
    ...(has === undefined ? {} : { has }),
    ...(wanted === undefined ? {} : { wants: wanted.version }),
    state,
    ...(state === "refused" && reason !== undefined ? { reason } : {}),
  };
}

function stateOf(
  { parking, blamed }: Known,
  wanted: Resource | undefined,
  has: string | undefined,
  isInFlight: boolean,
): HoldingState {
  if (wanted === undefined) return has === undefined ? "absent" : "leaving";
  if (parking?.holds(wanted)) return "refused";
  if (isInFlight && has !== wanted.version) return "waiting";
  if (blamed.has(wanted.name)) return "refused";
  return has === wanted.version ? "synced" : "behind";
}

function versionHad(
  { told, owed, parking, held, flight, wasSent, blamed }: Known,
  name: string,
  isInFlight: boolean,
): string | undefined {
  if (!wasSent) return undefined;
  if (isInFlight) {
    return flight!.owed.has(name)
      ? undefined
      : flight!.before?.get(name)?.version;
  }
  const kept = held?.get(name);
  if (kept !== undefined) return kept.version;
  if (owed.has(name) || blamed.has(name)) return undefined;
  const last = told?.get(name);
  if (last === undefined) return undefined;
  return parking?.holds(last) ? parking.standIn(last)?.version : last.version;
}
