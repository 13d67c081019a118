/**
 * Which node a pod is on, and where that node's kubelet is, according to the
 * API server. Asked when a request needs it; nothing is watched.
 *
 * @module
 */

import type { RequestOptions } from "../../neighbours/kubernetes/client.ts";
import {
  KubernetesConfigError,
  KubernetesError,
} from "../../neighbours/kubernetes/errors.ts";
import type {
  KubernetesNode,
  Pod,
} from "../../neighbours/kubernetes/objects.ts";
import {
  type ApiCollection,
  NODES,
  objectPathOf,
  PODS,
} from "../../neighbours/kubernetes/paths.ts";
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
  readonly #answers = new Map<
    string,
    { readonly object: Promise<unknown>; readonly untilMs: number }
  >();

  constructor(
    private readonly client: LookupClient,
    private readonly clock: Clock,
  ) {}

  /** @throws {MessageError} When there is no such pod, or nobody can tell. */
  async nodeOfPod(namespace: string, name: string): Promise<string> {
    const pod = await this.#get<Pod>(PODS, { namespace, name });
    const node = pod.spec?.nodeName ?? "";
    if (node !== "") return node;
    throw new MessageError(
      400,
      `Cannot reach the pod ${namespace}/${name}: it is on no node yet`,
    );
  }

  /** @throws {MessageError} When there is no such node, or nobody can tell. */
  async kubeletOf(name: string): Promise<HttpAuthority> {
    const { status } = await this.#get<KubernetesNode>(NODES, { name });
    const address = status?.addresses
      ?.find(({ type }) => type === "InternalIP")?.address;
    const port = status?.daemonEndpoints?.kubeletEndpoint?.Port;
    // Where it has no address, it is known by its name at least.
    return { host: address ?? name, port: port || KUBELET_PORT };
  }

  [Symbol.dispose](): void {
    this.client[Symbol.dispose]();
  }

  #get<T>(
    resource: ApiCollection,
    where: { readonly namespace?: string; readonly name: string },
  ): Promise<T> {
    const path = objectPathOf(resource, where);
    const now = this.clock.now();
    const known = this.#answers.get(path);
    if (known !== undefined && now < known.untilMs) {
      return known.object as Promise<T>;
    }
    if (this.#answers.size >= ANSWERS_MAX) this.#answers.clear();
    const object = this.client.get<T>(path, { timeoutMs: TIMEOUT_MS })
      .catch((error) => {
        this.#answers.delete(path);
        throw refusalFor(error);
      });
    this.#answers.set(path, { object, untilMs: now + LOOKUP_BELIEVED_MS });
    return object;
  }
}

function refusalFor(error: unknown): unknown {
  if (error instanceof KubernetesError) {
    const status = error.code === 404 ? 404 : 503;
    return new MessageError(status, error.message);
  }
  return error instanceof KubernetesConfigError
    ? new MessageError(503, error.message)
    : error;
}
