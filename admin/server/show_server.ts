/**
 * A server as people see it: its routes of the admin API and the dashboard,
 * answered out of what it tells of itself.
 *
 * @module
 */

import { serverAdmin } from "./admin_routes.ts";
import type {
  ServerParts,
  ShownServer,
} from "../../server/assembly/server_admin_port.ts";
import type { Authorization } from "../../server/policy/authorization.ts";
import { withDashboard } from "./dashboard.ts";
import { pingRoute } from "./ping_route.ts";
import { policyRoute } from "./policy_route.ts";
import { traceRoute } from "./trace_route.ts";

/** What a server shows, and where it may be asked about ways and dials. */
export function showServer(
  parts: ServerParts,
  authorization: Authorization,
): ShownServer {
  const admin = serverAdmin(parts);
  return {
    routes: [
      ...admin.routes,
      pingRoute(parts),
      policyRoute({ authorization, registry: parts.registry }),
      traceRoute({ ...parts, authorizer: authorization.dials }),
    ],
    pages: withDashboard,
    stop: () => admin.stop(),
  };
}
