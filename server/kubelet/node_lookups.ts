/**
 * Which node a pod is on, and where that node's kubelet is, according to the
 * API server. Asked when a request needs it; nothing is watched.
 *
 * @module
 */

import type { RequestOptions } from "../../neighbours/kubernetes/client.ts";
import {
  codeOf,
  isKubernetesTrouble,
} from "../../neighbours/kubernetes/errors.ts";
import type {
  KubernetesNode,
  Pod,
} from "../../neighbours/kubernetes/objects.ts";
import { NODES, PODS } from "../../neighbours/kubernetes/paths.ts";
import { RememberedObjects } from "../../neighbours/kubernetes/remembered_objects.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import type { HttpAuthority } from "./kubelet_route.ts";
import { MessageError } from "../../net/http1/message_error.ts";

/**
 * How long an answer is believed. A pod that is made anew under its old name
 * may be on another node.
 */
export const LOOKUP_BELIEVED_MS = 5_000;

/** Answers kept; beyond it all are forgotten. */
export const ANSWERS_MAX = 10_000;

/** A person waits for this. */
const TIMEOUT_MS = 5_000;

/** Where kubelets listen unless their Node says otherwise. */
export const KUBELET_PORT = 10_250;

/** What is asked of `KubernetesClient`. */
export interface LookupClient extends Disposable {
  get<T>(path: string, options: RequestOptions): Promise<T>;
}

/** See the module description. */
export class NodeLookups implements Disposable {
  readonly #objects: RememberedObjects;

  constructor(private readonly client: LookupClient, clock: Clock) {
    this.#objects = new RememberedObjects({
      ...{ client, clock, most: ANSWERS_MAX, timeoutMs: TIMEOUT_MS },
      believedMs: LOOKUP_BELIEVED_MS,
      believesMissing: false,
    });
  }

  /** @throws {MessageError} When there is no such pod, or nobody can tell. */
  async nodeOfPod(namespace: string, name: string): Promise<string> {
    const pod = await answered(
      this.#objects.get<Pod>(PODS, { namespace, name }),
    );
    const node = pod.spec?.nodeName ?? "";
    if (node !== "") return node;
    throw new MessageError(
      400,
      `Cannot reach the pod ${namespace}/${name}: it is on no node yet`,
    );
  }

  /** @throws {MessageError} When there is no such node, or nobody can tell. */
  async kubeletOf(name: string): Promise<HttpAuthority> {
    const { status } = await answered(
      this.#objects.get<KubernetesNode>(NODES, { name }),
    );
    const address = status?.addresses
      ?.find(({ type }) => type === "InternalIP")?.address;
    const port = status?.daemonEndpoints?.kubeletEndpoint?.Port;
    // Where it has no address, it is known by its name at least.
    return { host: address ?? name, port: port || KUBELET_PORT };
  }

  [Symbol.dispose](): void {
    this.client[Symbol.dispose]();
  }
}

async function answered<T>(asking: Promise<T>): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    if (!isKubernetesTrouble(error)) throw error;
    throw new MessageError(codeOf(error) === 404 ? 404 : 503, error.message);
  }
}
