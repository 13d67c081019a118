/**
 * Flags about where services and endpoints come from, and the plain data that
 * they mean. Several sources may be given at once; the first one here that has a
 * service owns it. kube-proxy 0.4 is let in by the API server of `--master` under
 * its own names (client.BindClientConfigFlags).
 *
 * @module
 */

import type {
  HttpSourceConfig,
  SourceConfig,
} from "../../services/catalog/sources_of.ts";
import type { KubernetesOptions } from "../../neighbours/kubernetes/connect.ts";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import { ETCD_FLAGS, etcdOptions, etcdPrefix } from "./etcd_flags.ts";
import { common, flag, type FlagValues, inGroup } from "./flag.ts";
import type { FlagSources } from "./read_flags.ts";
import { refuseFlags, unusable, UsageError } from "./usage_error.ts";
import { MASTER_IDLE_FLAGS } from "./idle_flags.ts";
import { given } from "../../platform/documents/given.ts";

/** More often is a watch, which HTTP has not. */
const INTERVAL_MS_MIN = 500;

/** In order of precedence, etcd's last. */
export const CATALOG_FLAGS = inGroup("Sources of services", {
  "config": common(flag.file({
    once: true,
    help: "Services and endpoints from this .yaml or .json file, which is " +
      "read again whenever it changes.",
  })),
  "services-url": flag.word("URL", {
    help: "Services and endpoints from this URL, which is requested again " +
      "and again.",
  }),
  "services-ca-cert": flag.file({
    help: "CA of that server's certificate; read again when it changes.",
    defaultText: "public ones",
  }),
  "services-token-file": flag.file({
    help: "Show that server the bearer token in this file; https or " +
      "loopback only. Read again when it changes.",
  }),
  "services-interval": flag.duration(10_000, INTERVAL_MS_MIN, {
    help: "Time between two requests, a tenth more or less.",
  }),
  "kubernetes": common(flag.boolean(false, {
    help: "Services and EndpointSlices of the cluster that this Pod is in.",
  })),
  "kubeconfig": flag.file({
    help: "Services and EndpointSlices of the cluster that this file names.",
  }),
  "master": flag.word("URL", {
    help: "Services and EndpointSlices of this API server (kube-proxy 0.4), " +
      "which is shown no token.",
  }),
  "namespace": flag.word("NAMESPACE", {
    help: "Use only this namespace of the cluster.",
    defaultText: "all",
  }),
  ...ETCD_FLAGS,
  "etcd-servers": common(flag.list([], {
    placeholder: "URL,…",
    help: "Members of an etcd cluster with kube-proxy 0.4's own keys, below " +
      "/registry/services/. --etcd-config is for these keys, too.",
  })),
});

type Values = FlagValues<typeof CATALOG_FLAGS> & ApiServerValues;

/**
 * What the flags name, in order of precedence.
 *
 * @param further A flag of the command that names a source, too.
 * @throws {UsageError} One line; also when there is no source at all.
 */
export function catalogConfig(
  values: Values,
  context: Pick<FlagSources, "readFile">,
  further?: { readonly flag: string; readonly isGiven: boolean },
): readonly SourceConfig[] {
  const sources: SourceConfig[] = [];
  if (values["config"] !== "") {
    sources.push({ kind: "file", path: values["config"] });
  }
  const http = httpConfig(values);
  if (http !== undefined) sources.push(http);
  const api = clusterOf(values);
  if (api !== undefined) {
    const namespace = values["namespace"] || undefined;
    sources.push(given({ kind: "kubernetes", api, namespace }));
  }
  sources.push(...etcdConfigs(values, context));
  if (sources.length > 0 || further?.isGiven) return sources;
  const flags = [
    ...["--config FILE", "--services-url", "--kubernetes", "--kubeconfig"],
    ...["--master", "--etcd", "--etcd-servers"],
    ...(further === undefined ? [] : [further.flag]),
  ];
  throw new UsageError(
    "Cannot serve nothing: no flag says where services come from; wanted " +
      `${flags.slice(0, -1).join(", ")} or ${flags.at(-1)}`,
  );
}

