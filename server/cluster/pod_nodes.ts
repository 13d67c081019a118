/**
 * On which node a Pod runs, for tokens that are bound to a Pod and do not say:
 * before Kubernetes 1.30 none does.
 *
 * @module
 */

import type { KubernetesClient } from "../../neighbours/kubernetes/client.ts";
import { KubernetesError } from "../../neighbours/kubernetes/errors.ts";
import type { Pod } from "../../neighbours/kubernetes/objects.ts";
import { objectPathOf, PODS } from "../../neighbours/kubernetes/paths.ts";
import type { Clock } from "../../proto/sync/clock.ts";

/** How long an answer is believed: a Pod never moves, but it goes. */
const BELIEVED_MS = 60_000;

/** A Pod for each node, and those before. */
const PODS_MAX = 20_000;

/** Within the time that an agent waits for its link. */
const TIMEOUT_MS = 2_000;

/** A Pod as a reviewed token names it. */
export interface BoundPod {
  readonly namespace: string;
  readonly podName: string;
  /** Another Pod may bear the name by now. */
  readonly podUid: string;
}

/** Remembers where Pods run. */
export class PodNodes {
  readonly #known = new Map<
    string,
    { readonly nodeName: string | undefined; readonly untilMs: number }
  >();
  /** The server has no right to ask; agents are many. */
  #forbidden: { readonly error: Error; readonly untilMs: number } | undefined;

  constructor(
    private readonly client: Pick<KubernetesClient, "get">,
    private readonly clock: Clock,
  ) {}

  /**
   * @returns `undefined` when there is no such Pod, or it runs nowhere yet.
   * @throws {KubernetesError | KubernetesConfigError} When it cannot be asked.
   */
  async of(pod: BoundPod): Promise<string | undefined> {
    const now = this.clock.now();
    const known = this.#known.get(pod.podUid);
    if (known !== undefined && now < known.untilMs) return known.nodeName;
    if (this.#forbidden !== undefined && now < this.#forbidden.untilMs) {
      throw this.#forbidden.error;
    }
    const untilMs = now + BELIEVED_MS;
    try {
      const nodeName = await this.#read(pod);
      if (this.#known.size >= PODS_MAX) this.#known.clear();
      this.#known.set(pod.podUid, { nodeName, untilMs });
      return nodeName;
    } catch (error) {
      if (error instanceof KubernetesError && error.code === 403) {
        this.#forbidden = { error, untilMs };
      }
      throw error;
    }
  }

  async #read(
    { namespace, podName, podUid }: BoundPod,
  ): Promise<string | undefined> {
    try {
      const path = objectPathOf(PODS, { namespace, name: podName });
      const { metadata, spec } = await this.client.get<Pod>(path, {
        timeoutMs: TIMEOUT_MS,
      });
      if (metadata.uid !== podUid) return undefined;
      return spec?.nodeName === "" ? undefined : spec?.nodeName;
    } catch (error) {
      if (error instanceof KubernetesError && error.code === 404) {
        return undefined;
      }
      throw error;
    }
  }
}
