/**
 * Services and endpoints as a tunnel's discovery server tells them: a source of
 * the catalog that is fed by ADS (xDS v3), Delta or state of the world.
 *
 * A server that is away changes nothing: its last state stays, also from one
 * process to the next (`SourceCopy`). A resource that cannot be used is
 * refused by name, which the server shows; the others are taken. A service
 * comes with all its endpoints (`proto/xds/service.proto`), so each change is
 * whole.
 *
 * Reading order: `start`, `#change`, `#settled`.
 *
 * @module
 */

import {
  type AdsChange,
  type AdsKindStatus,
  RefusedResource,
  type UsableResource,
} from "../../ads/held_resources.ts";
import { AdsConnection, type AdsState } from "../../ads/ads_connection.ts";
import type {
  DiscoveryMode,
  DiscoveryNode,
  ReceivedResource,
} from "../../../proto/xds/discovery.ts";
import type { ResourceKind } from "../../../proto/xds/resource.ts";
import { VERSION } from "../../../platform/process/version.ts";
import type { Sink, Source } from "../../catalog/model/source.ts";
import { AdsClient } from "../../ads/ads_client.ts";
import {
  type CopyStatus,
  SourceCopy,
} from "../../catalog/model/source_copy.ts";
import type { Upstream } from "../../../net/channel/upstream.ts";
import { GrpcError } from "../../../proto/grpc/status.ts";
import { keyOf } from "../../catalog/model/model.ts";
import {
  ServiceMessageError,
  type WholeService,
  wholeServiceOf,
} from "../../catalog/service_message.ts";
import type { Log } from "../../../platform/log/log.ts";
import type {
  ComputedFamily,
  MetricRegistry,
} from "../../../platform/metrics/metrics.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import { TunnelService } from "../../../proto/xds/xds_messages.ts";

/**
 * A proxy's report about the discovery server that it follows. Plain data that
 * survives JSON.
 */
export interface DiscoveryStatus extends Partial<CopyStatus> {
  readonly node: string;
  readonly mode: DiscoveryMode;
  readonly state: AdsState["kind"];
  /** `ip:port` of the server that is followed. */
  readonly server?: string | undefined;
  /** Why none is. */
  readonly problem?: string | undefined;
  /** Streams on which a server has spoken, since the start. */
  readonly streams: number;
  readonly kinds: Readonly<Partial<Record<ResourceKind, AdsKindStatus>>>;
}

/**
 * The id of a node proxy for a discovery server.
 *
 * @param id The node's name, or one that begins with it and a slash.
 * @param zone Its zone; empty: unknown.
 */
export function proxyNode(id: string, zone: string): DiscoveryNode {
  return {
    id,
    cluster: "",
    metadata: { tunnel: { kind: "service" } },
    locality: { region: "", zone, subZone: "" },
    userAgentName: "tunnel",
    userAgentVersion: VERSION,
    clientFeatures: [],
  };
}

export interface AdsSourceOptions {
  readonly upstream: Upstream;
  readonly mode: DiscoveryMode;
  /** Who asks. */
  readonly node: DiscoveryNode;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** See `AdsConnectionOptions`. */
  readonly onSilentEnd?: () => void;
  /** Ends what the upstream is made of. */
  readonly onStopped?: () => void;
  /**
   * The file that keeps the server's state for a start without a server; absent:
   * none.
   */
  readonly kept?: { readonly path: string; readonly log: Log } | undefined;
}

export class AdsSource implements Source {
  readonly name = "discovery";
  readonly copy: SourceCopy | undefined;
  readonly #client: AdsClient<WholeService>;
  readonly #connection: AdsConnection<WholeService>;
  #sink: Sink | undefined;
  #isSynced = false;
  #isStopped = false;

