/**
 * What an agent's answer to a dial means, and what to look at on its node.
 *
 * @module
 */

import { failed } from "../../client/doctor/faults.ts";
import type { Finding } from "../../client/doctor/path_walk.ts";
import type { DialError } from "../../proto/peer/dial_error.ts";
import { codeOfWords } from "../../proto/peer/dial_failure.ts";
import { hostOf, portOf } from "../../proto/peer/host_port.ts";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import { clipped } from "../../proto/peer/quoted.ts";

/** An agent's words are a peer's. */
const WORDS_LENGTH_MAX = 500;

/** @param node Whose agent has tried. */
export function targetFault(
  error: DialError,
  target: string,
  node: string,
): Finding {
  const words = clipped(error.message, WORDS_LENGTH_MAX);
  const code = codeOfWords(error.reason, error.message) ?? error.tunnelCode;
  const port = portOf(target);
  switch (code) {
    case "TUN503":
      return failed(
        code,
        `${target} refuses connections of ${node}: nothing listens there ` +
          `(${words})`,
        `on ${node}: ss -ltn 'sport = :${port}'` +
          (isLoopbackHost(hostOf(target))
            ? "; loopback is that node's own"
            : "; if it listens on 127.0.0.1 alone, dial that"),
      );
    case "TUN502":
      return failed(
        code,
        `${target} does not answer ${node} (${words})`,
        `a firewall between ${node} and the target drops it: on ${node}, ` +
          `nc -vz ${hostOf(target)} ${port}`,
      );
    case "TUN504":
      return failed(
        code,
        `${node} has no way to ${target} (${words})`,
        `on ${node}: ip route get ${hostOf(target)}`,
      );
    case "TUN505":
      return failed(
        code,
        `${node} cannot resolve ${hostOf(target)} (${words})`,
        `on ${node}: getent hosts ${
          hostOf(target)
        }; names are resolved there, ` +
          "not here",
      );
    case "TUN513":
      return failed(
        code,
        `the agent of ${node} has no descriptors left (${words})`,
        `raise its "ulimit -n" (LimitNOFILE in systemd), and restart it`,
      );
    case "TUN603":
    case "TUN604":
      return failed(
        code,
        words,
        `on ${node}: change --allow and --deny of its agent`,
      );
    default:
      return failed(
        code,
        `${node} could not connect to ${target}: ${words}`,
        `on ${node}: nc -vz ${hostOf(target)} ${port}`,
      );
  }
}
