/**
 * `NODE:PORT` for people: a target whose host is the name of a connected node is
 * that node's own loopback.
 *
 * The server knows which nodes there are, and what its policy says: it refuses
 * such a dial, and the node is named in a second one. Only commands that people
 * type ask for that; what other programs dial stays what they said.
 *
 * @module
 */

import { HOST_IS_NODE } from "../proto/link/dial_wishes.ts";
import { hostOf, hostPort, portOf } from "../proto/peer/host_port.ts";
import { isIpAddress } from "../proto/peer/ip_address.ts";
import { TunnelDialError } from "./dial_error.ts";
import type { TunnelDialer } from "./tunnel_dialer.ts";

/**
 * Dials as `dialer` does, and nodes by their names.
 *
 * @param say Told once of each host that is taken for a node.
 */
export function namingNodes(
  dialer: TunnelDialer,
  say: (line: string) => void,
): TunnelDialer {
  /** What is a node once stays one: another would be another machine. */
  const nodes = new Set<string>();
  return {
    async dial(dial) {
      const { protocol, address } = dial.target;
      const host = hostOf(address);
      if (dial.node !== undefined || isIpAddress(host)) {
        return await dialer.dial(dial);
      }
      const target = {
        protocol,
        address: hostPort("127.0.0.1", portOf(address)),
      };
      if (!nodes.has(host)) {
        try {
          return await dialer.dial({ ...dial, maybeNode: true });
        } catch (error) {
          const isNode = error instanceof TunnelDialError &&
            error.tunnelCode === HOST_IS_NODE;
          if (!isNode) throw error;
        }
        // Two callers at one time may both have asked.
        if (!nodes.has(host)) {
          say(
            `${host} is a connected node: dialing ${target.address} there, as ` +
              `--node ${host} does`,
          );
        }
        nodes.add(host);
      }
      return await dialer.dial({ ...dial, target, node: `id=${host}` });
    },
    close: () => dialer.close(),
  };
}
