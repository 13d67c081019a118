/**
 * Whether a person who asks for `NODE:PORT` means that node: see
 * `NODE_NAME_FIELD`.
 *
 * @module
 */

import { HOST_IS_NODE } from "../../proto/link/dial_wishes.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import { hostOf, hostPort, portOf } from "../../proto/peer/host_port.ts";
import { isIpAddress } from "../../proto/peer/ip_address.ts";
import type { Peers } from "../peers/peers.ts";
import type {
  DialAuthorizer,
  RequestedDial,
} from "../policy/dial_authorizer.ts";
import type { Registry } from "./registry.ts";

/** What decides. */
export interface MeantNodeFacts {
  readonly registry: Registry;
  readonly authorizer?: DialAuthorizer;
  readonly peers?: Peers;
}

/**
 * The same dial of the node's own loopback, where its host is the name of a
 * connected node that this caller may reach there.
 */
export function meantNode<Dial extends RequestedDial>(
  dial: Dial,
  { registry, authorizer, peers }: MeantNodeFacts,
): Dial | undefined {
  const { protocol, address } = dial.target;
  const host = hostOf(address);
  if (dial.node !== undefined || protocol === "unix" || isIpAddress(host)) {
    return undefined;
  }
  // What an agent announces to serve is no name of its own.
  if (registry.strategyFor(dial.target) === "destHost") return undefined;
  const target: DialTarget = {
    protocol,
    address: hostPort("127.0.0.1", portOf(address)),
  };
  const meant = { ...dial, target, node: `id=${host}` };
  const picked = registry.pick(target, meant.node);
  const agent = picked.kind === "picked" ? picked.link.peer : undefined;
  const isThere = agent !== undefined ||
    peers?.find(target, meant.node)
        .some(({ agentsAreKnown }) => agentsAreKnown) === true;
  return isThere && authorizer?.permits(meant, agent) !== false
    ? meant
    : undefined;
}

/** The refusal that makes a caller name the node. */
export function hostIsNode(address: string): DialError {
  const host = hostOf(address);
  return new DialError(
    "refused",
    `Cannot dial ${address}: ${host} is a connected node; name it with ` +
      `--node ${host}, and dial 127.0.0.1:${portOf(address)}`,
    undefined,
    HOST_IS_NODE,
  );
}
