/**
 * The engine by which servers meet that belongs to where the state is.
 *
 * @module
 */

import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { StoreConnection } from "../../neighbours/store/store_connection.ts";
import type { MemberEngine } from "./member_engine.ts";

/**
 * What servers tell each other there: who is there, or what agents offer. In a
 * state directory it is the folder's name.
 */
export type MeetingTopic = "peers" | "offers";

/** What upstream's agents look for by default. */
const SERVER_LABELS = { "k8s-app": "konnectivity-server" };

/** Who publishes, and what it needs from outside. */
export interface EngineOptions {
  readonly serverId: string;
  readonly instanceId: string;
  readonly timeoutMs: number;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly metrics: MetricRegistry;
  /** Where Konnectivity's agents look for leases, if somebody has said it. */
  readonly lease?: {
    readonly namespace: string;
    readonly labels: Readonly<Record<string, string>>;
  };
}

/** Nothing is sent or written yet. Loaded when wanted, as the clients are. */
export async function openEngine(
  state: StoreConnection,
  topic: MeetingTopic,
  options: EngineOptions,
): Promise<MemberEngine> {
  switch (state.kind) {
    case "directory": {
      const { DirectoryEngine } = await import("./directory_engine.ts");
      const path = `${state.root}/${topic}`;
      return new DirectoryEngine({ ...options, path });
    }
    case "etcd": {
      const { EtcdEngine } = await import("./etcd_engine.ts");
      const prefix = topic === "peers"
        ? state.prefix
        : `${state.prefix}${topic}/`;
      return new EtcdEngine({ ...options, client: state.client, prefix });
    }
    case "kubernetes": {
      const { KubernetesEngine } = await import("./kubernetes_engine.ts");
      const { client, namespace } = state;
      if (topic !== "peers") {
        const own = { client, namespace, topic, labels: {} };
        return new KubernetesEngine({ ...options, ...own });
      }
      const lease = { namespace, labels: SERVER_LABELS, ...options.lease };
      return new KubernetesEngine({ ...options, client, ...lease });
    }
  }
}
