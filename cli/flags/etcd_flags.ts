/**
 * Flags about an etcd cluster, for every command that reads or writes one, and
 * their meaning.
 *
 * @module
 */

import type { EtcdOptions } from "../../neighbours/etcd/connect.ts";
import { TUNNEL_PREFIX } from "../../services/catalog/sources/etcd/etcd_tunnel_layout.ts";
import type { FlagSources } from "./read_flags.ts";
import { bothOf, keyPair, textOf, UsageError } from "./usage_error.ts";
import { flag, type FlagValues, inGroup } from "./flag.ts";
import { parseJson, problemIn } from "../../platform/documents/document.ts";
import {
  as,
  either,
  list,
  map,
  readShape,
  type Shape,
  TEXT,
} from "../../platform/documents/shape.ts";

/** How etcd is reached, for the services and for the state in it. */
export const ETCD_ACCESS = {
  "etcd-ca-cert": flag.file({
    help: "CA of the members' certificates.",
    defaultText: "the public ones",
  }),
  "etcd-cert": flag.file("Certificate shown to etcd."),
  "etcd-key": flag.file("Private key of --etcd-cert."),
  "etcd-user": flag.word("NAME", "User of etcd, with --etcd-password-file."),
  "etcd-password-file": flag.file({
    help: "File that holds that user's password and nothing else.",
  }),
} as const;

/** The names of these. */
export const ETCD_ACCESS_FLAGS = Object.keys(
  ETCD_ACCESS,
) as (keyof typeof ETCD_ACCESS)[];

export const ETCD_FLAGS = inGroup("etcd", {
  "etcd": flag.list([], {
    placeholder: "URL,…",
    help: "Members of the cluster: http://HOST:PORT, https://HOST:PORT or " +
      "HOST:PORT. One of them is used at a time.",
  }),
  ...ETCD_ACCESS,
  "etcd-prefix": flag.text(TUNNEL_PREFIX, {
    placeholder: "PREFIX",
    help: "Prefix of the keys of services and endpoints.",
  }),
  "etcd-config": flag.file({
    help: "Read members and files from go-etcd's JSON instead, as " +
      "kube-proxy 0.4 does.",
  }),
});

type EtcdFlagValues = FlagValues<typeof ETCD_FLAGS>;

/**
 * The members; `undefined` when no flag names one.
 *
 * @throws {UsageError} One line.
 */
export function etcdOptions(
  flags: EtcdFlagValues,
  context: Pick<FlagSources, "readFile">,
): EtcdOptions | undefined {
  const { etcd: servers, "etcd-config": configFile } = flags;
  const pair = keyPair(flags, "etcd-cert", "etcd-key");
  const ca = flags["etcd-ca-cert"];
  const user = etcdUser(flags, context);
  const hasTls = pair !== undefined || ca !== "";
  if (configFile !== "") {
    if (servers.length > 0 || hasTls) {
      throw new UsageError(
        "Cannot use --etcd-config together with --etcd or its files: both " +
          "say where etcd is; keep one of them",
      );
    }
    const options = parseEtcdConfigFile(
      configFile,
      textOf(
        `Cannot use --etcd-config: ${configFile}`,
        configFile,
        context.readFile,
      ),
    );
    return { ...options, ...user };
  }
  if (servers.length === 0) {
    if (!hasTls && user === undefined) return undefined;
    throw new UsageError(
      "Cannot reach etcd: wanted --etcd, such as --etcd=https://10.0.0.1:2379",
    );
  }
  return {
    servers,
    tls: { cert: pair?.certFile, key: pair?.keyFile, ca: ca || undefined },
    ...user,
  };
}

/** @throws {UsageError} When the prefix cannot hold a layout. */
export function etcdPrefix(flags: EtcdFlagValues): string {
  const prefix = flags["etcd-prefix"];
  if (prefix !== "" && prefix !== "/") {
    return prefix.endsWith("/") ? prefix : `${prefix}/`;
  }
  throw new UsageError(
    `Cannot use --etcd-prefix: saw "${prefix}", wanted one such as ` +
      TUNNEL_PREFIX,
  );
}

/** The user for etcd. @throws {UsageError} One line. */
export function etcdUser(
  flags: Pick<EtcdFlagValues, "etcd-user" | "etcd-password-file">,
  context: Pick<FlagSources, "readFile">,
): Pick<EtcdOptions, "user"> | undefined {
  const user = bothOf(flags, "etcd-user", "etcd-password-file");
  if (user === undefined) return undefined;
  const [name, file] = user;
  const text = textOf(
    `Cannot use --etcd-password-file: ${file}`,
    file,
    context.readFile,
  );
  // Editors end the last line; no password does.
  return { user: { name, password: text.replace(/\r?\n$/, "") } };
}

/**
 * Reads go-etcd's configuration file, which kube-proxy 0.4 takes by
 * `--etcd-config`:
 *
 * ```
 * {"cluster": {"machines": ["https://10.0.0.1:2379"]},
 *  "config": {"certFile": "", "keyFile": "", "caCertFile": [], "timeout": 1}}
 * ```
 *
 * Leader, timeout and consistency are ignored, because this client decides them
 * itself.
 *
 * @throws {UsageError} One line.
 */
function parseEtcdConfigFile(path: string, text: string): EtcdOptions {
  try {
    return readShape(ETCD_CONFIG, parseJson(text));
  } catch (error) {
    const problem = problemIn(text, error);
    throw new UsageError(
      `Cannot use --etcd-config: ${path}: ${problem}, wanted go-etcd's JSON ` +
        'such as {"cluster": {"machines": ["http://10.0.0.1:2379"]}}',
      "TUN114",
    );
  }
}

const OF_OTHERS = { isOpen: true } as const;

/** One text or several; empty ones count as absent. */
const TEXTS: Shape<readonly string[]> = as(
  either([TEXT, list(TEXT)]),
  (given) => [given].flat().filter((text) => text !== ""),
);

/** go-etcd's, as kube-proxy 0.4 reads it. */
export const ETCD_CONFIG: Shape<EtcdOptions> = as(
  map({
    cluster: map({ machines: TEXTS }, {
      ...OF_OTHERS,
      required: { machines: "there is none" },
    }),
    config: map(
      { certFile: TEXTS, keyFile: TEXTS, caCertFile: TEXTS },
      OF_OTHERS,
    ),
  }, { ...OF_OTHERS, required: { cluster: "it is missing" } }),
  ({ cluster: { machines: servers }, config = {} }, at) => {
    if (servers.length === 0) {
      return at.say("there is none", "cluster", "machines");
    }
    const { certFile: [cert] = [], keyFile: [key] = [], caCertFile = [] } =
      config;
    if ((cert === undefined) !== (key === undefined)) {
      return at.say("certFile and keyFile belong together", "config");
    }
    const ca = caCertFile.length === 0 ? undefined : caCertFile;
    return { servers, tls: { cert, key, ca } };
  },
);