function httpConfig(values: Values): HttpSourceConfig | undefined {
  const url = values["services-url"];
  if (url === "") {
    refuseFlags(
      ["services-ca-cert", "services-token-file"],
      (name) => values[name] !== "",
      "without --services-url: it is about the server there; give the URL, " +
        "or remove it",
    );
    return undefined;
  }
  const caFile = values["services-ca-cert"];
  const tokenFile = values["services-token-file"];
  checkUrl(url, caFile, tokenFile);
  return given({
    kind: "http",
    url,
    intervalMs: values["services-interval"],
    caFile: caFile || undefined,
    tokenFile: tokenFile || undefined,
  });
}

function checkUrl(text: string, caFile: string, tokenFile: string): void {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
    throw unusable("--services-url", text, "http://… or https://…");
  }
  const url = new URL(text);
  if (caFile !== "" && url.protocol === "http:") {
    throw new UsageError(
      "Cannot use --services-ca-cert with http: it has no TLS; write " +
        `https://${url.host}…, or remove the CA`,
    );
  }
  if (tokenFile === "") return;
  if (url.username !== "") {
    throw new UsageError(
      "Cannot use --services-token-file with a name or password in " +
        "--services-url: the server is shown one or the other; keep one",
    );
  }
  if (url.protocol === "https:" || isLoopbackHost(url.hostname)) return;
  throw new UsageError(
    "Cannot use --services-token-file with http: everybody on the way would " +
      `read the token; write https://${url.host}…`,
  );
}

function clusterOf(values: Values): KubernetesOptions | undefined {
  const { kubeconfig, master } = values;
  const given = [
    ...(values["kubernetes"] ? ["--kubernetes"] : []),
    ...(kubeconfig === "" ? [] : ["--kubeconfig"]),
    ...(master === "" ? [] : ["--master"]),
  ];
  if (given.length > 1) {
    throw new UsageError(
      `Cannot use ${given.join(" together with ")}: each says where the API ` +
        "server is; keep one of them",
    );
  }
  const masterFiles = apiServerFiles(master, values);
  if (given.length === 0) return undefined;
  if (master !== "") return { master, masterFiles };
  return kubeconfig === "" ? {} : { kubeconfig };
}

/** Two at most: one of our own keys, one of kube-proxy 0.4's. */
function* etcdConfigs(
  values: Values,
  context: Pick<FlagSources, "readFile">,
): Iterable<SourceConfig> {
  const members = values["etcd-servers"];
  const hasConfig = values["etcd-config"] !== "";
  if (hasConfig && members.length > 0) {
    throw new UsageError(
      "Cannot use --etcd-config together with --etcd-servers: both say where " +
        "etcd is; keep one of them",
    );
  }
  // Credentials are given once, and hold for both.
  const hasOwn = values["etcd"].length > 0;
  const hasRegistry = hasConfig || members.length > 0;
  if (hasOwn || !hasRegistry) {
    const cluster = etcdOptions({ ...values, "etcd-config": "" }, context);
    if (cluster !== undefined) {
      yield { kind: "etcd", cluster, prefix: etcdPrefix(values) };
    }
  }
  if (!hasRegistry) return;
  const cluster = etcdOptions({ ...values, "etcd": members }, context);
  if (cluster !== undefined) yield { kind: "etcd-registry", cluster };
}

/** See the module description. */
export const API_SERVER_FLAGS = inGroup("The API server of --master", {
  "certificate-authority": flag.file({
    help: "CA of its certificate (PEM).",
    defaultText: "public ones",
  }),
  "client-certificate": flag.file("Certificate shown to it (PEM)."),
  "client-key": flag.file("Private key of --client-certificate (PEM)."),
  ...MASTER_IDLE_FLAGS,
});

/** Their values, where a command has them. */
export type ApiServerValues = Partial<FlagValues<typeof API_SERVER_FLAGS>>;

/**
 * @param master The address that `--master` gives; empty: none.
 * @throws {UsageError} One line.
 */
export function apiServerFiles(
  master: string,
  values: ApiServerValues,
): NonNullable<KubernetesOptions["masterFiles"]> {
  refuseFlags(
    FILES,
    (name) => master === "" && (values[name] ?? "") !== "",
    "without --master: it is about the API server there; a kubeconfig names " +
      "its own",
  );
  const [ca, cert, key] = FILES.map((name) => values[name] || undefined);
  if ((cert === undefined) !== (key === undefined)) {
    throw new UsageError(
      `Cannot use --${cert === undefined ? FILES[2] : FILES[1]} alone: a ` +
        "certificate goes with its key; give both",
    );
  }
  return given({ ca, cert, key });
}

const FILES = [
  "certificate-authority",
  "client-certificate",
  "client-key",
] as const;
