/**
 * What a node of the cluster may be called, according to its Node object: its
 * addresses and host names. Looked at once a minute at most.
 *
 * @module
 */

import { KubernetesError } from "../../neighbours/kubernetes/errors.ts";
import type { KubernetesClient } from "../../neighbours/kubernetes/client.ts";
import type { KubernetesNode } from "../../neighbours/kubernetes/objects.ts";
import { NODES, objectPathOf } from "../../neighbours/kubernetes/paths.ts";
import { NO_IDENTIFIERS } from "../../proto/peer/identifiers.ts";
import type { Identifiers } from "../../proto/peer/identifiers.ts";
import { nameKey } from "../../proto/peer/normal_form.ts";
import type { Clock } from "../../proto/sync/clock.ts";

/** How long an answer is believed. */
const BELIEVED_MS = 60_000;

/** Clusters end at 5,000 nodes. */
const NODES_MAX = 10_000;

/** Within the time that an agent waits for its link. */
const TIMEOUT_MS = 2_000;

/** Remembers what nodes are called. */
export class NodeAddresses {
  readonly #known = new Map<string, { found: Identifiers; untilMs: number }>();

  constructor(
    private readonly client: Pick<KubernetesClient, "get">,
    private readonly clock: Clock,
  ) {}

  /**
   * @throws {KubernetesError | KubernetesConfigError} When it cannot be asked.
   *   That there is no such node is an answer: nothing.
   */
  async of(nodeName: string): Promise<Identifiers> {
    const known = this.#known.get(nodeName);
    if (known !== undefined && this.clock.now() < known.untilMs) {
      return known.found;
    }
    const untilMs = this.clock.now() + BELIEVED_MS;
    const found = identifiersOf(await this.#read(nodeName));
    if (this.#known.size >= NODES_MAX) this.#known.clear();
    this.#known.set(nodeName, { found, untilMs });
    return found;
  }

  async #read(name: string): Promise<KubernetesNode | undefined> {
    try {
      const path = objectPathOf(NODES, { name });
      return await this.client.get<KubernetesNode>(path, {
        timeoutMs: TIMEOUT_MS,
      });
    } catch (error) {
      if (error instanceof KubernetesError && error.code === 404) {
        return undefined;
      }
      throw error;
    }
  }
}

function identifiersOf(node: KubernetesNode | undefined): Identifiers {
  const addresses: string[] = [];
  const host: string[] = [];
  for (const { type, address } of node?.status?.addresses ?? []) {
    if (type.endsWith("IP")) addresses.push(nameKey(address));
    else host.push(nameKey(address));
  }
  return { ...NO_IDENTIFIERS, host, ipv4: addresses, ipv6: addresses };
}
