/**
 * Flags of `tunnel adsc` to a client.
 *
 * @module
 */

import { hostname } from "node:os";
import {
  type Condition,
  type SubscriberOptions,
  type SubscriberProfile,
  userAgentOf,
  type Want,
} from "../../services/ads/adsc/subscriber.ts";
import {
  type AdsAccess,
  adsUpstreamOf,
} from "../../agent/identity/ads_access.ts";
import { FollowedIdentity } from "../../agent/identity/followed_identity.ts";
import type { Upstream } from "../../net/channel/upstream.ts";
import type { Log } from "../../platform/log/log.ts";
import { proxyEnvironment } from "../../net/dial/proxy_environment.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { VERSION } from "../../platform/process/version.ts";
import { RESOURCE_KINDS } from "../../proto/xds/resource.ts";
import type { DiscoveryNode } from "../../proto/xds/discovery.ts";
import { UsageError } from "../flags/usage_error.ts";
import type { ADSC_FLAGS } from "./flags.ts";
import { adsAccess } from "../flags/ads_access.ts";
import { joinedFiles, loadCredentials } from "../flags/node_route.ts";
import type { FlagValues } from "../flags/flag.ts";
import type { FlagReading, FlagSources } from "../flags/read_flags.ts";

type Values = FlagValues<typeof ADSC_FLAGS>;

/** The port at which a server of ours answers programs on its machine. */
const USUAL_SERVER = "127.0.0.1:15010";

/** What the command does. */
export interface AdscOptions {
  readonly subscriber: SubscriberOptions;
  readonly conditions: readonly Condition[];
  readonly timeoutMs: number;
  readonly stayMs: number;
  readonly print: Values["print"];
}

/** @throws {UsageError} One line. */
export function adscOptions(
  { values, operands }: FlagReading<typeof ADSC_FLAGS>,
  context: Pick<FlagSources, "readFile" | "environment">,
  log: Log,
): AdscOptions {
  const form = formOf(operands);
  const given = values["server"];
  const access = adsAccess(
    {
      ...values,
      servers: given.length === 0 ? [USUAL_SERVER] : given,
      ca: values["ca-cert"],
    },
    { servers: "server", ca: "ca-cert" },
    context,
  );
  return {
    subscriber: {
      form,
      mode: values["mode"],
      node: nodeOf(values, form, access),
      upstream: upstreamOf(values, access, context, log),
      timers: systemTimers,
      random: Math.random,
      keepaliveMs: values["keepalive-time"],
    },
    conditions: [...values["wait"], ...values["expect"]],
    timeoutMs: values["timeout"],
    stayMs: values["for"],
    print: values["print"],
  };
}

/** @throws {UsageError} One line. */
function formOf([word, ...rest]: readonly string[]): SubscriberProfile {
  switch (word) {
    case "proxy":
    case "envoy":
      if (rest.length === 0) return { kind: word };
      throw new UsageError(
        `Unexpected word "${
          rest[0]
        }": ${word} asks for everything; names are ` +
          "for grpc",
      );
    case "grpc":
      if (rest.length > 0) return { kind: word, names: rest };
      throw new UsageError(
        "Cannot subscribe as grpc to nothing: wanted names, as behind xds:///",
      );
    case "raw":
      if (rest.length > 0) return { kind: word, wants: rest.map(wantOf) };
      throw new UsageError(
        "Cannot subscribe to nothing: wanted KIND or KIND=NAME,…, such as " +
          "cluster or endpoints=default/web:80",
      );
    default: {
      const seen = word === undefined ? "nothing" : `"${word}"`;
      throw new UsageError(
        `Cannot subscribe as ${seen}: wanted proxy, envoy, grpc NAME… or ` +
          "raw KIND[=NAME,…]…",
      );
    }
  }
}

function wantOf(text: string): Want {
  const at = text.indexOf("=");
  const word = at < 0 ? text : text.slice(0, at);
  const kind = RESOURCE_KINDS.find((each) => each === word);
  const names = text.slice(at + 1).split(",").filter((name) => name !== "");
  if (kind !== undefined && at < 0) {
    return { kind, isWildcard: true, names: [] };
  }
  if (kind !== undefined && names.length > 0) {
    return { kind, isWildcard: false, names };
  }
  const wanted = kind === undefined
    ? `one of ${RESOURCE_KINDS.join(", ")}`
    : "names behind =";
  throw new UsageError(`Cannot subscribe to "${text}": wanted ${wanted}`);
}

/** @throws {UsageError} One line. */
function upstreamOf(
  values: Values,
  access: AdsAccess,
  { environment }: Pick<FlagSources, "environment">,
  log: Log,
): Upstream {
  const serverName = values["tls-server-name"];
  if (access.kind === "plain" && serverName !== "") {
    throw new UsageError(
      "Cannot use --tls-server-name without TLS: remove it, or write https:// " +
        "in front of the server",
    );
  }
  if (access.kind === "joined") {
    // An identity that cannot be used ends the command before it begins.
    loadCredentials(joinedFiles(access.stateDirectory), "by itself");
  }
  return adsUpstreamOf(access, {
    proxyEnv: proxyEnvironment(environment),
    ...(access.kind === "joined" &&
      { identity: new FollowedIdentity(access, { log, environment }) }),
    ...(serverName !== "" && { serverName }),
  });
}

function nodeOf(
  values: Values,
  form: SubscriberProfile,
  access: AdsAccess,
): DiscoveryNode {
  const own = access.kind === "plain" ? "" : access.node;
  return {
    id: values["node"] || `${own || hostname()}/adsc`,
    cluster: "",
    metadata: {
      ...form.kind === "proxy" ? { "tunnel.kind": "service" } : {},
      ...values["metadata"],
    },
    locality: { region: "", zone: values["zone"], subZone: "" },
    userAgentName: userAgentOf(form),
    userAgentVersion: VERSION,
    clientFeatures: [],
  };
}
