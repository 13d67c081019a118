/**
 * Endpoints that are in etcd for as long as a process keeps them there.
 *
 * They are bound to a lease: when the process that registered them dies, they
 * go. When the lease is lost for another reason, they are written again under a
 * new one. Keys and values are those of our own layout (docs/services.md).
 *
 * @module
 */

import { bracketed } from "../../proto/peer/host_port.ts";
import type { EtcdClient } from "../../neighbours/etcd/client.ts";
import type { EtcdError } from "../../neighbours/etcd/errors.ts";
import { bytesOf } from "../../neighbours/etcd/keys.ts";
import { EtcdLease } from "../../neighbours/etcd/etcd_lease.ts";
import {
  Compare_CompareResult,
  Compare_CompareTarget,
  PutRequest,
} from "../../neighbours/etcd/etcd_messages.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import {
  DEFAULT_WEIGHT,
  type Endpoint,
  type EndpointPort,
  type Protocol,
} from "./model/model.ts";
import {
  endpointKeyIn,
  serviceKeyOf,
} from "./sources/etcd/etcd_tunnel_layout.ts";

/** etcd takes so many operations at once by default. */
export const REGISTERED_ENDPOINTS_MAX = 128;

/** A service as the one that registers its endpoints wants it. */
export interface RegisteredPort extends EndpointPort {
  readonly protocol: Protocol;
}

export interface RegistrationOptions {
  readonly client: EtcdClient;
  /** Of the layout's keys. */
  readonly prefix: string;
  /** `namespace/name`. */
  readonly service: string;
  /** Each with one port; {@linkcode REGISTERED_ENDPOINTS_MAX} at most. */
  readonly endpoints: readonly Endpoint[];
  /** The service is written, too, unless there is one; it stays. */
  readonly servicePort?: RegisteredPort;
  readonly ttlSeconds: number;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly onHeld: (lease: string) => void;
  readonly onLost: () => void;
  readonly onProblem: (error: EtcdError, retryMs: number) => void;
}

export class Registration {
  readonly #lease: EtcdLease;

  constructor(private readonly options: RegistrationOptions) {
    this.#lease = new EtcdLease({
      ...options,
      write: (lease) => this.#write(lease),
    });
  }

  start(): void {
    this.#lease.start();
  }

  /**
   * Takes the endpoints away at once.
   *
   * @throws {EtcdError} When etcd could not be asked; they end with their lease.
   */
  async stop(): Promise<void> {
    await this.#lease.stop();
  }

  async #write(lease: string): Promise<void> {
    const { client, service, endpoints, prefix, servicePort } = this.options;
    if (servicePort !== undefined) {
      const key = bytesOf(serviceKeyOf(prefix, service));
      const value = bytesOf(
        JSON.stringify({ ports: [portValue(servicePort)] }),
      );
      await client.txn(`write service ${service}`, {
        compare: [{
          key,
          result: Compare_CompareResult.EQUAL,
          target: Compare_CompareTarget.CREATE,
          createRevision: "0",
        }],
        success: [{ requestPut: { key, value } }],
      });
    }
    const puts = endpoints.map((endpoint): PutRequest => ({
      key: bytesOf(endpointKeyIn(prefix, service, endpointId(endpoint))),
      value: bytesOf(JSON.stringify(endpointValue(endpoint))),
      lease,
    }));
    // All or none, and one event for watchers.
    await client.txn(`write endpoints of ${service}`, {
      compare: [],
      success: puts.map((requestPut) => ({ requestPut })),
    });
  }
}

/** `10.0.0.7:5432`, followed by the port's name if it has one. */
function endpointId({ address, ports }: Endpoint): string {
  const host = bracketed(address);
  return ports.map(({ name, port }) =>
    name === "" ? `${host}:${port}` : `${host}:${port}:${name}`
  ).join(",");
}

/** As the file source writes it, without fields that have their default. */
function endpointValue(endpoint: Endpoint): Readonly<Record<string, unknown>> {
  const { address, ports, node, zone, weight, via } = endpoint;
  const [only, ...others] = ports;
  const isPlain = only !== undefined && only.name === "" && others.length === 0;
  const isDirect = via.kind === "direct";
  return {
    address,
    ...isPlain
      ? { port: only.port }
      : { ports: Object.fromEntries(ports.map((it) => [it.name, it.port])) },
    ...node === undefined ? {} : { node },
    ...zone === undefined ? {} : { zone },
    ...weight === DEFAULT_WEIGHT ? {} : { weight },
    ...isDirect
      ? {}
      : { via: via.agent ? { [via.agent.key]: via.agent.value } : "agent" },
  };
}

function portValue(
  { name, port, protocol }: RegisteredPort,
): Readonly<Record<string, unknown>> {
  return {
    ...name === "" ? {} : { name },
    port,
    ...protocol === "tcp" ? {} : { protocol },
  };
}
