/**
 * Access to an API server as a kubeconfig file describes it, in kubectl's
 * format.
 *
 * An unsupported field is refused by name: ignoring it could mean to use
 * another server or another identity than the file says.
 *
 * Reading order: `kubeconfigAccess`, `clusterOf`, `userOf`.
 *
 * @module
 */

import { dirname } from "node:path";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { systemProblem } from "../../platform/files/file_error.ts";
import { type KubernetesAccess, TokenFile } from "./access.ts";
import { ExecCredentials, type ExecPlugin, readExecPlugin } from "./exec.ts";
import {
  DocumentError,
  parseYaml,
  withLine,
} from "../../platform/documents/document.ts";
import {
  DocumentMap,
  FieldError,
} from "../../platform/documents/document_map.ts";
import { NeighbourConfigError, TlsFiles } from "../tls_files.ts";

/** A kubeconfig with a hundred clusters has a tenth of this. */
export const KUBECONFIG_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Reads a kubeconfig file. The file itself is read once; the token and
 * certificate files that it names are looked at again.
 *
 * @throws {NeighbourConfigError} Which names the file and the field.
 */
export function kubeconfigAccess(
  path: string,
  clock: Clock,
): KubernetesAccess {
  const text = readText(path);
  try {
    return accessOf(new DocumentMap(parseYaml(text), []), path, clock);
  } catch (error) {
    if (!(error instanceof FieldError || error instanceof DocumentError)) {
      throw error;
    }
    const problem = error instanceof FieldError
      ? withLine(text, error)
      : error.message;
    throw new NeighbourConfigError(
      `Cannot use kubeconfig ${path}: ${problem}`,
      { cause: error },
    );
  }
}

/** @throws {FieldError} */
function accessOf(
  file: DocumentMap,
  path: string,
  clock: Clock,
): KubernetesAccess {
  const { cluster, user, namespace } = choose(file);
  const from = { folder: dirname(path), clock };
  const server = clusterOf(cluster, from);
  const credentials = userOf(user, cluster, server, from);
  return {
    server: server.url,
    namespace,
    proxyUrl: server.proxyUrl || undefined,
    authority: server.authority,
    credential: () => credentials.current(),
    rejected: () => {
      server.expire();
      credentials.expire();
    },
  };
}

interface Surroundings {
  readonly clock: Clock;
  /** Relative paths start there. */
  readonly folder: string;
}

function readText(path: string): string {
  let text: string;
  try {
    text = Deno.readTextFileSync(path);
  } catch (error) {
    throw new NeighbourConfigError(
      `Cannot read kubeconfig ${path}: ${systemProblem(error)}; check the path`,
      { cause: error },
    );
  }
  if (text.length <= KUBECONFIG_BYTES_MAX) return text;
  throw new NeighbourConfigError(
    `Cannot use kubeconfig ${path}: it is longer than ` +
      `${KUBECONFIG_BYTES_MAX} bytes`,
  );
}

// --- Which cluster, which user --------------------------------------------------

interface Choice {
  readonly cluster: DocumentMap;
  readonly user: DocumentMap;
  readonly namespace: string;
}

function choose(file: DocumentMap): Choice {
  const name = file.text("current-context");
  if (!name) {
    throw new FieldError(
      file.place,
      "it names no current-context; set one by kubectl config use-context",
    );
  }
  const context = named(file, "contexts", name, "context");
  const user = context.text("user");
  return {
    cluster: named(file, "clusters", context.text("cluster") ?? "", "cluster"),
    // Without a user no credentials are shown, as in kubectl.
    user: user ? named(file, "users", user, "user") : new DocumentMap({}, []),
    namespace: context.text("namespace") || "default",
  };
}

/** The content of `key` in an item of a list of named ones. */
function named(
  file: DocumentMap,
  list: string,
  name: string,
  key: string,
): DocumentMap {
  for (const [item, place] of file.list(list)) {
    const fields = new DocumentMap(item, place);
    if (fields.value("name") !== name) continue;
    return fields.map(key) ?? new DocumentMap({}, [...place, key]);
  }
  return file.refuse(list, `none has the name "${name}"`);
}

// --- The cluster ---------------------------------------------------------------

interface Server {
  readonly url: string;
  readonly proxyUrl: string;
  authority(): string | undefined;
  expire(): void;
}

