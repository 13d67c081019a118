/**
 * What an agent's answer to a dial means, and what to look at on its node.
 *
 * @module
 */

import { failed, type Finding } from "../doctor/walk/path_walk.ts";
import { codeOfWords, type DialError } from "../../proto/peer/dial_error.ts";
import { hostOf, portOf } from "../../proto/peer/host_port.ts";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import { clipped } from "../../proto/peer/quoted.ts";

/** An agent's words are a peer's. */
const WORDS_LENGTH_MAX = 500;

/**
 * @param node Whose agent has tried.
 * @param sibling Another address of that node where the port is served.
 */
export function targetFault(
  error: DialError,
  target: string,
  node: string,
  sibling?: string,
): Finding {
  const words = clipped(error.message, WORDS_LENGTH_MAX);
  const code = codeOfWords(error.reason, error.message) ?? error.tunnelCode;
  const port = portOf(target);
  switch (code) {
    case "TUN503":
      return refusing(target, node, words, sibling);
    case "TUN502":
      if (/\blookup\b/.test(words)) {
        return failed(
          "TUN505",
          `the name servers of ${node} do not answer for ${hostOf(target)} ` +
            `(${words})`,
          `on ${node}: see /etc/resolv.conf; getent hosts ${hostOf(target)}`,
        );
      }
      return silent(target, node, words);
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
      return failed(
        code,
        words,
        `on ${node}: change --allow and --deny of its agent`,
      );
    default:
      if (/no route to host|network is unreachable/.test(words)) {
        return failed(
          "TUN506",
          `${node} has no way to ${target} (${words})`,
          `on ${node}: ip route get ${hostOf(target)}`,
        );
      }
      if (/reset by peer/.test(words)) {
        return failed(
          "TUN515",
          `${target} takes connections of ${node}, and resets them at once ` +
            `(${words})`,
          "its own limit or allow-list does that, or it is a balancer " +
            "without a live program behind it: see its log",
        );
      }
      return failed(
        code,
        `${node} could not connect to ${target}: ${words}`,
        `on ${node}: nc -vz ${hostOf(target)} ${port}`,
      );
  }
}

function refusing(
  target: string,
  node: string,
  words: string,
  sibling: string | undefined,
): Finding {
  if (sibling !== undefined) {
    return failed(
      "TUN503",
      `${target} refuses connections of ${node} (${words}); at ${node} the ` +
        `program listens on ${sibling}`,
      `dial ${sibling}, or let the program listen on more than that`,
    );
  }
  const isOwn = isLoopbackHost(hostOf(target));
  return failed(
    "TUN503",
    `${target} refuses connections of ${node}: nothing listens there ` +
      `(${words})`,
    `on ${isOwn ? node : `the machine of ${hostOf(target)}`}: ss -ltn ` +
      `'sport = :${portOf(target)}'` +
      (isOwn
        ? "; loopback is that node's own"
        : "; a firewall that rejects looks the same"),
  );
}

function silent(target: string, node: string, words: string): Finding {
  const port = portOf(target);
  if (isLoopbackHost(hostOf(target))) {
    return failed(
      "TUN502",
      `${target} does not answer ${node} (${words}): it is that machine's ` +
        "own, so the program that listens there hangs or is overloaded",
      `on ${node}: ss -ltnp 'sport = :${port}' shows it (Recv-Q is full); ` +
        "restart it",
    );
  }
  return failed(
    "TUN502",
    `${target} does not answer ${node} (${words})`,
    `a firewall between ${node} and the target drops it: on ${node}, ` +
      `nc -vz ${
        hostOf(target)
      } ${port}; or the program there accepts nothing ` +
      "(Recv-Q of ss -ltn on its machine)",
  );
}
