/**
 * Flags of `tunnel server` about other servers of the same service, and their
 * meaning.
 *
 * @module
 */

import { isAddress } from "../../proto/peer/host_port.ts";
import type { MembershipOptions } from "../../server/options.ts";
import { PEER_TIMEOUT_MS } from "../../neighbours/store/ephemerals.ts";
import { formatHostPort, parseHostPort } from "../flags/addresses.ts";
import { common, flag, type FlagValues, inGroup } from "../flags/flag.ts";
import { unusable, UsageError } from "../flags/usage_error.ts";
import { given } from "../../platform/documents/given.ts";

/** Less, and a pause of the machine looks like its end. */
const TIMEOUT_LEAST_MS = 2_000;

/** Servers in one list. */
const PEERS_MAX = 256;

/** In the order in which the help shows them. */
export const PEER_FLAGS = inGroup("Several servers (docs/operations.md)", {
  "advertise-address": common(flag.word("HOST:PORT", {
    help: "Where agents and other servers reach this server's agent port. " +
      "Agents are told the addresses of all servers, and link to each.",
    defaultText:
      "--agent-bind-address, if that is one address and not loopback",
  })),
  "peers": flag.list([], {
    placeholder: "ID=HOST:PORT,…",
    help: "Other servers, by their --server-id and the address of their " +
      "agent port, if they have no common --state. The list may " +
      "contain this server, and be the same on all.",
  }),
  "peer-timeout": flag.duration(PEER_TIMEOUT_MS, TIMEOUT_LEAST_MS, {
    help: "A server that has not renewed its entry in --state for this long " +
      "counts as gone. One that ends takes its entry with it.",
  }),
});

/** @throws {UsageError} One line. */
export function membershipOptions(
  flags: FlagValues<typeof PEER_FLAGS>,
): MembershipOptions {
  const advertised = flags["advertise-address"];
  const fixed = flags["peers"].map(peerOf);
  const ids = fixed.map(({ serverId }) => serverId);
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice !== undefined) {
    throw new UsageError(
      `Cannot use --peers: "${twice}" stands there twice; give each server ` +
        "its own --server-id",
    );
  }
  if (fixed.length > PEERS_MAX) {
    throw new UsageError(
      `Cannot use --peers: saw ${fixed.length} servers, wanted at most ` +
        `${PEERS_MAX}`,
    );
  }
  return given({
    fixed,
    timeoutMs: flags["peer-timeout"],
    advertiseAddress: advertised === ""
      ? undefined
      : addressOf("--advertise-address", advertised),
  });
}

function peerOf(text: string): MembershipOptions["fixed"][number] {
  const at = text.indexOf("=");
  if (at > 0) {
    const address = addressOf("--peers", text.slice(at + 1));
    return { serverId: text.slice(0, at), address };
  }
  const wanted = "ID=HOST:PORT, with the --server-id of that server";
  throw unusable("--peers", text, wanted);
}

function addressOf(flag: string, text: string): string {
  const place = parseHostPort(flag, text);
  const address = formatHostPort(place);
  const isEverywhere = /^(?:0\.0\.0\.0|\[::\]):/.test(address);
  if (isAddress(address) && !isEverywhere) return address;
  throw unusable(flag, text, "a name or an address that others can connect to");
}
