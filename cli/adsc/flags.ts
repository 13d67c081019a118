/**
 * Flags of `tunnel adsc`.
 *
 * @module
 */

import { KEEPALIVE_MS } from "../../services/ads/ads_connection.ts";
import {
  choiceFlag,
  durationFlag,
  fileFlag,
  type Flag,
  type FlagDetails,
  FlagValueError,
  listFlag,
  parsedFlag,
  textFlag,
} from "../flags/flag.ts";
import { GENERAL_FLAGS } from "../flags/log_flags.ts";
import { stateDirectoryFlag } from "../flags/state_directory.ts";

const SERVER = "The server";
const CLIENT = "The client";
const GOAL = "What is waited for and shown";

/** See the module description. */
export const ADSC_FLAGS = {
  "server": listFlag([], {
    group: SERVER,
    placeholder: "HOST:PORT,…",
    help: "Discovery servers; if one fails, the next one is used. Loopback " +
      "is asked without TLS unless there are certificates, or https:// " +
      "is in front.",
    defaultText: "127.0.0.1:15010",
  }),
  "ca-cert": fileFlag({
    group: SERVER,
    help: "CA of the servers' certificate, for nodes that have not joined.",
  }),
  "agent-cert": fileFlag({
    group: SERVER,
    help: "Certificate of the node, shown to them.",
  }),
  "agent-key": fileFlag({
    group: SERVER,
    help: "Private key of --agent-cert.",
  }),
  "state-dir": { ...stateDirectoryFlag("agent"), group: SERVER },
  "tls-server-name": textFlag("", {
    group: SERVER,
    placeholder: "NAME",
    help: "Name that the servers' certificate must bear.",
    defaultText: "the host, or tunnel-server for a node that has joined",
  }),
  "keepalive-time": durationFlag(KEEPALIVE_MS, 1, {
    group: SERVER,
    help: "Send a PING to a server that has been silent for this long.",
  }),
  "mode": choiceFlag(["delta", "sotw"], "delta", {
    group: CLIENT,
    help: "delta: receive only what changed. sotw: receive everything each " +
      "time.",
  }),
  "node": textFlag("", {
    group: CLIENT,
    placeholder: "ID",
    help: "node.id.",
    defaultText: "the node's name, or the host's, and /adsc",
  }),
  "metadata": metadataFlag({
    group: CLIENT,
    placeholder: "JSON",
    help: 'node.metadata, such as {"tunnel.http_11_proxy":true}.',
    defaultText: "{}",
  }),
  "zone": textFlag("", {
    group: CLIENT,
    placeholder: "NAME",
    help: "Zone of the client.",
  }),
  "timeout": durationFlag(10_000, 1, {
    group: GOAL,
    help:
      "Limit on waiting for everything subscribed to; exit code 1 after that.",
  }),
  "for": durationFlag(0, 0, {
    group: GOAL,
    help: "Then stay for this long; everything must be there at the end.",
  }),
  "print": choiceFlag(["dump", "changes", "nothing"], "dump", {
    group: GOAL,
    help:
      "dump: the resources at the end, as JSON. changes: a line of JSON for " +
      "each, as it comes.",
  }),
  ...GENERAL_FLAGS,
} as const;

function metadataFlag(
  details: FlagDetails,
): Flag<Readonly<Record<string, unknown>>> {
  return parsedFlag({}, (text) => {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      value = undefined;
    }
    const isObject = typeof value === "object" && value !== null &&
      !Array.isArray(value);
    if (isObject) return value as Readonly<Record<string, unknown>>;
    throw new FlagValueError("wanted a JSON object");
  }, details);
}