function clusterOf(
  cluster: DocumentMap,
  { folder, clock }: Surroundings,
): Server {
  if (cluster.flag("insecure-skip-tls-verify")) {
    cluster.refuse(
      "insecure-skip-tls-verify",
      "it is not supported, because any server at that address would be " +
        "believed; give certificate-authority-data",
    );
  }
  const serverName = cluster.text("tls-server-name");
  const url = parseServer(cluster);
  if (serverName && serverName !== url.hostname) {
    cluster.refuse(
      "tls-server-name",
      "it is not supported by this platform's HTTP client; name " +
        `the server as its certificate does (server: https://${serverName}…)`,
    );
  }
  const common = {
    url: url.href.replace(/\/+$/, ""),
    proxyUrl: cluster.text("proxy-url") ?? "",
  };
  const data = base64In(cluster, "certificate-authority-data");
  const path = cluster.text("certificate-authority") ?? "";
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

function parseServer(cluster: DocumentMap): URL {
  const text = cluster.text("server") ?? "";
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "https:") return url;
  if (url?.protocol === "http:" && isLoopbackHost(url.hostname)) return url;
  return cluster.refuse(
    "server",
    `saw "${text}", wanted https://host:port; http would show the ` +
      "credentials to everybody on the way",
  );
}

// --- The user -------------------------------------------------------------------

type UserCredentials = Pick<ExecCredentials, "current" | "expire">;

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
  user: DocumentMap,
  cluster: DocumentMap,
  server: Server,
  from: Surroundings,
): UserCredentials {
  for (const [name, remedy] of UNSUPPORTED) {
    if (!user.has(name) || user.value(name) === "") continue;
    user.refuse(name, `it is not supported; ${remedy}`);
  }
  const exec = user.map("exec");
  if (exec !== undefined) {
    const plugin = readExecPlugin(exec, from.folder);
    if (user.text("token") || user.text("tokenFile")) {
      throw new FieldError(
        user.place,
        "it has both exec and a token; keep one of them",
      );
    }
    return execCredentials(plugin, cluster, server);
  }
  const keyPair = keyPairOf(user, from);
  const authorization = bearerOf(user, from);
  return {
    current: async () => ({
      ...await authorization.current(),
      ...keyPair.current(),
    }),
    expire: () => {
      authorization.expire();
      keyPair.expire();
    },
  };
}

function bearerOf(user: DocumentMap, { folder, clock }: Surroundings) {
  const path = user.text("tokenFile");
  if (path) {
    const file = new TokenFile(within(folder, path), clock);
    return {
      current: async () => ({
        authorization: `Bearer ${await file.current()}`,
      }),
      expire: () => file.expire(),
    };
  }
  const token = user.text("token");
  const fixed = token ? { authorization: `Bearer ${token}` } : {};
  return { current: () => Promise.resolve(fixed), expire: () => {} };
}

/** Data wins over a file of the same name, as kubectl has it. */
function keyPairOf(user: DocumentMap, { folder, clock }: Surroundings) {
  const cert = base64In(user, "client-certificate-data");
  const key = base64In(user, "client-key-data");
  const certFile = cert === "" ? user.text("client-certificate") ?? "" : "";
  const keyFile = key === "" ? user.text("client-key") ?? "" : "";
  const hasCert = cert !== "" || certFile !== "";
  const hasKey = key !== "" || keyFile !== "";
  if (hasCert !== hasKey) {
    throw new FieldError(
      user.place,
      "it has only one of a client certificate and its key; give both",
    );
  }
  if (!hasCert) return { current: () => ({}), expire: () => {} };
  if (cert !== "" && key !== "") {
    const keyPair = { cert, key };
    return { current: () => ({ keyPair }), expire: () => {} };
  }
  if (cert !== "" || key !== "") {
    throw new FieldError(
      user.place,
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
  cluster: DocumentMap,
  server: Server,
): UserCredentials {
  return new ExecCredentials(plugin, () => {
    const authority = server.authority();
    return {
      server: server.url,
      ...(authority === undefined
        ? {}
        : { "certificate-authority-data": btoa(authority) }),
      "proxy-url": server.proxyUrl || undefined,
      config: extensionOf(cluster, "client.authentication.k8s.io/exec"),
    };
  });
}

/** What `extensions` say under `name`; else `null`. */
function extensionOf(cluster: DocumentMap, name: string): unknown {
  for (const [item, place] of cluster.list("extensions")) {
    const fields = new DocumentMap(item, place);
    if (fields.value("name") === name) return fields.value("extension") ?? null;
  }
  return null;
}

/** A text in base64, decoded; empty when absent. */
function base64In(fields: DocumentMap, key: string): string {
  const text = fields.text(key) ?? "";
  try {
    return new TextDecoder().decode(Uint8Array.fromBase64(text));
  } catch {
    return fields.refuse(key, "it is not base64");
  }
}

/** The path as the file means it: relative ones start at the file's folder. */
function within(folder: string, path: string): string {
  return path.startsWith("/") ? path : `${folder}/${path}`;
}
