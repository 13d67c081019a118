/**
 * The identity that an agent shows to servers, and those servers: from files, or
 * from what the node has joined with.
 *
 * @module
 */

import type {
  AgentIdentityOptions,
  AgentOptions,
} from "../../agent/options.ts";
import { keyPair, UsageError } from "../flags/usage_error.ts";
import type { AGENT_FLAGS } from "./flags.ts";
import {
  joinRequest,
  joinTokenText,
  nodeName,
  serverAddresses,
} from "../flags/join_flags.ts";
import type { FlagReading } from "../flags/read_flags.ts";

type Reading = FlagReading<typeof AGENT_FLAGS>;

/** The agent's identity and its servers. */
export type Belonging =
  & Pick<AgentOptions, "identity">
  & Pick<AgentOptions["server"], "addresses" | "caFile" | "keyPair">;

/**
 * Files win over a joined identity; a token is used only without either.
 *
 * @param stateDirectory Where an agent keeps its identity by default.
 * @throws {UsageError} One line.
 */
export function belonging(
  { values: flags, given }: Reading,
  stateDirectory: string,
  joined: (directory: string) => boolean,
): Belonging {
  const caFile = flags["ca-cert"];
  const pair = keyPair(flags, "agent-cert", "agent-key");
  const addresses = addressesOf(flags, given);
  if (caFile !== "") {
    const odd = ["join", "join-file", "node", "state-dir"]
      .find((name) => given.has(name));
    if (odd !== undefined) {
      throw new UsageError(
        `Cannot use --${odd} together with --ca-cert: a node that joins ` +
          "trusts the server's own CA; give one of them",
      );
    }
    const withPair = pair === undefined ? {} : { keyPair: pair };
    return { addresses: addresses ?? [usual(flags)], caFile, ...withPair };
  }
  const identity = identityOf(flags, stateDirectory, joined);
  if (identity === undefined || pair !== undefined) {
    throw new UsageError(
      "Cannot verify the server: --ca-cert is not given" +
        (pair === undefined
          ? `, and there is no identity in ${
            flags["state-dir"] || stateDirectory
          }; join with --join and a token of \`tunnel token create\`, or give`
          : "; give") +
        " the CA file that the server's certificate was signed with",
      "TUN309",
    );
  }
  if (identity.token !== undefined && addresses === undefined) {
    throw new UsageError(
      "Cannot join: --server is not given; `tunnel token create` on the " +
        "server says where it is",
    );
  }
  return { identity, addresses: addresses ?? [], caFile };
}

function identityOf(
  flags: Reading["values"],
  fallback: string,
  joined: (directory: string) => boolean,
): AgentIdentityOptions | undefined {
  const stateDirectory = flags["state-dir"] || fallback;
  const node = nodeName(flags["node"]);
  if (joined(stateDirectory)) {
    return { stateDirectory, ...(node === undefined ? {} : { node }) };
  }
  const token = joinTokenText(flags["join"], flags["join-file"]);
  if (token === "") return undefined;
  return { stateDirectory, ...joinRequest(token, flags["node"]) };
}

/** @returns `undefined` when no flag names a server. */
function addressesOf(
  flags: Reading["values"],
  given: Reading["given"],
): Belonging["addresses"] | undefined {
  const konnectivitys = ["proxy-server-host", "proxy-server-port"]
    .find((name) => given.has(name));
  const addresses = serverAddresses(flags["server"]);
  if (konnectivitys === undefined) {
    return addresses.length === 0 ? undefined : addresses;
  }
  if (addresses.length > 0) {
    throw new UsageError(
      `Cannot use --server together with --${konnectivitys}: both say where ` +
        "the server is; give one of them",
    );
  }
  return [usual(flags)];
}

function usual(flags: Reading["values"]) {
  return {
    host: flags["proxy-server-host"],
    port: flags["proxy-server-port"],
  };
}
