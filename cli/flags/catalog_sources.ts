/**
 * Flags about sources of services to the sources.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { KeptSource } from "../../catalog/kept_source.ts";
import type { Source } from "../../catalog/model/source.ts";
import { EtcdSource } from "../../catalog/sources/etcd/etcd.ts";
import type { EtcdLayout } from "../../catalog/sources/etcd/etcd_layout.ts";
import { REGISTRY_LAYOUT } from "../../catalog/sources/etcd/etcd_registry_layout.ts";
import { tunnelLayout } from "../../catalog/sources/etcd/etcd_tunnel_layout.ts";
import { FileSource } from "../../catalog/sources/file.ts";
import { KubernetesSource } from "../../catalog/sources/kubernetes/kubernetes.ts";
import {
  connectEtcd,
  type EtcdOptions,
} from "../../neighbours/etcd/connect.ts";
import { EtcdConfigError } from "../../neighbours/etcd/errors.ts";
import {
  connectKubernetes,
  type KubernetesOptions,
} from "../../neighbours/kubernetes/connect.ts";
import { KubernetesConfigError } from "../../neighbours/kubernetes/errors.ts";
import type { Log } from "../../platform/log/log.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { CommandContext } from "../command.ts";
import { UsageError } from "../usage_error.ts";
import { apiServerFiles, type ApiServerValues } from "./api_server_flags.ts";
import type { CATALOG_FLAGS } from "./catalog_flags.ts";
import { etcdOptions, etcdPrefix } from "./etcd_flags.ts";
import type { FlagValues } from "./flag.ts";
import { urlSource } from "./services_url.ts";

type Values = FlagValues<typeof CATALOG_FLAGS> & ApiServerValues;

/** A source by a flag that not every command has. */
export interface FurtherSource {
  /** With its dashes. */
  readonly flag: string;
  /** Absent: it was not given. */
  readonly source: Source | undefined;
}

/**
 * The sources that flags name, in order of precedence. Nothing is read yet, but
 * for what it takes to reach them.
 *
 * @param further Comes last.
 * @throws {UsageError} One line; also when there is none at all.
 */
export function catalogSources(
  values: Values,
  context: Pick<CommandContext, "readFile">,
  log: Log,
  { further, copies }: {
    readonly further?: FurtherSource;
    /** Where copies of what sources say are kept; absent: nowhere. */
    readonly copies?: string;
  } = {},
): readonly Source[] {
  const sources: Source[] = [];
  const tools = { timers: systemTimers, random: Math.random };
  const kept = (source: Source, place: unknown) =>
    sources.push(withCopy(source, place, copies, log));
  if (values["config"] !== "") {
    sources.push(new FileSource({ path: values["config"], ...tools }));
  }
  const http = orUsage(() => urlSource(values, tools));
  if (http !== undefined) kept(http.source, http.url);
  const cluster = clusterOf(values);
  if (cluster !== undefined) {
    const client = orUsage(() => connectKubernetes(cluster, systemTimers));
    const namespace = values["namespace"];
    kept(
      new KubernetesSource({
        client,
        ...(namespace === "" ? {} : { namespace }),
        ...tools,
      }),
      [cluster, namespace],
    );
  }
  for (const [options, layout] of etcdsOf(values, context)) {
    const client = orUsage(() => connectEtcd(options, systemTimers));
    kept(
      new EtcdSource({ client, layout, log, ...tools }),
      [options.servers, layout.prefix],
    );
  }
  if (further?.source !== undefined) sources.push(further.source);
  if (sources.length > 0) return sources;
  const flags = [
    ...["--config FILE", "--services-url", "--kubernetes", "--kubeconfig"],
    ...["--master", "--etcd", "--etcd-servers"],
    ...further === undefined ? [] : [further.flag],
  ];
  throw new UsageError(
    "Cannot serve nothing: no flag says where services come from; wanted " +
      `${flags.slice(0, -1).join(", ")} or ${flags.at(-1)}`,
  );
}

/** @param place Of which one the copy is, as flags say it. */
function withCopy(
  source: Source,
  place: unknown,
  copies: string | undefined,
  log: Log,
): Source {
  if (copies === undefined) return source;
  return new KeptSource(source, {
    path: `${copies}/copy-${source.name}`,
    // A URL may hold a password.
    place: createHash("sha256").update(JSON.stringify(place)).digest("hex"),
    log,
    timers: systemTimers,
  });
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
function* etcdsOf(
  values: Values,
  context: Pick<CommandContext, "readFile">,
): Iterable<readonly [EtcdOptions, EtcdLayout]> {
  const members = values["etcd-servers"];
  const hasConfig = values["etcd-config"] !== "";
  if (hasConfig && members.length > 0) {
    throw new UsageError(
      "Cannot use --etcd-config together with --etcd-servers: both say where " +
        "etcd is; keep one of them",
    );
  }
  // How to get in is said once, and holds for both.
  const hasOwn = values["etcd"].length > 0;
  const hasRegistry = hasConfig || members.length > 0;
  if (hasOwn || !hasRegistry) {
    const own = etcdOptions({ ...values, "etcd-config": "" }, context);
    if (own !== undefined) yield [own, tunnelLayout(etcdPrefix(values))];
  }
  if (!hasRegistry) return;
  const registry = etcdOptions({ ...values, "etcd": members }, context);
  if (registry !== undefined) yield [registry, REGISTRY_LAYOUT];
}

/** What is wrong with a configuration is wrong with the command line. */
function orUsage<T>(connect: () => T): T {
  try {
    return connect();
  } catch (error) {
    const isConfig = error instanceof EtcdConfigError ||
      error instanceof KubernetesConfigError;
    if (!isConfig) throw error;
    throw new UsageError((error as Error).message);
  }
}
