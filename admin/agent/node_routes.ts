/**
 * The admin API of an agent and of a proxy.
 *
 * @module
 */

import type { AdminRoute } from "../../net/admin/admin_api.ts";
import { conduitRoutes } from "../../net/admin/conduit_routes.ts";
import {
  certificatesInUse,
  expiryOf,
  SEVERITY_RANK,
  slipWarnings,
  sourceWarnings,
  trafficOf,
} from "../../net/admin/own_facts.ts";
import { conduitsAnswer } from "../../platform/conduits/conduit_info.ts";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type {
  CertificatesAnswer,
  ConfigAnswer,
} from "../../proto/admin/list_answers.ts";
import type { StatusAnswer } from "../../proto/admin/status_answer.ts";
import type { NodeFacts } from "../../agent/node_facts.ts";

/** Of a status. */
const EXPIRIES_MAX = 10;
const TOP_MAX = 10;

/** See the module description. */
export function nodeRoutes(facts: NodeFacts): readonly AdminRoute[] {
  const { flags, services } = facts;
  const view = (
    path: string,
    answer: () => unknown,
  ): AdminRoute => ({ method: "GET", path, role: "view", answer });
  return [
    view(ADMIN_PATHS.status, () => statusAnswer(facts)),
    view(ADMIN_PATHS.certificates, (): CertificatesAnswer => ({
      certificates: soonest(facts),
    })),
    ...conduitRoutes(facts),
    ...services === undefined ? [] : [view(ADMIN_PATHS.services, services)],
    ...flags === undefined
      ? []
      : [view(ADMIN_PATHS.config, (): ConfigAnswer => ({ flags: flags() }))],
  ];
}

function statusAnswer(facts: NodeFacts): StatusAnswer {
  const { conduits } = facts;
  const parts = facts.parts();
  const top = conduitsAnswer(conduits, { sort: "rate", limit: TOP_MAX });
  return {
    program: facts.program(),
    warnings: [
      ...facts.warnings(),
      ...sourceWarnings(parts.sources),
      ...slipWarnings(),
    ].sort((a, b) => SEVERITY_RANK[a.severity] - SEVERITY_RANK[b.severity]),
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
