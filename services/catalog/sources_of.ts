/**
 * Sources of services from plain data: the kinds, and the access to each. It
 * does not know whether flags, a file or a program gave the data.
 *
 * @module
 */

import type { Tools } from "../../platform/program/tools.ts";
import { createHash } from "node:crypto";
import {
  connectEtcd,
  type EtcdOptions,
} from "../../neighbours/etcd/connect.ts";
import {
  connectKubernetes,
  type KubernetesOptions,
} from "../../neighbours/kubernetes/connect.ts";
import { TokenFile } from "../../neighbours/kubernetes/access.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { Source } from "./model/source.ts";
import { SourceCopy } from "./model/source_copy.ts";
import { EtcdSource } from "./sources/etcd/etcd.ts";
import type { EtcdLayout } from "./sources/etcd/etcd_entries.ts";
import { REGISTRY_LAYOUT } from "./sources/etcd/etcd_registry_layout.ts";
import { tunnelLayout } from "./sources/etcd/etcd_tunnel_layout.ts";
import { FileSource } from "./sources/file.ts";
import { HttpSource, type HttpSourceAccess } from "./sources/http.ts";
import { KubernetesSource } from "./sources/kubernetes/kubernetes.ts";
import { TlsFiles } from "../../neighbours/tls_files.ts";

/** One place where services come from. */
export type SourceConfig =
  | { readonly kind: "file"; readonly path: string }
  | HttpSourceConfig
  | {
    readonly kind: "kubernetes";
    readonly api: KubernetesOptions;
    /** Absent: all of them. */
    readonly namespace?: string | undefined;
  }
  | {
    /** Keys of our own. */
    readonly kind: "etcd";
    readonly cluster: EtcdOptions;
    readonly prefix: string;
  }
  /** Keys of kube-proxy 0.4. */
  | { readonly kind: "etcd-registry"; readonly cluster: EtcdOptions };

/** A document behind a URL. */
export interface HttpSourceConfig {
  readonly kind: "http";
  readonly url: string;
  readonly intervalMs: number;
  /** Absent: the public ones. */
  readonly caFile?: string | undefined;
  /** Holds a bearer token; absent: the server is shown none. */
  readonly tokenFile?: string | undefined;
}

/** What sources need from outside. */
export interface SourceTools extends Tools {
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** The directory for copies of remote sources; absent: no copy is kept. */
  readonly copies?: string;
}

/**
 * Makes the sources, in the same order. Files that say how to reach one are read;
 * nothing is sent yet.
 *
 * @throws {NeighbourConfigError} One sentence.
 */
export function sourcesOf(
  configs: readonly SourceConfig[],
  tools: SourceTools,
): readonly Source[] {
  return configs.map((config) => sourceOf(config, tools));
}

function sourceOf(config: SourceConfig, tools: SourceTools): Source {
  switch (config.kind) {
    case "file":
      return new FileSource({ path: config.path, ...tools });
    case "http":
      return withCopy(httpSource(config, tools), config.url, tools);
    case "kubernetes": {
      const { api, namespace } = config;
      const client = connectKubernetes(api, tools.timers);
      const source = new KubernetesSource({ client, namespace, ...tools });
      return withCopy(source, [api, namespace ?? ""], tools);
    }
    case "etcd":
      return etcdSource(config.cluster, tunnelLayout(config.prefix), tools);
    case "etcd-registry":
      return etcdSource(config.cluster, REGISTRY_LAYOUT, tools);
  }
}

function httpSource(config: HttpSourceConfig, tools: SourceTools): HttpSource {
  const { url, intervalMs } = config;
  const access = accessOf(config, tools.timers);
  return new HttpSource({ url, intervalMs, access, ...tools });
}

function accessOf(
  { caFile, tokenFile }: HttpSourceConfig,
  timers: Timers,
): HttpSourceAccess | undefined {
  if (caFile === undefined && tokenFile === undefined) return undefined;
  const tls = caFile === undefined
    ? undefined
    : new TlsFiles({ ca: caFile }, timers);
  const file = tokenFile === undefined
    ? undefined
    : new TokenFile(tokenFile, timers);
  return {
    authority: () => tls?.current.ca,
    ...(file === undefined ? {} : { token: () => file.current() }),
    rejected: () => {
      tls?.expire();
      file?.expire();
    },
  };
}

function etcdSource(
  cluster: EtcdOptions,
  layout: EtcdLayout,
  tools: SourceTools,
): Source {
  const client = connectEtcd(cluster, tools.timers);
  const source = new EtcdSource({ client, layout, ...tools });
  return withCopy(source, [cluster.servers, layout.prefix], tools);
}

/** @param place Of which one the copy is. */
function withCopy(
  source: Source,
  place: unknown,
  { copies, log, timers }: SourceTools,
): Source {
  source.copy = copies === undefined ? undefined : new SourceCopy({
    source: source.name,
    path: `${copies}/copy-${source.name}`,
    // A URL may hold a password.
    place: createHash("sha256").update(JSON.stringify(place)).digest("hex"),
    log,
    timers,
  });
  return source;
}
