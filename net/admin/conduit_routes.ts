/**
 * The answers of all our programs about live conduits and recent events:
 * `/v1/conduits`, `/v1/events`.
 *
 * @module
 */

import { quoted } from "../../proto/peer/quoted.ts";
import {
  conduitInfoOf,
  conduitQuery,
  conduitsAnswer,
  limitOf,
} from "../../platform/conduits/conduit_info.ts";
import type { LiveConduits } from "../../platform/conduits/live_conduits.ts";
import type { RecentEvents } from "../../platform/log/recent_events.ts";
import type { ActionAnswer } from "../../proto/admin/api.ts";
import type { EventsAnswer } from "../../proto/admin/list_answers.ts";
import {
  AdminFailure,
  type AdminRoute,
  getRoute,
  postRoute,
} from "./admin_api.ts";

/** Events that are listed unless a number is said, and at most. */
const EVENTS_LISTED = { usual: 100, most: 10_000 } as const;

/** Limit on the name of the user who ends a connection, in a reason. */
const NAME_LENGTH_MAX = 100;

/** Their subjects. */
export interface Lists {
  readonly conduits: LiveConduits;
  readonly events: RecentEvents;
}

/** See the module description. */
export function conduitRoutes(
  { conduits, events }: Lists,
): readonly AdminRoute[] {
  return [
    getRoute(
      "/v1/conduits",
      ({ url }) =>
        conduitsAnswer(conduits, inWords(() => conduitQuery(url.searchParams))),
    ),
    getRoute(
      "/v1/conduits/:id",
      ({ segment }) => conduitInfoOf(conduits, segment) ?? unknown(segment),
    ),
    postRoute("/v1/conduits/:id/kill", ({ segment, who }): ActionAnswer => {
      const by = who.name.slice(0, NAME_LENGTH_MAX);
      if (!conduits.kill(segment, `ended by ${by}`)) unknown(segment);
      return {
        message: `Connection ${segment} is ended: both sides see a reset`,
      };
    }),
    getRoute("/v1/events", ({ url: { searchParams } }): EventsAnswer => ({
      events: events.list({
        limit: inWords(() => limitOf(searchParams, EVENTS_LISTED)),
        node: searchParams.get("node") || undefined,
        kind: searchParams.get("kind") || undefined,
      }),
    })),
  ];
}

/** The error of a query is shown to its sender. */
export function inWords<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new AdminFailure(400, { message: error.message });
  }
}

function unknown(id: string): never {
  throw new AdminFailure(404, {
    message: `No connection has the id ${quoted(id)} now: it may be over, ` +
      "or be another server's; tunnel conn list shows those that are open",
  });
}
