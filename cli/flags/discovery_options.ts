/**
 * Flags about discovery to options.
 *
 * @module
 */

import type { ListenAddress } from "../../net/listen/listeners.ts";
import type { Log } from "../../platform/log/log.ts";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import type { CommandContext } from "../command.ts";
import { UsageError } from "../usage_error.ts";
import { parseHostPort } from "./addresses.ts";
import { CATALOG_FLAGS } from "./catalog_flags.ts";
import { catalogSources } from "./catalog_sources.ts";
import { DISCOVERY_FLAGS } from "./discovery_flags.ts";
import type { FlagValues } from "./flag.ts";
import type { DiscoveryServerOptions } from "../../server/options.ts";

/** What is read of a server's flags. */
export interface DiscoveryReading {
  readonly values: FlagValues<typeof DISCOVERY_FLAGS>;
  readonly given: ReadonlySet<string>;
}

/**
 * Combines and checks; absent: there is no discovery.
 *
 * @throws {UsageError} One line.
 */
export function discoveryOptions(
  { values, given }: DiscoveryReading,
  context: Pick<CommandContext, "readFile">,
  log: Log,
): DiscoveryServerOptions | undefined {
  if (!values["discovery"]) {
    const idle = [...given].find((name) =>
      Object.hasOwn(DISCOVERY_FLAGS, name) && name !== "discovery"
    );
    if (idle === undefined) return undefined;
    throw new UsageError(
      `Cannot use --${idle} without --discovery: it is about that; add it`,
    );
  }
  const windowMinMs = values["discovery-debounce-min"];
  const windowMaxMs = values["discovery-debounce-max"];
  if (windowMinMs > windowMaxMs) {
    throw new UsageError(
      `Cannot use --discovery-debounce-min=${windowMinMs}ms: it is longer ` +
        `than --discovery-debounce-max=${windowMaxMs}ms`,
    );
  }
  const listen = listenAddress(values["discovery-listen"]);
  return {
    sources: sourcesOf({ values, given }, context, log),
    ...(listen === undefined ? {} : { listen }),
    windowMinMs,
    windowMaxMs,
  };
}

/** Agents announce services too, so there may be no source at all. */
function sourcesOf(
  { values, given }: DiscoveryReading,
  context: Pick<CommandContext, "readFile">,
  log: Log,
): DiscoveryServerOptions["sources"] {
  const own = ["discovery-config", "discovery-kubeconfig"];
  const isAny = [...given].some((name) =>
    own.includes(name) ||
    (Object.hasOwn(CATALOG_FLAGS, name) && Object.hasOwn(DISCOVERY_FLAGS, name))
  );
  if (!isAny) return [];
  const { "discovery-config": config, "discovery-kubeconfig": kubeconfig } =
    values;
  try {
    return catalogSources({ ...values, config, kubeconfig }, context, log);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const renamed = error.message
      .replaceAll(/--(config|kubeconfig)\b/g, "--discovery-$1");
    throw new UsageError(renamed);
  }
}

/** @throws {UsageError} One line. */
function listenAddress(text: string): ListenAddress | undefined {
  if (text === "") return undefined;
  const { host, port } = parseHostPort("--discovery-listen", text);
  if (isLoopbackHost(host)) return { hostname: host, port };
  throw new UsageError(
    `Cannot use --discovery-listen: saw "${text}", wanted a loopback address ` +
      "such as 127.0.0.1:15010, because nobody is asked there who they are; " +
      "nodes are served on the agent port",
  );
}
