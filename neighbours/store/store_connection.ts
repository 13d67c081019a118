/**
 * The way to what the state is kept in: one client for records and for what else
 * servers keep there, such as who they are.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import type { EtcdClient } from "../etcd/client.ts";
import type { KubernetesClient } from "../kubernetes/client.ts";
import type { LeaseObserver } from "../kubernetes/server_lease.ts";
import {
  type EphemeralOptions,
  type Ephemerals,
  EphemeralTexts,
} from "./ephemerals.ts";
import type { EtcdOptions } from "../etcd/connect.ts";
import type { KubernetesOptions } from "../kubernetes/connect.ts";

/** A location, with a client of it. Closing is up to who opened it. */
export type StoreConnection =
  | { readonly kind: "directory"; readonly root: string }
  | {
    readonly kind: "etcd";
    readonly client: EtcdClient;
    /** Of every key; begins and ends with a slash. */
    readonly prefix: string;
    /** For sentences; no secret. */
    readonly name: string;
  }
  | {
    readonly kind: "kubernetes";
    readonly client: KubernetesClient;
    readonly namespace: string;
    readonly name: string;
  };

/**
 * Reads what is needed. Nothing is sent yet.
 *
 * @throws {EtcdConfigError | KubernetesConfigError} One sentence.
 */
export async function connectStore(
  location: StoreLocation,
  timers: Timers,
): Promise<StoreConnection> {
  // Loaded when wanted: most servers have a directory.
  switch (location.kind) {
    case "directory":
      return location;
    case "etcd": {
      const { connectEtcd } = await import("../etcd/connect.ts");
      const { etcd, prefix } = location;
      const client = connectEtcd(etcd, timers);
      const name = `etcd (${etcd.servers.join(", ")}, ${prefix})`;
      return { kind: "etcd", client, prefix, name };
    }
    case "kubernetes": {
      const { connectKubernetes } = await import(
        "../kubernetes/connect.ts"
      );
      const client = connectKubernetes(location.kubernetes, timers);
      const namespace = location.namespace ?? client.namespace;
      const name = `Kubernetes (${client.server}, namespace ${namespace})`;
      return { kind: "kubernetes", client, namespace, name };
    }
  }
}

/** What servers tell each other; in a directory it is the folder's name. */
export type Topic = "peers" | "offers";

/** What upstream's agents look for by default. */
const SERVER_LABELS = { "k8s-app": "konnectivity-server" };

/** Who says it. */
export interface SpeakerOptions extends EphemeralOptions {
  readonly serverId: string;
  /** Where Konnectivity's agents look for Leases, if somebody has said it. */
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Counts Leases that upstream knows, where there are any. */
  readonly observer?: () => Omit<LeaseObserver, "warn">;
}

/** Texts of servers about a topic. Nothing is sent or written yet. */
export async function openEphemerals(
  connection: StoreConnection,
  topic: Topic,
  options: SpeakerOptions,
): Promise<Ephemerals> {
  const { namespace, labels = SERVER_LABELS, observer, ...speaker } = options;
  const tools = { ...speaker, random: Math.random };
  // Loaded when wanted, as the clients are.
  switch (connection.kind) {
    case "directory": {
      const { DirectoryEphemerals } = await import("./directory_ephemerals.ts");
      const path = `${connection.root}/${topic}`;
      const place = new DirectoryEphemerals({ ...speaker, path });
      return new EphemeralTexts(place, speaker);
    }
    case "etcd": {
      const { EtcdEphemerals } = await import("./etcd_place.ts");
      const { client, prefix } = connection;
      const folder = topic === "peers" ? prefix : `${prefix}${topic}/`;
      const place = new EtcdEphemerals({ ...tools, client, prefix: folder });
      return new EphemeralTexts(place, speaker);
    }
    case "kubernetes": {
      const { KubernetesEphemerals } = await import(
        "./kubernetes_ephemerals.ts"
      );
      const place = new KubernetesEphemerals({
        ...tools,
        ...{ client: connection.client, topic, labels },
        namespace: namespace ?? connection.namespace,
        wallClock: Date.now,
        ...(observer === undefined ? {} : { observer: observer() }),
      });
      return new EphemeralTexts(place, speaker);
    }
  }
}

/** Ends its client. */
export function closeConnection(connection: StoreConnection): void {
  if (connection.kind !== "directory") connection.client[Symbol.dispose]();
}

// Where a store is, and what its secrets are encrypted with, as flags say it.

/** A place that servers have in common. */
export type StoreLocation =
  /** One server's, or several servers' on a common file system. */
  | { readonly kind: "directory"; readonly root: string }
  | {
    readonly kind: "etcd";
    readonly etcd: EtcdOptions;
    /** Of every key; begins and ends with a slash. */
    readonly prefix: string;
  }
  | {
    readonly kind: "kubernetes";
    readonly kubernetes: KubernetesOptions;
    /** Absent: the one that this process runs, or works, in. */
    readonly namespace?: string;
  };

/** What private keys are encrypted with where they are kept. */
export type SealingKeySource =
  | { readonly kind: "file"; readonly path: string }
  /** The user said so: whoever can read the store can issue certificates. */
  | { readonly kind: "none" };
