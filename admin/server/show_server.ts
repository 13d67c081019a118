/**
 * A server's face for people: its answers and actions over the admin API (see
 * `proto/admin/`) and the dashboard, from its own facts.
 *
 * @module
 */

import { nearest } from "../../platform/text/nearest.ts";
import { quoted } from "../../proto/peer/quoted.ts";
import {
  AdminFailure,
  type AdminRoute,
  getRoute,
  postRoute,
} from "../../net/admin/admin_api.ts";
import { conduitRoutes, inWords } from "../../net/admin/conduit_routes.ts";
import { limitOf } from "../../platform/conduits/conduit_info.ts";
import type {
  NodesAnswer,
  NodeSummary,
} from "../../proto/admin/node_answer.ts";
import {
  DISCOVERY_ANSWERS,
  discoveryPath,
} from "../../services/discovery/status/client_answers.ts";
import { withDashboard } from "./dashboard.ts";
import { Expiries } from "./expiries.ts";
import { auditAnswer, discoveryAnswer, servicesAnswer } from "./lists.ts";
import { approveNode, drainNode, revokeNode } from "./node_actions.ts";
import { nodeDetail } from "./node_detail.ts";
import { type NodeView, viewNodes } from "./node_view.ts";
import { pingRoute } from "./ping_route.ts";
import { policyRoute } from "./policy_route.ts";
import type {
  ServerParts,
  ShownServer,
} from "../../server/assembly/server_admin_port.ts";
import type { Authorization } from "../../server/policy/authorization.ts";
import { statusAnswer } from "./status.ts";
import { traceRoute } from "./trace_route.ts";
import { TrafficHistory } from "./traffic_history.ts";
import { WatchFeed } from "./watch_feed.ts";

/** Nodes of one answer; all of a fleet of five thousand unless a number is said. */
const NODES_LISTED = { usual: 100_000, most: 100_000 } as const;

/** Lines of the audit log. */
const AUDIT_LISTED = { usual: 100, most: 500 } as const;

/** Limit on the name of an acting user in records. */
const WHO_LENGTH_MAX = 100;

/** A server's facts, with the addresses for questions about paths and dials. */
export function showServer(
  facts: ServerParts,
  authorization: Authorization,
): ShownServer {
  const expiries = new Expiries(facts);
  const feed = new WatchFeed(facts, expiries);
  const history = new TrafficHistory(facts);
  return {
    pages: withDashboard,
    stop: () => {
      feed.stop();
      history.stop();
    },
    routes: [
      ...conduitRoutes(facts),
      ...nodeRoutes(facts),
      getRoute(
        "/v1/status",
        async () => await statusAnswer(facts, await viewNodes(facts), expiries),
      ),
      getRoute(
        "/v1/watch",
        ({ url, signal }) => feed.watch(url.searchParams, signal),
      ),
      getRoute("/v1/history", ({ url: { searchParams } }) => {
        const since = Date.parse(searchParams.get("since") ?? "1970-01-01");
        if (!Number.isNaN(since)) return history.answer(since);
        throw new AdminFailure(400, {
          message: "Cannot read since: wanted a time such as " +
            "2026-11-22T10:03:12Z",
        });
      }),
      getRoute(
        "/v1/certificates",
        async () => expiries.certificates(await viewNodes(facts)),
      ),
      getRoute("/v1/services", () => servicesAnswer(discoveryOf(facts))),
      getRoute(
        "/v1/discovery",
        () => discoveryAnswer(discoveryOf(facts), facts.timers.now()),
      ),
      ...DISCOVERY_ANSWERS.map((what) =>
        getRoute(
          discoveryPath(what),
          ({ url }) => discoveryOf(facts).answers[what](url),
        )
      ),
      getRoute("/v1/audit", ({ url: { searchParams } }) => {
        const limit = inWords(() => limitOf(searchParams, AUDIT_LISTED));
        if (facts.audit === undefined) {
          throw new AdminFailure(404, {
            message: "This server has no audit log: start it with --audit-log",
          });
        }
        return auditAnswer(facts.audit(limit));
      }),
      getRoute("/v1/config", () => ({ flags: facts.flags?.() ?? [] })),
      pingRoute(facts),
      policyRoute({ authorization, registry: facts.registry }),
      traceRoute({ ...facts, authorizer: authorization.dials }),
    ],
  };
}

function nodeRoutes(facts: ServerParts): readonly AdminRoute[] {
  type Act = (node: string, by: string, body: unknown) => unknown;
  const post = (what: string, act: Act) =>
    postRoute(
      `/v1/nodes/:name/${what}`,
      ({ segment, body, who }) =>
        act(segment, who.name.slice(0, WHO_LENGTH_MAX), body),
    );
  return [
    getRoute(
      "/v1/nodes",
      async ({ url: { searchParams } }) =>
        nodesAnswer(await viewNodes(facts), searchParams),
    ),
    getRoute("/v1/nodes/:name", async ({ segment }) => {
      const view = await viewNodes(facts);
      const node = view.nodes.get(segment);
      if (node !== undefined) return nodeDetail(facts, view, node);
      const near = nearest(segment, view.nodes.keys());
      throw new AdminFailure(404, {
        code: "TUN312",
        message: `This server has never seen a node ${quoted(segment)}; ` +
          (near === undefined ? "" : `did you mean ${quoted(near)}? `) +
          "tunnel node list shows all",
      });
    }),
    post("drain", (node, by) => drainNode(facts, node, by)),
    post("revoke", (node, by, body) => revokeNode(facts, node, body, by)),
    post("approve", (node, by) => approveNode(facts, node, by)),
  ];
}

/** Made while it is sent. */
function nodesAnswer(
  { nodes, summaryOf }: NodeView,
  params: URLSearchParams,
): Omit<NodesAnswer, "nodes"> & { readonly nodes: Iterable<NodeSummary> } {
  const limit = inWords(() => limitOf(params, NODES_LISTED));
  const state = params.get("state") || undefined;
  const after = params.get("after") ?? "";
  const all = [...nodes.values()];
  const wanted = state === undefined
    ? all
    : all.filter((node) => node.state === state);
  const listed = function* () {
    let left = limit;
    for (const node of wanted) {
      if (node.name <= after) continue;
      if (left-- === 0) return;
      yield summaryOf(node);
    }
  };
  const now = new Date().toISOString();
  return { nodes: listed(), total: wanted.length, now };
}

function discoveryOf(
  { discovery }: ServerParts,
): NonNullable<ServerParts["discovery"]> {
  if (discovery !== undefined) return discovery;
  throw new AdminFailure(404, {
    message: "This server has no catalog: start it with --discovery",
  });
}
