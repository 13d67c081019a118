/**
 * `POST /v1/nodes/NAME/ping`: asks each link of a node's agent for a sign of
 * life and says how long it took. The agent's own loop answers, not its kernel,
 * so a stopped agent does not answer.
 *
 * @module
 */

import {
  AdminFailure,
  type AdminRoute,
  postRoute,
} from "../../net/admin/admin_api.ts";
import { hundredth } from "../../net/admin/own_facts.ts";
import { ADMIN_ACTIONS, ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { PingAnswer } from "../../proto/admin/path_check.ts";
import type { AgentLink } from "../../proto/link/link.ts";
import { nameKey } from "../../proto/peer/normal_form.ts";
import { clipped } from "../../proto/peer/quoted.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { Registry } from "../../server/routing/registry.ts";

/** What the route needs of the server. */
export interface PingFacts {
  readonly registry: Registry;
  readonly timers: Timers;
}

/** A link without a sign of life for this long has a problem. */
export const PING_MS = 2_500;

/** How often an answer is looked for: its time is measured below. */
const LOOK_MS = 2;

/** Longest name that is repeated. */
const NAME_LENGTH_MAX = 100;

/** See the module description. */
export function pingRoute(facts: PingFacts): AdminRoute {
  return postRoute(
    `${ADMIN_PATHS.node}:name/${ADMIN_ACTIONS.ping}`,
    async ({ segment: node, signal }): Promise<PingAnswer> => {
      const links = linksOf(facts.registry, node);
      if (links.length === 0) {
        const name = clipped(node, NAME_LENGTH_MAX);
        throw new AdminFailure(404, {
          code: "TUN501",
          message: `Cannot ping ${name}: it has no link to this server; ` +
            `\`tunnel doctor node ${name}\` says why`,
        });
      }
      return {
        node,
        links: await Promise.all(
          links.map(async (link) => ({
            address: link.peer.remoteAddress,
            carrier: link.peer.carrier,
            ...await pingLink(link, facts.timers, signal),
          })),
        ),
      };
    },
    "view",
  );
}

/** The links of agents that are called so. */
export function linksOf(
  registry: Registry,
  node: string,
): readonly AgentLink[] {
  const wanted = nameKey(node);
  return registry.about(node).filter(({ peer: { agentId, identifiers } }) =>
    [agentId, ...identifiers.host].some((name) => nameKey(name) === wanted)
  );
}

/** Asks one link. */
export async function pingLink(
  link: AgentLink,
  timers: Timers,
  signal: AbortSignal,
): Promise<{ readonly roundTripMs?: number; readonly problem?: string }> {
  const askedMs = timers.now();
  link.checkLiveness();
  const until = askedMs + PING_MS;
  while (link.lastHeardMs < askedMs || link.askedMs !== undefined) {
    if (signal.aborted) return { problem: "the request has ended" };
    if (timers.now() >= until) {
      return { problem: `no answer within ${PING_MS / 1_000} s` };
    }
    await new Promise<void>((resolve) => timers.after(LOOK_MS, resolve));
  }
  const tookMs = timers.now() - askedMs;
  // What the connection has measured is not rounded to our looks.
  const roundTripMs = Math.min(link.roundTripMs ?? tookMs, tookMs);
  return { roundTripMs: hundredth(roundTripMs) };
}
