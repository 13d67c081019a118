/**
 * Access to an API server as a kubeconfig file describes it, in kubectl's
 * format.
 *
 * An unsupported field is refused by name: ignoring it could mean to use
 * another server or another identity than the file says.
 *
 * Reading order: `kubeconfigAccess`, `accessOf`, `choose`, `CLUSTER`, `USER`.
 *
 * @module
 */

import { dirname } from "node:path";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { systemProblem } from "../../platform/files/file_error.ts";
import { credentialOf, type KubernetesAccess, TokenFile } from "./access.ts";
import { EXEC_PLUGIN, ExecCredentials } from "./exec.ts";
import { parseYaml, problemIn } from "../../platform/documents/document.ts";
import { FieldError } from "../../platform/documents/field_error.ts";
import {
  as,
  FLAG,
  list,
  map,
  type MeaningOf,
  readShape,
  scalar,
  type Shape,
  TEXT,
} from "../../platform/documents/shape.ts";
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
    return accessOf(readShape(KUBECONFIG, parseYaml(text)), path, clock);
  } catch (error) {
    throw new NeighbourConfigError(
      `Cannot use kubeconfig ${path}: ${problemIn(text, error)}`,
      { cause: error },
    );
  }
}

/** @throws {FieldError} */
function accessOf(
  file: Kubeconfig,
  path: string,
  clock: Clock,
): KubernetesAccess {
  const { cluster, user, namespace } = choose(file);
  const within = (named: string) =>
    named.startsWith("/") ? named : `${dirname(path)}/${named}`;
  const server = cluster.server.href.replace(/\/+$/, "");
  const {
    "proxy-url": proxyUrl,
    "certificate-authority-data": data,
    "certificate-authority": caFile = "",
  } = cluster;
  const ca = data || !caFile ? undefined : within(caFile);
  const authorities = new TlsFiles({ ca }, clock);
  const authority = () => data ?? (authorities.current.ca || undefined);
  const { exec, token, tokenFile, keyPair, certFile, keyFile } = user;
  const plugin = exec && new ExecCredentials({
    ...exec,
    command: exec.command.includes("/") ? within(exec.command) : exec.command,
  }, () => {
    const trusted = authority();
    return {
      server,
      "certificate-authority-data": trusted && btoa(trusted),
      "proxy-url": proxyUrl,
      config: cluster.extensions?.find(({ name }) =>
        name === "client.authentication.k8s.io/exec"
      )?.extension ?? null,
    };
  });
  const tokens = tokenFile === undefined
    ? undefined
    : new TokenFile(within(tokenFile), clock);
  const keyPairs = new TlsFiles({
    cert: certFile && within(certFile),
    key: keyFile && within(keyFile),
  }, clock);
  return {
    server,
    namespace,
    proxyUrl,
    authority,
    credential: async () =>
      await plugin?.current() ??
        credentialOf(
          await tokens?.current() ?? token,
          keyPair ?? keyPairs.current,
        ),
    rejected: () => {
      for (const source of [authorities, plugin, tokens, keyPairs]) {
        source?.expire();
      }
    },
  };
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

const OF_KUBECTL = { isOpen: true } as const;

/** An empty text counts as absent. */
const GIVEN = as(TEXT, (text) => text || undefined);

const RAW: Shape<unknown> = scalar({}, [], (value) => value);

/** Only what the current context names is read further, as kubectl does. */
const NAMED = list(
  map({ name: RAW, context: RAW, cluster: RAW, user: RAW }, OF_KUBECTL),
);

const KUBECONFIG = map({
  "current-context": GIVEN,
  contexts: NAMED,
  clusters: NAMED,
  users: NAMED,
}, OF_KUBECTL);

type Kubeconfig = MeaningOf<typeof KUBECONFIG>;

const CONTEXT = map(
  { cluster: TEXT, user: GIVEN, namespace: GIVEN },
  OF_KUBECTL,
);

function choose(file: Kubeconfig) {
  const name = file["current-context"];
  if (!name) {
    throw new FieldError(
      [],
      "it names no current-context; set one by kubectl config use-context",
    );
  }
  const context = named(file, "context", name, CONTEXT);
  const { cluster = "", user, namespace = "default" } = context;
  return {
    cluster: named(file, "cluster", cluster, CLUSTER),
    // Without a user no credentials are shown, as in kubectl.
    user: user ? named(file, "user", user, USER) : readShape(USER, {}),
    namespace,
  };
}

/** What a list has under a name. */
function named<T>(
  file: Kubeconfig,
  kind: "context" | "cluster" | "user",
  name: string,
  shape: Shape<T>,
): T {
  const list = `${kind}s` as const;
  const items = file[list] ?? [];
  const i = items.findIndex((item) => item.name === name);
  if (i < 0) throw new FieldError([list], `none has the name "${name}"`);
  return readShape(shape, items[i]![kind] ?? {}, [list, i, kind]);
}

/** A text in base64, decoded. */
const BASE64 = as(TEXT, (text, at) => {
  try {
    return new TextDecoder().decode(Uint8Array.fromBase64(text)) || undefined;
  } catch {
    return at.say("it is not base64");
  }
});

// --- The cluster ---------------------------------------------------------------

const CLUSTER = as(
  map({
    "certificate-authority": GIVEN,
    "certificate-authority-data": BASE64,
    extensions: list(map({ name: RAW, extension: RAW }, OF_KUBECTL)),
    "insecure-skip-tls-verify": as(
      FLAG,
      (isSkipped, at) =>
        isSkipped
          ? at.say(
            "it is not supported, because any server at that address would " +
              "be believed; give certificate-authority-data",
          )
          : false,
    ),
    "proxy-url": GIVEN,
    server: as(TEXT, (text, at) => {
      const url = URL.parse(text);
      if (url?.protocol === "https:") return url;
      if (url?.protocol === "http:" && isLoopbackHost(url.hostname)) return url;
      return at.say(
        `saw "${text}", wanted https://host:port; http would show the ` +
          "credentials to everybody on the way",
      );
    }),
    "tls-server-name": GIVEN,
  }, {
    ...OF_KUBECTL,
    required: { server: "saw nothing, wanted https://host:port" },
  }),
  (cluster, at) => {
    const name = cluster["tls-server-name"];
    return name === undefined || name === cluster.server.hostname
      ? cluster
      : at.say(
        "it is not supported by this platform's HTTP client; name " +
          `the server as its certificate does (server: https://${name}…)`,
        "tls-server-name",
      );
  },
);

// --- The user -------------------------------------------------------------------

/** A way to log in that would need another protocol, or more than one person. */
function unsupported(remedy: string): Shape<unknown> {
  return scalar(
    {},
    [],
    (value, at) => value === "" || at.say(`it is not supported; ${remedy}`),
  );
}

const PASSWORD = unsupported(
  "API servers take no passwords since 1.19; use a token",
);
const ANOTHER = unsupported(
  "give this user the rights it needs instead of another's",
);

const USER = as(
  map({
    "auth-provider": unsupported(
      "use an exec plugin, as kubectl does since 1.26",
    ),
    username: PASSWORD,
    password: PASSWORD,
    as: ANOTHER,
    "as-uid": ANOTHER,
    "as-groups": ANOTHER,
    "as-user-extra": ANOTHER,
    exec: EXEC_PLUGIN,
    token: GIVEN,
    tokenFile: GIVEN,
    "client-certificate": GIVEN,
    "client-certificate-data": BASE64,
    "client-key": GIVEN,
    "client-key-data": BASE64,
  }, OF_KUBECTL),
  ({ exec, token, tokenFile, ...user }, at) => {
    if (exec !== undefined) {
      return token || tokenFile
        ? at.say("it has both exec and a token; keep one of them")
        : { exec };
    }
    // Data wins over a file of the same name, as kubectl has it.
    const cert = user["client-certificate-data"];
    const key = user["client-key-data"];
    const certFile = user["client-certificate"];
    const keyFile = user["client-key"];
    if (!(cert || certFile) !== !(key || keyFile)) {
      return at.say(
        "it has only one of a client certificate and its key; give both",
      );
    }
    if (!cert !== !key) {
      return at.say(
        "its certificate and its key come one from a file and one from the " +
          "kubeconfig, so they could not be replaced together; put both in files",
      );
    }
    return cert && key
      ? { token, tokenFile, keyPair: { cert, key } }
      : { token, tokenFile, certFile, keyFile };
  },
);
