/**
 * Follows the Service before the servers, so that each link goes to their
 * present addresses. While the API server is away, the last known addresses are
 * used.
 *
 * @module
 */

import { unawaited } from "../../../platform/errors/internal_errors.ts";
import { ConnectError } from "../../../net/dial/server_connect.ts";
import type { RequestOptions } from "../../../neighbours/kubernetes/client.ts";
import {
  isKubernetesTrouble,
  unlessMissing,
} from "../../../neighbours/kubernetes/errors.ts";
import {
  ListWatch,
  type ListWatchClient,
} from "../../../neighbours/kubernetes/list_watch.ts";
import type {
  KubernetesNode,
  KubernetesService,
  ObjectList,
} from "../../../neighbours/kubernetes/objects.ts";
import {
  NODES,
  objectPathOf,
  SERVICES,
} from "../../../neighbours/kubernetes/paths.ts";
import type { ServerAddress } from "../../../net/dial/server_addresses.ts";
import { lineKey } from "../../../platform/log/line_key.ts";
import type { Log } from "../../../platform/log/log.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import { findAddresses } from "./service_addresses.ts";

/** OpenYurt's label of nodes that are not at the edge. */
export const CLOUD_NODES = "openyurt.io/is-edge-worker=false";

/** A link waits for this. */
const TIMEOUT_MS = 5_000;

/** More nodes are not looked at: their addresses would not be used. */
const NODES_LIMIT = 100;

/** Which Service, and which of its ports. */
export interface DiscoveryOptions {
  readonly namespace: string;
  readonly name: string;
  readonly portName: string;
  /** Whether the Service's own address can be reached from here. */
  readonly isInside: boolean;
}

interface ServiceDiscoveryOptions extends DiscoveryOptions {
  readonly client: ListWatchClient;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Pick<Log, "event" | "warn">;
}

export class ServiceDiscovery {
  readonly #services: ListWatch<KubernetesService>;
  #last: readonly ServerAddress[] = [];
  /** The last warning: one is enough for a row of the same. */
  #warned = "";

  constructor(private readonly options: ServiceDiscoveryOptions) {
    const { client, namespace, name, timers, random } = options;
    this.#services = new ListWatch({
      client,
      path: objectPathOf(SERVICES, { namespace }),
      query: { fieldSelector: `metadata.name=${name}` },
      timers,
      random,
      onChanges: () => unawaited("task", this.#refresh()),
      onProblem: (error) =>
        this.#warn(
          `${this.#what} cannot be followed: ${error.message}; it is looked ` +
            "at for each link",
        ),
    });
  }

  start(): void {
    this.#services.start();
  }

  async stop(): Promise<void> {
    await this.#services.stop();
  }

  /**
   * The present addresses.
   *
   * @throws {ConnectError} With all sources that were tried.
   */
  async addresses(): Promise<readonly ServerAddress[]> {
    let problem: Error;
    try {
      this.#note(await this.#find());
      return this.#last;
    } catch (error) {
      if (!isOfTheWorld(error)) throw error;
      problem = error;
    }
    const message = problem instanceof ConnectError
      ? problem.message
      : `Cannot find a server: ${this.#what} cannot be read: ` +
        problem.message;
    if (this.#last.length === 0) {
      throw new ConnectError(message, { cause: problem });
    }
    this.#warn(`${message}; servers are looked for where they were`);
    return this.#last;
  }

  get #what(): string {
    const { namespace, name } = this.options;
    return `Service ${namespace}/${name}`;
  }

  /** The Service has changed; links that stand are kept. */
  async #refresh(): Promise<void> {
    try {
      await this.addresses();
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      this.#warn(error.message);
    }
  }

  async #find(): Promise<readonly ServerAddress[]> {
    const { portName, isInside } = this.options;
    const service = await this.#read();
    if (service === undefined) {
      throw new ConnectError(
        `Cannot find a server: there is no ${this.#what}; make it, or say ` +
          "where servers are by --tunnelserver-addr",
      );
    }
    const isOnNodes = service.spec?.type === "NodePort";
    const nodes = isOnNodes ? await this.#nodes() : [];
    const view = { portName, service, nodes, isInside };
    const { addresses, looked } = findAddresses(view);
    if (addresses.length > 0) return addresses;
    throw new ConnectError(
      `Cannot find a server by ${this.#what}: ${
        looked.join("; ")
      }; say where ` +
        "servers are by the annotation or --tunnelserver-addr",
    );
  }

  async #read(): Promise<KubernetesService | undefined> {
    const { client, namespace, name } = this.options;
    if (!this.#services.isStale) {
      return this.#services.objects.get(`${namespace}/${name}`);
    }
    const path = objectPathOf(SERVICES, { namespace, name });
    return await unlessMissing(client.get<KubernetesService>(path, request()));
  }

  async #nodes(): Promise<readonly KubernetesNode[] | string> {
    try {
      const { items } = await this.options.client.get<
        ObjectList<KubernetesNode>
      >(
        objectPathOf(NODES),
        {
          ...request(),
          query: { labelSelector: CLOUD_NODES, limit: `${NODES_LIMIT}` },
        },
      );
      return items?.length ? items : `there are no nodes with ${CLOUD_NODES}`;
    } catch (error) {
      if (!isOfTheWorld(error)) throw error;
      return `nodes cannot be listed: ${error.message}`;
    }
  }

  #note(addresses: readonly ServerAddress[]): void {
    const isSame = JSON.stringify(addresses) === JSON.stringify(this.#last);
    this.#last = addresses;
    this.#warned = "";
    if (isSame) return;
    this.options.log.event("servers are at these addresses", {
      addresses: addresses.map(({ host, port }) => `${host} ${port}`)
        .join(", "),
    });
  }

  #warn(message: string): void {
    if (message === this.#warned) return;
    this.#warned = message;
    this.options.log.warn(message, { code: "TUN802" }, lineKey(message));
  }
}

function request(): RequestOptions {
  return { timeoutMs: TIMEOUT_MS };
}

function isOfTheWorld(error: unknown): error is Error {
  return isKubernetesTrouble(error) || error instanceof ConnectError;
}
