/**
 * Access to an API server as a kubeconfig file describes it, in kubectl's
 * format.
 *
 * What is not supported is refused and named: to leave a word of the file out
 * would mean to talk to another server, or as somebody else, than it says.
 *
 * Reading order: `kubeconfigAccess`, `clusterOf`, `userOf`.
 *
 * @module
 */

import { parse as parseYaml } from "@std/yaml";
import { yamlProblem } from "../../platform/text/yaml_problem.ts";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { systemProblem } from "../../platform/files/file_error.ts";
import type { Credential, KubernetesAccess } from "./access.ts";
import { KubernetesConfigError } from "./errors.ts";
import { ExecCredentials, type ExecPlugin, readExecPlugin } from "./exec.ts";
import { type Fields, fieldsOf } from "./fields.ts";
import { TlsFiles } from "./tls_files.ts";
import { TokenFile } from "./token_file.ts";

/** A kubeconfig with a hundred clusters has a tenth of this. */
export const KUBECONFIG_BYTES_MAX = 4 * 1024 * 1024;

/** See {@linkcode kubeconfigAccess}. */
export interface KubeconfigOptions {
  readonly clock: Clock;
  /** Default: the file's `current-context`. */
  readonly context?: string;
  /** Milliseconds since 1970, for when credentials end. Default: `Date.now`. */
  readonly wallClock?: () => number;
}

/**
 * Reads a kubeconfig file. The file itself is read once; the token and
 * certificate files that it names are looked at again.
 *
 * @throws {KubernetesConfigError} Which names the file and the field.
 */
export function kubeconfigAccess(
  path: string,
  options: KubeconfigOptions,
): KubernetesAccess {
  const file = readFile(path);
  const folder = path.includes("/")
    ? path.slice(0, path.lastIndexOf("/"))
    : ".";
  const { cluster, user, namespace } = choose(file, options.context);
  const from = { folder: folder === "" ? "/" : folder, ...options };
  const server = clusterOf(cluster, from);
  const credentials = userOf(user, cluster, server, from);
  return {
    server: server.url,
    namespace,
    ...(server.proxyUrl === "" ? {} : { proxyUrl: server.proxyUrl }),
    authority: server.authority,
    credential: credentials.credential,
    rejected: () => {
      server.expire();
      credentials.expire();
    },
  };
}

interface Surroundings extends KubeconfigOptions {
  /** Relative paths start there. */
  readonly folder: string;
}

function readFile(path: string): Fields {
  let text: string;
  try {
    text = Deno.readTextFileSync(path);
  } catch (error) {
    throw new KubernetesConfigError(
      `Cannot read kubeconfig ${path}: ${systemProblem(error)}; check the path`,
      { cause: error },
    );
  }
  if (text.length > KUBECONFIG_BYTES_MAX) {
    throw new KubernetesConfigError(
      `Cannot use kubeconfig ${path}: it is longer than ` +
        `${KUBECONFIG_BYTES_MAX} bytes`,
    );
  }
  let value: unknown;
  try {
    value = parseYaml(text);
  } catch (error) {
    const problem = yamlProblem(error as Error);
    throw new KubernetesConfigError(
      `Cannot use kubeconfig ${path}: it is not YAML: ${problem}`,
      { cause: error },
    );
  }
  return fieldsOf(value, `kubeconfig ${path}`);
}

// --- Which cluster, which user --------------------------------------------------

interface Choice {
  readonly cluster: Fields;
  readonly user: Fields;
  readonly namespace: string;
}

function choose(file: Fields, wanted: string | undefined): Choice {
  const name = wanted ?? file.text("current-context");
  if (name === "") {
    throw file.problem(
      "it names no current-context; set one by kubectl config use-context",
    );
  }
  const context = file.named("contexts", name).child("context");
  const user = context.text("user");
  return {
    cluster: file.named("clusters", context.text("cluster")).child("cluster"),
    // Without a user nothing is shown, as kubectl does it.
    user: user === ""
      ? fieldsOf({}, "no user")
      : file.named("users", user).child("user"),
    namespace: context.text("namespace") || "default",
  };
}

// --- The cluster ---------------------------------------------------------------

interface Server {
  readonly url: string;
  readonly proxyUrl: string;
  authority(): string | undefined;
  expire(): void;
}

function clusterOf(cluster: Fields, { folder, clock }: Surroundings): Server {
  if (cluster.flag("insecure-skip-tls-verify")) {
    throw cluster.problem(
      "insecure-skip-tls-verify is not supported, because whoever answers at " +
        "that address would be believed; give certificate-authority-data",
    );
  }
  const serverName = cluster.text("tls-server-name");
  const url = parseServer(cluster);
  if (serverName !== "" && serverName !== url.hostname) {
    throw cluster.problem(
      "tls-server-name is not supported by this platform's HTTP client; name " +
        `the server as its certificate does (server: https://${serverName}…)`,
    );
  }
  const common = {
    url: url.href.replace(/\/+$/, ""),
    proxyUrl: cluster.text("proxy-url"),
  };
  const data = cluster.base64("certificate-authority-data");
  const path = cluster.text("certificate-authority");
  if (data !== "" || path === "") {
    const authority = data === "" ? undefined : data;
    return { ...common, authority: () => authority, expire: () => {} };
  }
  const files = new TlsFiles({ ca: within(folder, path) }, clock);
  return {
    ...common,
    authority: () => files.current.ca,
    expire: () => files.expire(),
  };
}

