/**
 * The links of an agent as people see them: those that stand, and for each
 * address that leads nowhere why, and when it is tried again.
 *
 * @module
 */

import { code, hundredth } from "../../net/admin/own_facts.ts";
import type { LinkInfo, Warning } from "../../proto/admin/status_answer.ts";
import type { AddressTrouble } from "../../agent/links/address_links.ts";
import type { LinksView } from "../../agent/links/agent_links.ts";

/** What somebody else says is not repeated at any length. */
const PROBLEM_LENGTH_MAX = 1_000;

/** So long without a server is more than its restart. */
const OUTAGE_MS = 10_000;

/** @param nowMs By the clock that the view is of. */
export function linkInfos(
  { held, failing }: LinksView,
  nowMs: number,
): readonly LinkInfo[] {
  return [
    ...held.map((one, at) => heldInfo(one, `${at + 1}`, nowMs)),
    ...failing.map((trouble) => failingInfo(trouble, nowMs)),
  ];
}

function heldInfo(
  { link, by, sinceMs, isDraining, isDoubted }: LinksView["held"][number],
  id: string,
  nowMs: number,
): LinkInfo {
  const pulse = link.view?.();
  const { roundTripMs } = pulse ?? {};
  return {
    id,
    peer: link.serverId,
    carrier: link.carrier,
    address: pulse?.address || by,
    since: agoText(nowMs - sinceMs),
    software: pulse?.software ?? "",
    state: isDraining ? "draining" : isDoubted ? "still" : "linked",
    ...roundTripMs === undefined ? {} : { roundTripMs: hundredth(roundTripMs) },
    ...pulse === undefined
      ? {}
      : { silentMs: Math.max(0, Math.round(nowMs - pulse.lastHeardMs)) },
    conduits: pulse?.conduits ?? 0,
    bulkConduits: pulse?.bulkConduits ?? 0,
    ...isDoubted
      ? { problem: "the server owes a sign of life: nothing comes at present" }
      : {},
  };
}

function failingInfo(trouble: AddressTrouble, nowMs: number): LinkInfo {
  const { address, isConnecting, nextMs, sinceMs, failures, problem } = trouble;
  return {
    id: address,
    peer: "",
    carrier: "streams",
    address,
    since: agoText(nowMs - sinceMs),
    software: "",
    state: isConnecting ? "connecting" : "waiting",
    conduits: 0,
    bulkConduits: 0,
    failures,
    ...problem === undefined
      ? {}
      : { problem: problem.slice(0, PROBLEM_LENGTH_MAX) },
    ...nextMs === undefined
      ? {}
      : { nextAttemptMs: Math.max(0, Math.round(nextMs - nowMs)) },
  };
}

/** That no server is linked, or one of those that were named is not. */
export function linkWarnings(
  { held, failing }: LinksView,
  nowMs: number,
): readonly Warning[] {
  return failing.flatMap((trouble): Warning[] => {
    const { address, sinceMs, failures, problem } = trouble;
    if (failures === 0 || nowMs - sinceMs < OUTAGE_MS) return [];
    const why = problem?.slice(0, PROBLEM_LENGTH_MAX) ?? "no answer";
    return [{
      code: code(held.length === 0 ? "TUN402" : "TUN401"),
      severity: held.length === 0 ? "error" : "warning",
      message: `No server is linked at ${address}: ${why}`,
      since: agoText(nowMs - sinceMs),
    }];
  });
}

function agoText(ms: number): string {
  return new Date(Date.now() - Math.max(0, ms)).toISOString();
}
