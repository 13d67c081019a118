/**
 * How a client of discovery reaches its servers, and as whom, from flags. Of
 * `tunnel proxy` and `tunnel adsc`, whose flags have names of their own.
 *
 * @module
 */

import { flag } from "./flag.ts";
import type { AdsAccess } from "../../agent/identity/ads_access.ts";
import { hasJoined } from "../../agent/identity/agent_state.ts";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import { keyPair, UsageError } from "./usage_error.ts";
import { type HostPort, parseHostPort } from "./addresses.ts";
import { loadCredentials, readJoined } from "./node_route.ts";
import type { FlagSources } from "./read_flags.ts";
import { defaultStateDirectory } from "./state_directory.ts";

/** Values of the flags. */
export interface AdsAccessFlags
  extends Readonly<Record<"agent-cert" | "agent-key" | "state-dir", string>> {
  /** `HOST:PORT`, perhaps with `http://` or `https://` in front. */
  readonly servers: readonly string[];
  readonly ca: string;
}

/** What those are called that have another name with each command. */
type Names = Readonly<Record<"servers" | "ca", string>>;

/** Flags of all clients of discovery; some have another name with each command. */
export const ADS_FLAGS = {
  mode: flag.choice(["delta", "sotw"], "delta", {
    help: "delta: receive only what changed. sotw: receive everything each " +
      "time.",
  }),
  ca: flag.file({
    help: "CA of the servers' certificate, for nodes that have not joined.",
  }),
  pair: {
    "agent-cert": flag.file("Certificate of the node, shown to them."),
    "agent-key": flag.file("Private key of --agent-cert."),
  },
} as const;

/** What is read of the machine. */
type Machine = Pick<FlagSources, "readFile" | "environment">;

/**
 * Certificates are for TLS, loopback is without; other addresses are for nodes
 * that have joined. `http://` and `https://` override that.
 *
 * @param usualDirectory Where agents keep their identity by default.
 * @throws {UsageError} One line.
 */
export function adsAccess(
  flags: AdsAccessFlags,
  names: Names,
  { readFile, environment }: Machine,
  usualDirectory: string = defaultStateDirectory("agent", environment),
): AdsAccess {
  const { ca, "state-dir": stateDirectory } = flags;
  const parsed = flags.servers.map((text) => parseServer(names.servers, text));
  const addresses = parsed.map(({ address }) => address);
  const pair = keyPair(flags, "agent-cert", "agent-key");
  const hasFiles = pair !== undefined || ca !== "";
  if (hasFiles && stateDirectory !== "") {
    throw new UsageError(
      `Cannot use --state-dir together with --${
        pair === undefined ? names.ca : "agent-cert"
      }: both say who this node is; keep one`,
    );
  }
  const isTls = parsed.map(({ scheme, address: { host } }) =>
    scheme === undefined
      ? hasFiles || stateDirectory !== "" || !isLoopbackHost(host)
      : scheme === "https"
  );
  if (!isTls.includes(true)) return plainAccess(names, addresses, hasFiles);
  if (isTls.includes(false)) {
    throw new UsageError(
      `Cannot use --${names.servers}: some of its servers are asked with TLS ` +
        "and some without; write http:// or https:// in front of all",
    );
  }
  if (!hasFiles) {
    const root = stateDirectory || usualDirectory;
    return joinedAccess(root, names, addresses, readFile);
  }
  const { certFile: cert = "", keyFile: key = "" } = pair ?? {};
  const credentials = loadCredentials({
    ca: ca || undefined,
    cert: cert || undefined,
    key: key || undefined,
  });
  const leaf = credentials.terms.find(({ role }) => role === "leaf");
  const node = leaf?.subject.replace(/^(?:system:node:|node:)/, "") ?? "";
  const files = { ca, cert, key };
  return { kind: "files", addresses, credentials, files, node };
}

function plainAccess(
  names: Names,
  addresses: readonly HostPort[],
  hasFiles: boolean,
): AdsAccess {
  const far = addresses.find(({ host }) => !isLoopbackHost(host));
  if (far !== undefined) {
    throw new UsageError(
      `Cannot use --${names.servers} http://${far.host}:${far.port}: without ` +
        "TLS only servers on this machine are asked; write https://",
    );
  }
  if (hasFiles) {
    throw new UsageError(
      `Cannot use --${names.ca} or --agent-cert with http://: there is no ` +
        "TLS; remove them",
    );
  }
  return { kind: "plain", addresses };
}

function joinedAccess(
  root: string,
  names: Names,
  addresses: readonly HostPort[],
  readFile: Machine["readFile"],
): AdsAccess {
  if (!hasJoined(root)) {
    throw new UsageError(
      `Cannot verify the discovery server: this node has ` +
        `not joined (there is no identity in ${root}); tunnel join, or give ` +
        `--${names.ca}, --agent-cert and --agent-key`,
      "TUN309",
    );
  }
  const node = readJoined(root, readFile).name;
  return { kind: "joined", addresses, stateDirectory: root, node };
}

function parseServer(
  name: string,
  text: string,
): {
  readonly scheme: "http" | "https" | undefined;
  readonly address: HostPort;
} {
  const match = /^(https?):\/\/(.*?)\/?$/.exec(text);
  return {
    scheme: match?.[1] as "http" | "https" | undefined,
    address: parseHostPort(`--${name}`, match?.[2] ?? text),
  };
}
