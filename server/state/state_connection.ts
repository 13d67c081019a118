/**
 * The way to what the state is kept in: one client for records and for what else
 * servers keep there, such as who they are.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import type { EtcdClient } from "../../neighbours/etcd/client.ts";
import type { KubernetesClient } from "../../neighbours/kubernetes/client.ts";
import type { ServerOptions, StateLocation } from "../options.ts";

/** A location, with a client of it. Closing is up to who opened it. */
export type StateConnection =
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

/** Where a server has its state; `undefined`: it has none. */
export function stateLocationOf(
  { state, agents }: Pick<ServerOptions, "state" | "agents">,
): StateLocation | undefined {
  if (state !== undefined) return state;
  const root = agents.identity?.stateDirectory;
  return root === undefined ? undefined : { kind: "directory", root };
}

/**
 * Reads what is needed. Nothing is sent yet.
 *
 * @throws {EtcdConfigError | KubernetesConfigError} One sentence.
 */
export async function connectState(
  location: StateLocation,
  timers: Timers,
): Promise<StateConnection> {
  // Loaded when wanted: most servers have a directory.
  switch (location.kind) {
    case "directory":
      return location;
    case "etcd": {
      const { connectEtcd } = await import("../../neighbours/etcd/connect.ts");
      const { etcd, prefix } = location;
      const client = connectEtcd(etcd, timers);
      const name = `etcd (${etcd.servers.join(", ")}, ${prefix})`;
      return { kind: "etcd", client, prefix, name };
    }
    case "kubernetes": {
      const { connectKubernetes } = await import(
        "../../neighbours/kubernetes/connect.ts"
      );
      const client = connectKubernetes(location.kubernetes, timers);
      const namespace = location.namespace ?? client.namespace;
      const name = `Kubernetes (${client.server}, namespace ${namespace})`;
      return { kind: "kubernetes", client, namespace, name };
    }
  }
}

/** Ends its client. */
export function closeConnection(connection: StateConnection): void {
  if (connection.kind !== "directory") connection.client[Symbol.dispose]();
}
