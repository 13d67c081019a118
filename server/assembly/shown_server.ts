/**
 * What shows a server to people, as the server sees it: it hands over its parts,
 * and is given routes and pages. How they look is `admin/server`'s.
 *
 * @module
 */

import type { AdminDoor, AdminRoute } from "../../net/admin/admin_api.ts";
import type { HttpHandler } from "../../net/admin/http_port.ts";
import type { ServerDiscovery } from "../discovery/server_discovery.ts";
import type { Readiness } from "./readiness.ts";
import type { ServerAgents } from "./server_agents.ts";
import type { ServerCore } from "./server_core.ts";

/** The parts of a server that know something. */
export interface ServerParts {
  readonly core: ServerCore;
  readonly agents: ServerAgents;
  readonly readiness: Readiness;
  readonly discovery: ServerDiscovery | undefined;
  readonly isDraining: () => boolean;
  /** Where it listens, by what it listens for; empty before it does. */
  readonly addresses: () => Readonly<Record<string, string>>;
}

/** A server as people see it. */
export interface ShownServer {
  readonly routes: readonly AdminRoute[];
  /** The dashboard for callers that come by `door`, beside `others`. */
  pages(door: AdminDoor, others: HttpHandler): HttpHandler;
  stop(): void;
}

/** Shows one server; see `admin/server/show_server.ts`. */
export type ShowServer = (parts: ServerParts) => ShownServer;
