/**
 * Asks for connections, and joins the answers of several workers of one program
 * into one screen: their connections in one order, and the sum of their
 * traffic.
 *
 * @module
 */

import type { ConduitQuery } from "../../platform/conduits/conduit_info.ts";
import type {
  ConduitInfo,
  ConduitSort,
} from "../../proto/admin/node_answer.ts";
import type { Traffic } from "../../proto/admin/status_answer.ts";
import type { TopFacts } from "./top_text.ts";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";

const KEYS: Readonly<Record<ConduitSort, (one: ConduitInfo) => number>> = {
  rate: (one) => one.toTargetRate + one.fromTargetRate,
  bytes: (one) => one.toTargetBytes + one.fromTargetBytes,
  age: (one) => one.ageMs,
  idle: (one) => one.idleMs,
  queue: (one) => one.queuedBytes ?? 0,
};

/** @param all Of the first worker, then of the others. */
export function joinedFacts(
  all: readonly TopFacts[],
  sort: ConduitSort,
  limit: number,
): TopFacts {
  const [first] = all as [TopFacts];
  if (all.length === 1) return first;
  const keyOf = KEYS[sort];
  const conduits = all.flatMap(({ conduits }) => conduits.conduits)
    .sort((a, b) => keyOf(b) - keyOf(a))
    .slice(0, limit);
  const total = all.reduce((sum, { conduits }) => sum + conduits.total, 0);
  const traffic = all.map(({ status }) => status.traffic).reduce(added);
  return {
    status: { ...first.status, traffic },
    conduits: { ...first.conduits, conduits, total },
  };
}

/** Times of dials are the first one's. */
function added(one: Traffic, other: Traffic): Traffic {
  return {
    ...one,
    conduits: one.conduits + other.conduits,
    pendingDials: one.pendingDials + other.pendingDials,
    toTargetBytes: one.toTargetBytes + other.toTargetBytes,
    fromTargetBytes: one.fromTargetBytes + other.fromTargetBytes,
    toTargetRate: one.toTargetRate + other.toTargetRate,
    fromTargetRate: one.fromTargetRate + other.fromTargetRate,
    dialRate: one.dialRate + other.dialRate,
    failedDials: one.failedDials + other.failedDials,
  };
}

/** The path that asks it; empty texts ask for all. */
export function conduitsPath(question: ConduitQuery): string {
  const query = new URLSearchParams();
  for (const name of ["node", "caller", "target", "service"] as const) {
    const value = question[name] ?? "";
    if (value !== "") query.set(name, value);
  }
  query.set("sort", question.sort);
  query.set("limit", String(question.limit));
  return `${ADMIN_PATHS.conduits}?${query}`;
}
