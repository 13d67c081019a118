/**
 * The admin API of an agent: its links, dials and announced services, and which
 * of its own rules decides about a target.
 *
 * @module
 */

import type { AddressTrouble } from "../../agent/links/address_links.ts";
import type { LinksView } from "../../agent/links/agent_links.ts";
import type { NodeFacts } from "../../agent/node_facts.ts";
import type { AgentOptions } from "../../agent/options.ts";
import type { AgentParts } from "../../agent/shown_agent.ts";
import {
  AdminFailure,
  type AdminRoute,
  getRoute,
  isAskedText,
  postRoute,
} from "../../net/admin/admin_api.ts";
import { conduitRoutes } from "../../net/admin/conduit_routes.ts";
import {
  allWarnings,
  certificatesInUse,
  code,
  expiryOf,
  fileWarnings,
  hundredth,
  programInfo,
  trafficOf,
} from "../../net/admin/own_facts.ts";
import { LookupError, type Resolver } from "../../net/names/resolver.ts";
import { systemResolver } from "../../net/names/system_resolver.ts";
import { conduitsAnswer } from "../../platform/conduits/conduit_info.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { DialGate } from "../../policy/dial_gate.ts";
import type { RuleDecision } from "../../policy/rule_set.ts";
import { splitAddress, targetNamed } from "../../policy/target_address.ts";
import {
  ADMIN_ACTIONS,
  ADMIN_API,
  ADMIN_PATHS,
} from "../../proto/admin/api.ts";
import type {
  CertificatesAnswer,
  ConfigAnswer,
} from "../../proto/admin/list_answers.ts";
import type { PolicyAnswer } from "../../proto/admin/path_check.ts";
import type {
  LinkInfo,
  StatusAnswer,
  Warning,
} from "../../proto/admin/status_answer.ts";
import { announcedName } from "../../proto/link/control_messages.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import { isIpAddress } from "../../proto/peer/ip_address.ts";

/** See the module description. */
export function agentRoutes(agent: AgentParts): readonly AdminRoute[] {
  const { options, links, announcement, proxy } = agent;
  const { conduits, events, files } = agent.program;
  const { shownFlags, dials } = options;
  const routes = nodeRoutes({
    ...{ conduits, events },
    program: () => {
      const program = { program: "agent", id: options.agentId } as const;
      return programInfo({ ...program, ...agent.state() });
    },
    certificates: () => files.certificates,
    warnings: () => [
      ...linkWarnings(links.view(), systemTimers.now()),
      ...fileWarnings(files.notes),
    ],
    parts: () => ({
      links: linkInfos(links.view(), systemTimers.now()),
      announced: announcement.services.map((service) => {
        const name = announcedName(service);
        const problem = announcement.problemOf(name);
        return { name, problem };
      }),
      ...proxy?.parts,
    }),
    services: proxy && (({ url }) => proxy.services(url)),
    flags: shownFlags,
  });
  return [...routes, agentPolicyRoute(dials)];
}

/** What the agent decides by. */
interface AgentRules
  extends Pick<AgentOptions["dials"], "rules" | "allowUnix"> {
  /** For tests; the system's unless given. */
  readonly resolver?: Resolver;
}

/**
 * `POST /v1/policy/test` of an agent: which of its own rules decides about a
 * target. The gate for dials answers; nothing is dialed, but a name is looked
 * up if that decides.
 */
export function agentPolicyRoute(agent: AgentRules): AdminRoute {
  return postRoute(
    `${ADMIN_API}/${ADMIN_ACTIONS.policyTest}`,
    async ({ body }): Promise<PolicyAnswer> => {
      const { target } = Object(body);
      if (!isAskedText(target)) {
        throw new AdminFailure(400, {
          code: "TUN123",
          message: "Cannot test the rules: wanted { target: HOST:PORT }",
        });
      }
      return await decided(targetNamed(target), agent);
    },
    "view",
  );
}

