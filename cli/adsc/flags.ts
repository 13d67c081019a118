/**
 * Flags of `tunnel adsc`.
 *
 * @module
 */

import { ADS_FLAGS } from "../flags/ads_access.ts";
import { quietly } from "../../platform/errors/error_code.ts";
import {
  ConditionError,
  parseCount,
  parseExpectation,
} from "../../services/ads/adsc/conditions.ts";
import type { Condition } from "../../services/ads/adsc/subscriber.ts";
import { KEEPALIVE_MS } from "../../services/ads/ads_connection.ts";
import {
  type Flag,
  flag,
  type FlagDetails,
  FlagValueError,
  inGroup,
} from "../flags/flag.ts";
import { stateDirectoryFlag } from "../flags/state_directory.ts";

const SERVER = "The server";
const CLIENT = "The client";
const GOAL = "Conditions";

/** See the module description. */
export const ADSC_FLAGS = {
  ...inGroup(SERVER, {
    "server": flag.list([], {
      placeholder: "HOST:PORT,…",
      help: "Discovery servers; if one fails, the next one is used. Loopback " +
        "is asked without TLS unless there are certificates, or https:// " +
        "is in front.",
      defaultText: "127.0.0.1:15010",
    }),
    "ca-cert": ADS_FLAGS.ca,
    ...ADS_FLAGS.pair,
  }),
  "state-dir": { ...stateDirectoryFlag("agent"), group: SERVER },
  "tls-server-name": flag.word("NAME", {
    group: SERVER,
    help: "Name that the servers' certificate must bear.",
    defaultText: "the host, or tunnel-server for a node that has joined",
  }),
  "keepalive-time": flag.duration(KEEPALIVE_MS, 1, {
    group: SERVER,
    help: "Send a PING to a server that has been silent for this long.",
  }),
  ...inGroup(CLIENT, {
    "mode": ADS_FLAGS.mode,
    "node": flag.word("ID", {
      help: "node.id.",
      defaultText: "the node's name, or the host's, and /adsc",
    }),
    "metadata": metadataFlag({
      placeholder: "JSON",
      help: 'node.metadata, such as {"tunnel.http_11_proxy":true}.',
      defaultText: "{}",
    }),
    "zone": flag.word("NAME", "Zone of the client."),
  }),
  ...inGroup(GOAL, {
    "wait": conditionsFlag(parseCount, {
      placeholder: "COUNT",
      help: "Condition such as clusters>=3, on the number of clusters, " +
        "assignments, listeners, routes, endpoints, absent, responses or " +
        "refused. Repeat for more.",
      defaultText: "everything subscribed to has arrived",
    }),
    "expect": conditionsFlag(parseExpectation, {
      placeholder: "WHAT",
      help: "Such as default/web:80=10.0.0.1:8080,10.0.0.2:8080 (its " +
        'endpoints), "cluster default/web:80" or "no listener web". Repeat for ' +
        "more.",
      defaultText: "nothing",
    }),
    "timeout": flag.duration(10_000, 1, {
      help: "Limit on waiting for all conditions; exit code 1 after that.",
    }),
    "for": flag.duration(0, 0, {
      help: "Then stay for this long; the conditions must hold at the end.",
    }),
    "print": flag.choice(["dump", "changes", "nothing"], "dump", {
      help:
        "dump: the resources at the end, as JSON. changes: a line of JSON for " +
        "each, as it comes.",
    }),
  }),
} as const;

/** One text is one of them: there are commas in it. */
function conditionsFlag(
  parse: (text: string) => Condition,
  details: FlagDetails & { readonly placeholder: string },
): Flag<readonly Condition[]> {
  return flag.parsedList((text) => {
    try {
      return [parse(text)];
    } catch (error) {
      if (!(error instanceof ConditionError)) throw error;
      throw new FlagValueError(error.message);
    }
  }, { defaultText: "nothing", ...details });
}

function metadataFlag(
  details: FlagDetails,
): Flag<Readonly<Record<string, unknown>>> {
  return flag.parsed({}, (text) => {
    const value: unknown = quietly(() => JSON.parse(text));
    const isObject = typeof value === "object" && value !== null &&
      !Array.isArray(value);
    if (isObject) return value as Readonly<Record<string, unknown>>;
    throw new FlagValueError("wanted a JSON object");
  }, details);
}
