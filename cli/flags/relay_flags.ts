/**
 * Flags of the relay that a node runs for programs on it; of `tunnel agent` and
 * `tunnel proxy`.
 *
 * @module
 */

import type { RelayOptions } from "../../agent/options.ts";
import type { ListenAddress } from "../../net/listen/listeners.ts";
import { isLoopback } from "../../proto/peer/ip_address.ts";
import { type ListenFlag, placeOf } from "./addresses.ts";
import { UsageError } from "./usage_error.ts";
import { flag, inGroup } from "./flag.ts";
import { anyGiven } from "../../platform/documents/given.ts";

/** See the module description. */
export const RELAY_FLAGS = inGroup(
  "Relay (for programs on this machine without an identity)",
  {
    "xds-listen": flag.word("IP:PORT", {
      help: "Relay discovery (ADS, for gRPC clients and Envoy) to the server " +
        "under this node's identity. Loopback only: every client of it is " +
        "admitted.",
      defaultText: "none",
    }),
    "connect-listen": flag.word("IP:PORT", {
      help: "Relay connections (HTTP CONNECT) to what this node may reach " +
        "through the server. Loopback only. Clients of --xds-listen that " +
        "ask for it (http_11_proxy) are sent this address.",
      defaultText: "none",
    }),
  },
);

/**
 * @returns `undefined` when no relay is requested. @throws {UsageError} One
 *   line.
 */
export function relayOptions(
  flags: { readonly [Name in keyof typeof RELAY_FLAGS]: string },
): RelayOptions | undefined {
  return anyGiven({
    xds: loopback("--xds-listen", flags["xds-listen"]),
    connect: loopback("--connect-listen", flags["connect-listen"]),
  });
}

/** For listen errors: the flag of an address. */
export function relayFlags(
  { xds, connect }: RelayOptions = {},
): readonly ListenFlag[] {
  return [["--xds-listen", xds ?? ""], ["--connect-listen", connect ?? ""]];
}

/** The refusal of a relay for another reason than its address. */
export function relayRefusal({ xds }: RelayOptions, why: string): UsageError {
  const flag = xds === undefined ? "connect-listen" : "xds-listen";
  return new UsageError(`Cannot use --${flag} ${why}`);
}

/** When there is none. */
export const WITHOUT_IDENTITY = "without an identity of this node: programs " +
  "are passed on under it; tunnel join, or give --agent-cert and --agent-key";

function loopback(flag: string, text: string): ListenAddress | undefined {
  const wanted = "an address of loopback such as 127.0.0.1:15010, because " +
    "callers there are not authenticated";
  return placeOf(flag, text, isLoopback, wanted, 0);
}
