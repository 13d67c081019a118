/**
 * Flags of `tunnel server` about discovery, and their meaning: whether it is
 * on, who may use it besides nodes, and the sources of services. The latter are
 * `tunnel proxy`'s flags; two have another name here, because the server has
 * flags of those names already.
 *
 * @module
 */

import type { DiscoveryServerOptions } from "../../services/discovery/serving/discovery.ts";
import type { FlagSources, GivenValues } from "../flags/read_flags.ts";
import type { SourceConfig } from "../../services/catalog/sources_of.ts";
import { orMistake, refuseFlags, UsageError } from "../flags/usage_error.ts";
import { placeOf } from "../flags/addresses.ts";
import { CATALOG_FLAGS, catalogConfig } from "../flags/catalog_flags.ts";
import { given as present } from "../../platform/documents/given.ts";
import { common, flag, type FlagValues, inGroup } from "../flags/flag.ts";
import { ETCD_ACCESS_FLAGS } from "../flags/etcd_flags.ts";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import {
  WINDOW_MAX_MS,
  WINDOW_MIN_MS,
} from "../../services/discovery/push/debounce.ts";

const { config, kubeconfig, ...SOURCE_FLAGS } = CATALOG_FLAGS;

const OWN_FLAGS = inGroup("Discovery (docs/discovery.md)", {
  "discovery": common(flag.boolean(false, {
    help: "Send services and endpoints to nodes on the agent port (xDS v3): " +
      "node proxies, gRPC applications and Envoy. What agents announce " +
      "is included.",
  })),
  "discovery-listen": flag.word("HOST:PORT", {
    help: "Also send them to programs on this machine, without TLS and " +
      "without authentication; must be a loopback address.",
    defaultText: "none",
  }),
  "discovery-debounce-min": flag.duration(WINDOW_MIN_MS, 1, {
    help: "The first change is sent at once; further changes within this " +
      "time are sent together, then within twice that time, and so on.",
  }),
  "discovery-debounce-max": flag.duration(WINDOW_MAX_MS, 1, {
    help: "Upper limit of that time. Removed endpoints wait for a quarter " +
      "of it.",
  }),
});

/** In the order in which the help shows them. */
export const DISCOVERY_FLAGS = {
  ...OWN_FLAGS,
  "discovery-config": config,
  "discovery-kubeconfig": kubeconfig,
  ...SOURCE_FLAGS,
} as const;

/** The options of discovery, with its sources as plain data. */
export type DiscoveryConfig = Omit<DiscoveryServerOptions, "sources"> & {
  readonly sources: readonly SourceConfig[];
};

/** What is read of a server's flags. */
export type DiscoveryReading = GivenValues<FlagValues<typeof DISCOVERY_FLAGS>>;

/**
 * Combines and checks; absent: there is no discovery.
 *
 * @throws {UsageError} One line.
 */
export function discoveryConfig(
  reading: DiscoveryReading,
  context: Pick<FlagSources, "readFile">,
): DiscoveryConfig | undefined {
  const { values, given } = withoutStateAccess(reading);
  if (!values["discovery"]) {
    refuseFlags(
      given,
      (name) => Object.hasOwn(DISCOVERY_FLAGS, name) && name !== "discovery",
      "without --discovery: it is about that; add it",
    );
    return undefined;
  }
  const windowMinMs = values["discovery-debounce-min"];
  const windowMaxMs = values["discovery-debounce-max"];
  if (windowMinMs > windowMaxMs) {
    throw new UsageError(
      `Cannot use --discovery-debounce-min=${windowMinMs}ms: it is longer ` +
        `than --discovery-debounce-max=${windowMaxMs}ms`,
    );
  }
  const listen = placeOf(
    "--discovery-listen",
    values["discovery-listen"],
    isLoopbackHost,
    "a loopback address such as 127.0.0.1:15010, because callers there are " +
      "not authenticated; nodes are served on the agent port",
  );
  const sources = sourceConfigs({ values, given }, context);
  return present({ sources, listen, windowMinMs, windowMaxMs });
}

/** Whether flags name members of etcd that have services. */
export function namesEtcd(given: ReadonlySet<string>): boolean {
  return ["etcd", "etcd-servers", "etcd-config"]
    .some((name) => given.has(name));
}

/** Files and a user of etcd may be for the state alone; see `--state`. */
function withoutStateAccess(reading: DiscoveryReading): DiscoveryReading {
  const { values, given } = reading;
  if (!given.has("state") || namesEtcd(given)) return reading;
  const none = ETCD_ACCESS_FLAGS.map((name) => [name, ""]);
  const others = [...given].filter((name) =>
    !ETCD_ACCESS_FLAGS.some((own) => own === name)
  );
  return {
    values: { ...values, ...Object.fromEntries(none) },
    given: new Set(others),
  };
}

/** Agents announce services too, so there may be no source at all. */
function sourceConfigs(
  { values, given }: DiscoveryReading,
  context: Pick<FlagSources, "readFile">,
): readonly SourceConfig[] {
  const own = ["discovery-config", "discovery-kubeconfig"];
  const isAny = [...given].some((name) =>
    own.includes(name) ||
    (Object.hasOwn(CATALOG_FLAGS, name) && Object.hasOwn(DISCOVERY_FLAGS, name))
  );
  if (!isAny) return [];
  const { "discovery-config": config, "discovery-kubeconfig": kubeconfig } =
    values;
  return withOwnNames(() =>
    catalogConfig({ ...values, config, kubeconfig }, context)
  );
}

/** Refusals of the proxy's flags, by the names that they have here. */
export function withOwnNames<Result>(act: () => Result): Result {
  return orMistake(
    [UsageError],
    act,
    (message) =>
      message.replaceAll(/--(config|kubeconfig)\b/g, "--discovery-$1"),
  );
}
