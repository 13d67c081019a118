/**
 * Who somebody is on the admin port for other machines.
 *
 * @module
 */

import type { AdminWho } from "../../net/admin/admin_api.ts";
import type { AdminRole } from "../../proto/admin/api.ts";
import { NODE_ORGANIZATION } from "../identity/node_certificate.ts";
import type { AdminCandidate } from "../policy/admin_entry.ts";
import type { HttpPeer } from "../../net/admin/http_port.ts";

/** Who somebody is on the port for other machines, and what he may. */
export function remoteWho(
  { identity }: Pick<HttpPeer, "identity">,
  roleOf: (candidate: AdminCandidate) => AdminRole | undefined,
): AdminWho | undefined {
  const { commonName, certificate } = identity;
  // An authority may be that of nodes, too, and "*" is about everybody.
  const isNode = certificate?.organizations.includes(NODE_ORGANIZATION);
  const role = isNode === true ? undefined : roleOf({ identity });
  return role && { role, name: `CN=${commonName}` };
}