async function decided(
  target: DialTarget,
  { rules, allowUnix, resolver = systemResolver }: AgentRules,
): Promise<PolicyAnswer> {
  let decision: RuleDecision | undefined;
  const now = rules?.();
  const gate = new DialGate(target, {
    rules: now,
    allowUnix,
    onDecision: (made) => decision = made,
  });
  const what = `${target.protocol} ${target.address}`;
  try {
    if (target.protocol === "unix") {
      await gate.admitPath(target.address, Deno.realPath);
    } else {
      const { host } = splitAddress(target);
      gate.beforeLookup();
      const isKnown = host === "" || isIpAddress(host);
      gate.admit(isKnown ? [host || "127.0.0.1"] : await resolver.lookup(host));
    }
  } catch (error) {
    const isForeseen = error instanceof DialError ||
      error instanceof LookupError || error instanceof Deno.errors.NotFound;
    if (!isForeseen) throw error;
    return {
      isAllowed: false,
      ...ruleOf(decision),
      message: `this agent does not dial ${what}: ${error.message}`,
    };
  }
  const { rule = "" } = decision ?? {};
  return {
    isAllowed: true,
    ...ruleOf(decision),
    message: `this agent may dial ${what}: ` +
      (now === undefined && rule === "none were given"
        ? "it has no rules"
        : `${rule} allows it`),
  };
}

function ruleOf(decision: RuleDecision | undefined): { rule?: string } {
  const rule = decision?.rule ?? "";
  return rule === "" ? {} : { rule };
}

/** Limit on repeated words of other programs. */
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
    roundTripMs: roundTripMs && hundredth(roundTripMs),
    silentMs: pulse && Math.max(0, Math.round(nowMs - pulse.lastHeardMs)),
    conduits: pulse?.conduits ?? 0,
    bulkConduits: pulse?.bulkConduits ?? 0,
    problem: isDoubted
      ? "the server owes a sign of life: nothing comes at present"
      : undefined,
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
    problem: problem?.slice(0, PROBLEM_LENGTH_MAX),
    nextAttemptMs: nextMs && Math.max(0, Math.round(nextMs - nowMs)),
  };
}

/** That no server is linked, or one of those that were named is not. */
export function linkWarnings(
  { held, failing }: LinksView,
  nowMs: number,
): readonly Warning[] {
  return failing.flatMap((trouble): Warning[] => {
    const { address, sinceMs, failures, problem } = trouble;
    const isShort = failures === 0 || nowMs - sinceMs < OUTAGE_MS;
    if (held.length > 0 && isShort) return [];
    const why = problem?.slice(0, PROBLEM_LENGTH_MAX) ??
      "it has not answered yet";
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

/** Of a status. */
const EXPIRIES_MAX = 10;
const TOP_MAX = 10;

/**
 * The admin API of an agent and of a proxy.
 */
export function nodeRoutes(facts: NodeFacts): readonly AdminRoute[] {
  const { flags, services } = facts;
  return [
    getRoute(ADMIN_PATHS.status, () => statusAnswer(facts)),
    getRoute(ADMIN_PATHS.certificates, (): CertificatesAnswer => ({
      certificates: soonest(facts),
    })),
    ...conduitRoutes(facts),
    ...services === undefined ? [] : [
      getRoute(ADMIN_PATHS.services, services),
    ],
    ...flags === undefined ? [] : [
      getRoute(ADMIN_PATHS.config, (): ConfigAnswer => ({ flags: flags() })),
    ],
  ];
}

function statusAnswer(facts: NodeFacts): StatusAnswer {
  const { conduits } = facts;
  const parts = facts.parts();
  const top = conduitsAnswer(conduits, { sort: "rate", limit: TOP_MAX });
  return {
    program: facts.program(),
    warnings: allWarnings(facts.warnings(), parts.sources, facts.events),
    traffic: trafficOf(conduits, conduits.dials.size),
    expiries: soonest(facts).slice(0, EXPIRIES_MAX).map(expiryOf),
    ...parts,
    top: top.conduits,
  };
}

function soonest(facts: NodeFacts): CertificatesAnswer["certificates"] {
  return certificatesInUse(facts.certificates())
    .toSorted((a, b) => a.notAfter < b.notAfter ? -1 : 1);
}