function parseServer(cluster: Fields): URL {
  const text = cluster.text("server");
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "https:") return url;
  if (url?.protocol === "http:" && isLoopbackHost(url.hostname)) return url;
  throw cluster.problem(
    `server is "${text}", wanted https://host:port; http would show the ` +
      "credentials to everybody on the way",
  );
}

// --- The user -------------------------------------------------------------------

interface UserCredentials {
  credential(): Promise<Credential>;
  expire(): void;
}

/** Ways to log in that would need another protocol, or more than one person. */
const UNSUPPORTED = [
  ["auth-provider", "use an exec plugin, as kubectl does since 1.26"],
  ["username", "API servers take no passwords since 1.19; use a token"],
  ["password", "API servers take no passwords since 1.19; use a token"],
  ["as", "give this user the rights it needs instead of another's"],
  ["as-uid", "give this user the rights it needs instead of another's"],
  ["as-groups", "give this user the rights it needs instead of another's"],
  ["as-user-extra", "give this user the rights it needs instead of another's"],
] as const;

function userOf(
  user: Fields,
  cluster: Fields,
  server: Server,
  from: Surroundings,
): UserCredentials {
  for (const [name, remedy] of UNSUPPORTED) {
    if (user.has(name)) {
      throw user.problem(`${name} is not supported; ${remedy}`);
    }
  }
  if (user.has("exec")) {
    const plugin = readExecPlugin(user.child("exec"), from.folder);
    if (user.has("token") || user.has("tokenFile")) {
      throw user.problem("it has both exec and a token; keep one of them");
    }
    return execCredentials(plugin, cluster, server, from);
  }
  const keyPair = keyPairOf(user, from);
  const authorization = bearerOf(user, from);
  return {
    credential: async () => ({
      ...await authorization.current(),
      ...keyPair.current(),
    }),
    expire: () => {
      authorization.expire();
      keyPair.expire();
    },
  };
}

function bearerOf(user: Fields, { folder, clock }: Surroundings) {
  const path = user.text("tokenFile");
  if (path !== "") {
    const file = new TokenFile(within(folder, path), clock);
    return {
      current: async () => ({
        authorization: `Bearer ${await file.current()}`,
      }),
      expire: () => file.expire(),
    };
  }
  const token = user.text("token");
  const fixed = token === "" ? {} : { authorization: `Bearer ${token}` };
  return { current: () => Promise.resolve(fixed), expire: () => {} };
}

/** Data wins over a file of the same name, as kubectl has it. */
function keyPairOf(user: Fields, { folder, clock }: Surroundings) {
  const cert = user.base64("client-certificate-data");
  const key = user.base64("client-key-data");
  const certFile = cert === "" ? user.text("client-certificate") : "";
  const keyFile = key === "" ? user.text("client-key") : "";
  const hasCert = cert !== "" || certFile !== "";
  const hasKey = key !== "" || keyFile !== "";
  if (hasCert !== hasKey) {
    throw user.problem(
      "it has only one of a client certificate and its key; give both",
    );
  }
  if (!hasCert) return { current: () => ({}), expire: () => {} };
  if (cert !== "" && key !== "") {
    const keyPair = { cert, key };
    return { current: () => ({ keyPair }), expire: () => {} };
  }
  if (cert !== "" || key !== "") {
    throw user.problem(
      "its certificate and its key come one from a file and one from the " +
        "kubeconfig, so they could not be replaced together; put both in files",
    );
  }
  const files = new TlsFiles({
    cert: within(folder, certFile),
    key: within(folder, keyFile),
  }, clock);
  return {
    current: () => {
      const { cert, key } = files.current;
      return { keyPair: { cert, key } };
    },
    expire: () => files.expire(),
  };
}

function execCredentials(
  plugin: ExecPlugin,
  cluster: Fields,
  server: Server,
  { wallClock = Date.now }: Surroundings,
): UserCredentials {
  const credentials = new ExecCredentials(plugin, {
    wallClock,
    cluster: () => {
      const authority = server.authority();
      return {
        server: server.url,
        ...(authority === undefined
          ? {}
          : { "certificate-authority-data": btoa(authority) }),
        ...(server.proxyUrl === "" ? {} : { "proxy-url": server.proxyUrl }),
        config: cluster.extension("client.authentication.k8s.io/exec"),
      };
    },
  });
  return {
    credential: () => credentials.current(),
    expire: () => credentials.expire(),
  };
}

/** The path as the file means it: relative ones start at the file's folder. */
function within(folder: string, path: string): string {
  return path.startsWith("/") ? path : `${folder}/${path}`;
}
