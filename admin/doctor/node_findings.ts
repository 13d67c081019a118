/**
 * Turns a server's answer about a node into findings: the hop of each sentence,
 * and its remedy. The sentences are the view's; this file adds only what the
 * present look finds.
 *
 * @module
 */

import {
  failed,
  type Finding,
  fine,
  type Hop,
  warned,
} from "./walk/path_walk.ts";
import { factText } from "../ask/sections.ts";
import { whenText } from "../view/cells.ts";
import { nodeFacts, sinceText } from "../view/nodes.ts";
import type { Code } from "../../proto/codes/codes.ts";
import type { NodeDetail } from "../../proto/admin/node_answer.ts";
import { hostOf } from "../../proto/peer/host_port.ts";

/** Whether it may link, by its record. */
export function joined({ name, state, reason, isJoined, joinedAt }: {
  readonly name: string;
  readonly state: string;
  readonly reason?: string | undefined;
  readonly isJoined: boolean;
  readonly joinedAt?: string | undefined;
}): Finding {
  if (state === "revoked") {
    return failed(
      "TUN311",
      `${name} was revoked${reason ? ` (${reason})` : ""}`,
      `tunnel node approve ${name} takes that back`,
    );
  }
  if (state === "pending") {
    return failed(
      "TUN310",
      `${name} waits for approval`,
      `tunnel node approve ${name}`,
    );
  }
  return fine(
    isJoined
      ? `${name} joined` + (joinedAt ? ` at ${whenText(joinedAt)}` : "")
      : `${name} has not joined: it is known by a certificate of another CA`,
  );
}

/** Whether it is linked. */
export function online(node: NodeDetail): Finding {
  const since = sinceText(node, Date.parse(node.now ?? ""));
  if (node.state === "online") return fine(`online ${since}`.trimEnd());
  return failed(
    "TUN402",
    `${node.name} is offline ${since}`.trimEnd(),
    "on the node: systemctl status tunnel-agent, then `tunnel doctor agent`",
  );
}

/** A hop at which one of a node's warnings is read. */
interface NodeHop {
  readonly code: Code;
  readonly as: typeof failed;
  remedy(name: string): string;
  /** The fact that is shown where there is no such warning; absent: none. */
  readonly fact?: string;
}

const HOPS = {
  identity: {
    code: "TUN313",
    as: warned,
    remedy: () =>
      "on the copy: empty the agent's state directory, and join with a new token",
  },
  version: {
    code: "TUN422",
    as: warned,
    fact: "version",
    remedy: () =>
      "upgrade the older of both, servers first: put the other's version " +
      "there, and run `tunnel upgrade FILE`, or restart it",
  },
  certificate: {
    code: "TUN202",
    as: warned,
    fact: "certificate",
    remedy: () =>
      "the agent renews it by itself: see its log (journalctl -u tunnel-agent)",
  },
  // The agent says it in its answer to a dial, and not earlier.
  descriptors: {
    code: "TUN513",
    as: failed,
    remedy: (name) =>
      `on ${name}: raise the agent's "ulimit -n" (LimitNOFILE in systemd), and ` +
      `restart it; \`tunnel conn list --node ${name}\` shows what it holds`,
  },
} as const satisfies Readonly<Record<string, NodeHop>>;

/** One of them. @param node As it is known when its turn comes. */
export function nodeHop(name: keyof typeof HOPS, node: () => NodeDetail): Hop {
  return { name, look: () => read(HOPS[name], node()) };
}

function read(
  { code, as, remedy, fact }: NodeHop,
  node: NodeDetail,
): Finding | undefined {
  const warning = node.warnings.find((one) => one.code === code);
  if (warning !== undefined) {
    return as(code, `${node.name}: ${warning.message}`, remedy(node.name));
  }
  if (code === "TUN313") return severalPlaces(node);
  const known = nodeFacts(node).find(({ name }) => name === fact);
  return known && fine(factText(known.value));
}

/** A copy shows within half a minute; until then it may be one machine. */
function severalPlaces({ name, linkDetails }: NodeDetail): Finding | undefined {
  const hosts = new Set(linkDetails.map(({ address }) => hostOf(address)));
  if (hosts.size < 2) return undefined;
  return warned(
    "TUN313",
    `${name} is linked from ${[...hosts].join(", ")}: one machine with ` +
      "several addresses, or two with one identity, which shows within half " +
      "a minute",
    HOPS.identity.remedy(),
  );
}

/** A warning with a finding of its own is not repeated. */
const TOLD: ReadonlySet<string | undefined> = new Set([
  "TUN310",
  ...Object.values(HOPS).map(({ code }) => code),
]);

/** The worst of the rest. */
export function warnings({ warnings }: NodeDetail): Finding | undefined {
  const first = warnings.find(({ code }) => !TOLD.has(code));
  return first &&
    { outcome: "warning", message: first.message, code: first.code };
}
