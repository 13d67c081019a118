/**
 * Flags about the servers' common state, for every command that reads or
 * changes it, and their meaning.
 *
 * @module
 */

import { parseEtcdMember } from "../../neighbours/etcd/members.ts";
import type {
  SealingKeySource,
  StoreLocation,
} from "../../neighbours/store/store_connection.ts";
import { ETCD_ACCESS, ETCD_ACCESS_FLAGS, etcdUser } from "./etcd_flags.ts";
import { flag, type FlagValues } from "./flag.ts";
import { keyPair, unusable, UsageError } from "./usage_error.ts";
import type { FlagSources } from "./read_flags.ts";
import { stateDirectoryFlag } from "./state_directory.ts";
import { NeighbourConfigError } from "../../neighbours/tls_files.ts";

/** Prefix of every key in etcd unless the URL names another. */
export const STATE_PREFIX = "/tunnel/state/";

/** Longer ones leave too little of a key for its name. */
const PREFIX_LENGTH_MAX = 200;

/** A namespace: RFC 1123's label, as the API has it. */
const NAMESPACE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** A value of `--state-key-file`: encryption is off. */
const NO_KEY = "none";

/** The place of the servers' state. */
export const STATE_FLAGS = {
  "state": flag.word("PLACE", {
    help: "Where all servers have their CA, tokens and nodes in common: " +
      "DIRECTORY, etcd://HOST:PORT[,HOST:PORT…][/PREFIX] (etcds:// with " +
      "TLS), or kubernetes[:NAMESPACE] (docs/operations.md).",
    defaultText: "--state-dir",
  }),
  "state-key-file": flag.file({
    help: "Encrypt the keys of the CA in --state with this file's bytes, 32 " +
      "or more; all servers have the same one. etcd and kubernetes want " +
      'it, or "none" for no encryption.',
  }),
} as const;

/** For commands that work on the state of servers. */
export const STATE_COMMAND_FLAGS = {
  "state-dir": stateDirectoryFlag("server"),
  ...STATE_FLAGS,
  ...ETCD_ACCESS,
  "kubeconfig": flag.file({
    help: "How to reach the API server of --state=kubernetes.",
    defaultText: "in-cluster",
  }),
} as const;

/** The values that {@linkcode stateLocation} reads. */
export type StateFlagValues = Omit<
  FlagValues<typeof STATE_COMMAND_FLAGS>,
  "state-dir"
>;

/** What a command knows beside its flags. */
export interface StatePlace {
  /** Meant when `--state` is not given. */
  readonly stateDirectory: string;
  /** Other flags say that the files and the user are for etcd, too. */
  readonly hasOtherEtcd?: boolean;
}

/**
 * The place of the state.
 *
 * @throws {UsageError} One line.
 */
export function stateLocation(
  flags: StateFlagValues,
  { stateDirectory, hasOtherEtcd = false }: StatePlace,
  context: Pick<FlagSources, "readFile">,
): StoreLocation {
  const text = flags["state"];
  const etcd = /^(etcds?):\/\/([^/]*)(\/.*)?$/.exec(text);
  if (etcd !== null) {
    const [, scheme, hosts, prefix] = etcd;
    const isTls = scheme === "etcds";
    const servers = membersOf(text, hosts!, isTls);
    return {
      kind: "etcd",
      prefix: prefixOf(text, prefix ?? ""),
      etcd: {
        servers,
        tls: tlsOf(flags, isTls, hasOtherEtcd),
        ...etcdUser(flags, context),
      },
    };
  }
  const idle = ETCD_ACCESS_FLAGS.find((name) => flags[name] !== "");
  if (idle !== undefined && !hasOtherEtcd) {
    throw new UsageError(
      `Cannot use --${idle}: nothing is in etcd; wanted --state=etcds://` +
        "HOST:PORT, or remove it",
    );
  }
  const kubernetes = /^kubernetes(?::(.*))?$/.exec(text);
  if (kubernetes !== null) {
    const [, namespace] = kubernetes;
    if (namespace !== undefined && !NAMESPACE.test(namespace)) {
      throw refusal(text, "a namespace behind kubernetes:");
    }
    const { kubeconfig } = flags;
    return {
      kind: "kubernetes",
      kubernetes: kubeconfig === "" ? {} : { kubeconfig },
      ...(namespace === undefined ? {} : { namespace }),
    };
  }
  // A typing error must not create an authority in a directory with that name;
  // such a directory is ./etcd:.
  if (/^(?:[a-z0-9+.-]+:|etcds?$)/i.test(text)) {
    throw refusal(
      text,
      "a directory, etcd://HOST:PORT, etcds://HOST:PORT or kubernetes",
    );
  }
  return { kind: "directory", root: text || stateDirectory };
}

/**
 * What keys of authorities are encrypted with.
 *
 * @throws {UsageError} One line.
 */
export function stateKey(
  flags: Pick<StateFlagValues, "state-key-file">,
  { kind }: StoreLocation,
  flag = "state-key-file",
): SealingKeySource | undefined {
  const path = flags["state-key-file"];
  if (path === NO_KEY) return { kind: "none" };
  if (path !== "") return { kind: "file", path };
  if (kind === "directory") return undefined;
  throw new UsageError(
    `Cannot keep keys of a CA in ${kind} as they are: every user who can read them ` +
      `there can issue certificates; give --${flag} FILE (head -c 32 ` +
      "/dev/urandom > FILE, the same on all servers), or accept the risk " +
      `with --${flag}=none`,
  );
}

function membersOf(text: string, hosts: string, isTls: boolean): string[] {
  const scheme = isTls ? "https" : "http";
  const servers = hosts.split(",").map((host) => `${scheme}://${host.trim()}`);
  try {
    for (const server of servers) parseEtcdMember(server, isTls);
    return servers;
  } catch (error) {
    if (!(error instanceof NeighbourConfigError)) throw error;
    throw refusal(text, "etcd://HOST:PORT[,HOST:PORT…][/PREFIX]");
  }
}

function prefixOf(text: string, path: string): string {
  if (path === "" || path === "/") return STATE_PREFIX;
  const prefix = path.endsWith("/") ? path : `${path}/`;
  const isGood = /^(?:\/[A-Za-z0-9._-]+)+\/$/.test(prefix) &&
    prefix.length <= PREFIX_LENGTH_MAX;
  if (isGood) return prefix;
  throw refusal(text, `a prefix such as ${STATE_PREFIX} behind the hosts`);
}

function tlsOf(flags: StateFlagValues, isTls: boolean, hasOtherEtcd: boolean) {
  const pair = keyPair(flags, "etcd-cert", "etcd-key");
  const ca = flags["etcd-ca-cert"];
  if (isTls) {
    return { cert: pair?.certFile, key: pair?.keyFile, ca: ca || undefined };
  }
  if ((pair === undefined && ca === "") || hasOtherEtcd) return {};
  throw new UsageError(
    `Cannot use --${ca === "" ? "etcd-cert" : "etcd-ca-cert"} with --state=` +
      "etcd://…: nothing there is encrypted; wanted etcds://",
  );
}

function refusal(text: string, wanted: string): UsageError {
  return unusable("--state", text.slice(0, 200), `${wanted}`);
}
