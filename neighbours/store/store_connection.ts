/**
 * The connection to the servers' common state: one client for records and for
 * the servers' announcements, such as their sign of life.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import type { EtcdOptions } from "../etcd/connect.ts";
import type { KubernetesOptions } from "../kubernetes/connect.ts";
import type { LeaseObserver } from "../kubernetes/server_lease.ts";
import {
  type EphemeralOptions,
  type EphemeralPlace,
  type Ephemerals,
  EphemeralTexts,
} from "./ephemerals.ts";
import type { Place } from "./transaction.ts";

/** A place that servers have in common, as flags say it. */
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
    readonly namespace?: string | undefined;
  };

/** What private keys are encrypted with where they are kept. */
export type SealingKeySource =
  | { readonly kind: "file"; readonly path: string }
  /** The user's choice: every reader of the store can issue certificates. */
  | { readonly kind: "none" };

/** What servers tell each other; in a directory it is the folder's name. */
export type Topic = "peers" | "offers";

/** The owner. */
export interface SpeakerOptions extends EphemeralOptions {
  readonly serverId: string;
  /**
   * The namespace in which Konnectivity's agents look for Leases, if a flag
   * names it.
   */
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Counts Leases that upstream knows, where there are any. */
  readonly observer?: () => Omit<LeaseObserver, "warn">;
}

/** What every location has, once there is a way to it. */
interface Connection {
  /** Its name in sentences; no secret. */
  readonly name: string;
  /** Texts of servers about a topic. Nothing is sent or written yet. */
  ephemerals(topic: Topic, speaker: SpeakerOptions): Promise<Ephemerals>;
  /** Closes its client, after all its users. */
  close(): void;
}

/** A location, with a client for it. The code that opened it must close it. */
export type StoreConnection =
  & Connection
  & (
    | { readonly kind: "directory"; readonly root: string }
    /** Records there. */
    | { readonly kind: "etcd" | "kubernetes"; place(): Place }
  );

/** What upstream's agents look for by default. */
const SERVER_LABELS = { "k8s-app": "konnectivity-server" };

/** A directory of this machine, or of a common file system. */
export function directoryConnection(root: string): StoreConnection {
  return {
    kind: "directory",
    root,
    name: root,
    ...speaking(async (topic, speaker) => {
      const { DirectoryEphemerals } = await import("./directory_ephemerals.ts");
      return new DirectoryEphemerals({ ...speaker, path: `${root}/${topic}` });
    }),
    close() {},
  };
}

/**
 * Reads the files. No request is sent yet.
 *
 * @throws {NeighbourConfigError} One sentence.
 */
export async function connectStore(
  location: StoreLocation,
  timers: Timers,
): Promise<StoreConnection> {
  const tools = { timers, random: Math.random };
  // Loaded when wanted: most servers have a directory.
  switch (location.kind) {
    case "directory":
      return directoryConnection(location.root);
    case "etcd": {
      const { connectEtcd } = await import("../etcd/connect.ts");
      const { EtcdEphemerals, EtcdPlace } = await import("./etcd_place.ts");
      const { etcd, prefix } = location;
      const client = connectEtcd(etcd, timers);
      const name = `etcd (${etcd.servers.join(", ")}, ${prefix})`;
      const options = { ...tools, client, prefix, name };
      return {
        kind: "etcd",
        name,
        place: () => new EtcdPlace(options),
        ...speaking((topic, speaker) => {
          const folder = topic === "peers" ? prefix : `${prefix}${topic}/`;
          const place = { ...options, ...speaker, prefix: folder };
          return new EtcdEphemerals(place);
        }),
        close: () => client[Symbol.dispose](),
      };
    }
    case "kubernetes": {
      const { connectKubernetes } = await import("../kubernetes/connect.ts");
      const { KubernetesPlace } = await import("./kubernetes_place.ts");
      const client = connectKubernetes(location.kubernetes, timers);
      const namespace = location.namespace ?? client.namespace;
      const name = `Kubernetes (${client.server}, namespace ${namespace})`;
      // Without the name, which would be taken for the Lease's.
      const options = { ...tools, client, namespace };
      return {
        kind: "kubernetes",
        name,
        place: () => new KubernetesPlace({ ...options, name }),
        ...speaking(async (topic, { observer, ...speaker }) => {
          const { KubernetesEphemerals } = await import(
            "./kubernetes_ephemerals.ts"
          );
          return new KubernetesEphemerals({
            ...{ ...options, labels: SERVER_LABELS, ...speaker, topic },
            wallClock: Date.now,
            ...(observer === undefined ? {} : { observer: observer() }),
          });
        }),
        close: () => client[Symbol.dispose](),
      };
    }
  }
}

function speaking(
  placeOf: (
    topic: Topic,
    speaker: SpeakerOptions,
  ) => EphemeralPlace | Promise<EphemeralPlace>,
): Pick<Connection, "ephemerals"> {
  return {
    ephemerals: async (topic, speaker) =>
      new EphemeralTexts(await placeOf(topic, speaker), speaker),
  };
}
