/**
 * What the API server says of the nodes of its cluster: what each may be called,
 * and on which one a Pod runs. Each is asked for once a minute at most.
 *
 * @module
 */

import type {
  KubernetesClient,
  RequestOptions,
} from "../../neighbours/kubernetes/client.ts";
import {
  KubernetesError,
  unlessMissing,
} from "../../neighbours/kubernetes/errors.ts";
import type {
  KubernetesNode,
  Pod,
} from "../../neighbours/kubernetes/objects.ts";
import { NODES, PODS } from "../../neighbours/kubernetes/paths.ts";
import { RememberedObjects } from "../../neighbours/kubernetes/remembered_objects.ts";
import {
  type Identifiers,
  NO_IDENTIFIERS,
} from "../../proto/peer/identifiers.ts";
import { nameKey } from "../../proto/peer/normal_form.ts";
import type { Clock } from "../../proto/sync/clock.ts";

/** How long an answer is believed: a Pod never moves, but it goes. */
const BELIEVED_MS = 60_000;

/** Clusters end at 5,000 nodes. */
const NODES_MAX = 10_000;

/** A Pod for each node, and those before. */
const PODS_MAX = 20_000;

/** Within the time that an agent waits for its link. */
const TIMEOUT_MS = 2_000;

/** The used part of `KubernetesClient`. */
type Client = Pick<KubernetesClient, "get">;

function remembered(client: Client, clock: Clock, most: number) {
  return new RememberedObjects({
    client,
    clock,
    most,
    believedMs: BELIEVED_MS,
    timeoutMs: TIMEOUT_MS,
    believesMissing: true,
  });
}

/** A node's possible names by its Node object: its addresses and host names. */
export class NodeAddresses {
  readonly #nodes: RememberedObjects;

  constructor(client: Client, clock: Clock) {
    this.#nodes = remembered(client, clock, NODES_MAX);
  }

  /**
   * @throws {KubernetesError | NeighbourConfigError} When it cannot be asked.
   *   That there is no such node is an answer: nothing.
   */
  async of(nodeName: string): Promise<Identifiers> {
    const node = await unlessMissing(
      this.#nodes.get<KubernetesNode>(NODES, { name: nodeName }),
    );
    const addresses: string[] = [];
    const host: string[] = [];
    for (const { type, address } of node?.status?.addresses ?? []) {
      if (type.endsWith("IP")) addresses.push(nameKey(address));
      else host.push(nameKey(address));
    }
    return { ...NO_IDENTIFIERS, host, ipv4: addresses, ipv6: addresses };
  }
}

/** A Pod as a reviewed token names it. */
export interface BoundPod {
  readonly namespace: string;
  readonly podName: string;
  /** Another Pod may bear the name by now. */
  readonly podUid: string;
}

/**
 * The node of a Pod, for tokens that are bound to a Pod and do not name its
 * node: no token does before Kubernetes 1.30.
 */
export class PodNodes {
  readonly #pods: RememberedObjects;
  /** The server has no right to ask; agents are many. */
  #forbidden: { readonly error: Error; readonly untilMs: number } | undefined;

  constructor(private readonly client: Client, private readonly clock: Clock) {
    const asked: Client = { get: (path, options) => this.#ask(path, options) };
    this.#pods = remembered(asked, clock, PODS_MAX);
  }

  /**
   * @returns `undefined` when there is no such Pod, or it has no node yet.
   * @throws {KubernetesError | NeighbourConfigError} When the API server
   *   cannot be asked.
   */
  async of(
    { namespace, podName, podUid }: BoundPod,
  ): Promise<string | undefined> {
    const where = { namespace, name: podName };
    const pod = await unlessMissing(this.#pods.get<Pod>(PODS, where, podUid));
    if (pod?.metadata.uid !== podUid) return undefined;
    return pod.spec?.nodeName || undefined;
  }

  async #ask<T>(path: string, options?: RequestOptions): Promise<T> {
    const untilMs = this.clock.now() + BELIEVED_MS;
    if (
      this.#forbidden !== undefined &&
      this.clock.now() < this.#forbidden.untilMs
    ) {
      throw this.#forbidden.error;
    }
    try {
      return await this.client.get<T>(path, options);
    } catch (error) {
      if (error instanceof KubernetesError && error.code === 403) {
        this.#forbidden = { error, untilMs };
      }
      throw error;
    }
  }
}
