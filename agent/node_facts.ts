/**
 * The admin API's facts about a program on a node, an agent or a proxy, from
 * its parts.
 *
 * @module
 */

import type { AdminRoute } from "../net/admin/admin_api.ts";
import type { TermSource } from "../net/tls/trust/expiry.ts";
import type { LiveConduits } from "../platform/conduits/live_conduits.ts";
import type { RecentEvents } from "../platform/log/recent_events.ts";
import type { ConfigAnswer } from "../proto/admin/list_answers.ts";
import type {
  ProgramInfo,
  StatusAnswer,
  Warning,
} from "../proto/admin/status_answer.ts";

/** What agents and proxies have in common. */
export interface NodeFacts {
  readonly conduits: LiveConduits;
  readonly events: RecentEvents;
  program(): ProgramInfo;
  /** Certificates in use, by purpose. */
  certificates(): readonly TermSource[];
  /** What only this kind of program warns of. */
  warnings(): readonly Warning[];
  /** What only this kind of program has. */
  parts(): Pick<
    StatusAnswer,
    "links" | "announced" | "services" | "follows" | "sources"
  >;
  /** What it serves on its machine; absent: nothing. */
  readonly services?: AdminRoute["answer"] | undefined;
  /** Flags as they are in effect, without secrets; absent: not known. */
  readonly flags?: (() => ConfigAnswer["flags"]) | undefined;
}

/** Shows a program on a node; see `admin/agent/node_routes.ts`. */
export type ShowNode = (facts: NodeFacts) => readonly AdminRoute[];
