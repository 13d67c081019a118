/**
 * The way to what the state is kept in: one client for records and for what else
 * servers keep there, such as who they are.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import type { EtcdClient } from "../etcd/client.ts";
import type { KubernetesClient } from "../kubernetes/client.ts";
import type { StoreLocation } from "./store_location.ts";

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

/** Ends its client. */
export function closeConnection(connection: StoreConnection): void {
  if (connection.kind !== "directory") connection.client[Symbol.dispose]();
}