  constructor(private readonly options: AdsSourceOptions) {
    const { mode, node, timers, random, upstream, onSilentEnd, kept } = options;
    this.copy = kept && new SourceCopy({
      ...{ ...kept, timers, source: this.name },
      place: `discovery, for the node ${node.id}`,
    });
    this.#client = new AdsClient<WholeService>({
      mode,
      node,
      timers,
      read: readWhole,
      onChanged: (changes) => this.#change(changes),
      onRefused: (kind, refusal) =>
        this.#sink!.refused(`${refusal} (${kind} of discovery)`),
      onSettled: () => this.#settled(),
    });
    this.#connection = new AdsConnection({
      client: this.#client,
      upstream,
      timers,
      random,
      onProblem: (problem, retryMs) =>
        this.#sink?.failed(`Cannot follow discovery: ${problem}`, retryMs),
      onSilentEnd,
    });
  }

  get status(): DiscoveryStatus {
    const { node, mode } = this.options;
    const { state } = this.#connection;
    return {
      node: node.id,
      mode,
      state: state.kind,
      server: state.kind === "open" ? state.server : undefined,
      problem: state.kind === "waiting" ? state.problem : undefined,
      streams: this.#connection.opened,
      kinds: this.#client.status,
      ...this.copy?.status,
    };
  }

  start(sink: Sink): void {
    this.#sink = sink;
    this.#client.want("service", true);
    this.#connection.start();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#connection.stop();
    this.options.onStopped?.();
  }

  /**
   * A new stream: the client sends its versions, and the server the
   * differences.
   */
  reconcile(): Promise<void> {
    this.#connection.reconnect("all is compared again");
    return Promise.resolve();
  }

  #change(changes: readonly AdsChange<WholeService>[]): void {
    if (this.#isStopped) return;
    const to = <T>(of: (content: WholeService) => T) =>
      new Map(
        changes.map(({ name, held }) => [name, held && of(held.content)]),
      );
    this.#sink!.change({
      services: to(({ service }) => service),
      endpoints: to(({ endpoints }) => endpoints),
    });
  }

  #settled(): void {
    if (this.#isStopped) return;
    this.#isSynced ||= this.#client.isSynced;
    if (this.#isSynced) this.#sink!.synced();
  }
}

/**
 * A resource that cannot be used is refused with a sentence; nothing is
 * guessed.
 */
export function readWhole(
  _kind: ResourceKind,
  { name, value }: ReceivedResource,
): UsableResource<WholeService> {
  try {
    const content = wholeServiceOf(TunnelService.decode(value));
    const key = keyOf(content.service);
    if (key !== name) throw new RefusedResource(`it is the service ${key}`);
    return { content, needs: [] };
  } catch (error) {
    const isItsFault = error instanceof ServiceMessageError ||
      error instanceof GrpcError;
    throw isItsFault ? new RefusedResource(error.message) : error;
  }
}

/** A client that follows a discovery server. */
export type DiscoveryFollower = Pick<AdsSource, "status">;

/**
 * The metrics of a proxy's discovery (`tunnel_discovery_client_…`); values are
 * asked for at each scrape. Labels are kinds of resources.
 */
export function registerDiscoveryClientMetrics(
  registry: MetricRegistry,
  follower: DiscoveryFollower,
): void {
  registry.computed(
    "gauge",
    `${PREFIX}connected`,
    "1 while a discovery server is followed.",
    () => follower.status.state === "open" ? 1 : 0,
  );
  registry.computed(
    "counter",
    `${PREFIX}streams_total`,
    "Streams on which a discovery server has spoken.",
    () => follower.status.streams,
  );
  registry.computedFamilies(
    PREFIX,
    ["kind"],
    KIND_FAMILIES,
    (value) =>
      Object.entries(follower.status.kinds)
        .map(([name, status]) => [[name], value(status)]),
  );
}

const PREFIX = "tunnel_discovery_client_";

const KIND_FAMILIES: readonly ComputedFamily<AdsKindStatus>[] = [
  ["gauge", "resources", "Resources that are held.", ({ held }) => held],
  [
    "counter",
    "responses_total",
    "Responses that a discovery server has sent.",
    ({ responses }) => responses,
  ],
  [
    "counter",
    "refused_total",
    "Responses of which something could not be used.",
    ({ refused }) => refused,
  ],
];
