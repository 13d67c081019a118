/**
 * Discovery: serves the catalog to each subscriber, in the form for its group.
 *
 * The catalog reports a change; `Pushes` decides when it is pushed, and to
 * which client next; views are the resources of each group; a stream knows what
 * its client has, and asks for nothing but its group's view.
 *
 * Nothing is sent before every source has synced: a client that received less
 * would remove the rest. A client that waits too long for that is sent to
 * another server. The loss of a source later changes nothing.
 *
 * Reading order: the constructor, `start`, then `push/pushes.ts` and
 * `streams/open_streams.ts`.
 *
 * @module
 */

import { unawaited } from "../../../platform/errors/internal_errors.ts";
import { Catalog } from "../../catalog/catalog.ts";
import { registerCatalogMetrics } from "../../catalog/catalog_metrics.ts";
import type { Source } from "../../catalog/model/source.ts";
import type { CountingTools } from "../../../platform/program/tools.ts";
import type { MethodHandler } from "../../../proto/grpc/call.ts";
import type { Timer } from "../../../proto/sync/clock.ts";
import type { CallOrigin } from "../access/subscriber.ts";
import type { Generate } from "../generate/service_resources.ts";
import { Views } from "../generate/views.ts";
import { precompile } from "../generate/generate_service.ts";
import { Pushes } from "../push/pushes.ts";
import {
  type DiscoveryAnswers,
  discoveryAnswers,
} from "../status/client_answers.ts";
import { DiscoveryMetrics } from "../streams/discovery_metrics.ts";
import { UnservedLog } from "../status/unserved_log.ts";
import type { SubscriberStream } from "../streams/subscriber_stream.ts";
import {
  OpenStreams,
  type StreamsEnvironment,
  type SubscriberLink,
} from "../streams/open_streams.ts";
import type { ListenAddress } from "../../../net/listen/listeners.ts";

/**
 * How long clients of a server that has just started wait for its sources. Then
 * they should ask another server: gRPC clients do so only when a stream ends
 * without a response (gRFC A71), and conclude after 15 s that nothing exists.
 */
export const CATALOG_WAIT_MS = 2_000;

/** Characters of a source's problem in a sentence. */
const TROUBLE_LENGTH_MAX = 200;

/** What discovery takes from the server. */
export interface DiscoveryEnvironment
  extends CountingTools, StreamsEnvironment {
  /** `generateService`; tests pass another one. */
  readonly generate: Generate;
  /** Sources besides those of the options; asked last. */
  readonly sources: readonly Source[];
}

/** See the module description. */
export class Discovery {
  readonly catalog: Catalog;
  readonly views: Views;
  readonly #unserved: UnservedLog;
  readonly #streams: OpenStreams;
  readonly #pushes: Pushes;
  #state: "starting" | "serving" | "draining" = "starting";
  #unfollow: () => void = () => {};
  /** The sources of the options; agents are no reason to send clients away. */
  readonly #sources: ReadonlySet<string>;
  #waiting: Timer | undefined;
  /** {@linkcode CATALOG_WAIT_MS} are over, and sources still missing. */
  #isLate = false;

  constructor(
    options: DiscoveryServerOptions,
    private readonly environment: DiscoveryEnvironment,
  ) {
    const { log, timers, generate } = environment;
    this.#sources = new Set(options.sources.map(({ name }) => name));
    this.catalog = new Catalog({
      ...environment,
      sources: [...options.sources, ...environment.sources],
    });
    registerCatalogMetrics(environment.metrics, this.catalog);
    this.views = new Views(generate);
    const { catalog, views } = this;
    this.#unserved = new UnservedLog(views, log);
    const metrics = new DiscoveryMetrics(environment.metrics, log, this);
    this.#streams = new OpenStreams({
      ...environment,
      ...{ views, metrics },
      joined: (stream) => {
        if (this.isReady) this.#pushes.add(stream);
      },
      ended: (stream) => this.#pushes.remove(stream),
      // Until then, and also before the start, clients wait only moments.
      problem: () => this.#isLate ? this.problem : undefined,
    });
    this.#pushes = new Pushes({
      windowMinMs: options.windowMinMs,
      windowMaxMs: options.windowMaxMs,
      ...{ timers, catalog, views, metrics },
      streams: this.streams,
      unserved: this.#unserved,
    });
  }

  /** All streams, also those that have not sent their node yet. */
  get streams(): ReadonlySet<SubscriberStream> {
    return this.#streams.all;
  }

  /** Ports of services that some clients may see and cannot be served. */
  get unservedCount(): number {
    return this.#unserved.count;
  }

  /** Whether clients are answered: all sources have synced. */
  get isReady(): boolean {
    return this.#state === "serving";
  }

  /** Why clients are not answered; absent also while agents may come back. */
  get problem(): string | undefined {
    if (this.#state !== "starting") return undefined;
    const late = this.catalog.status.filter(({ name, isSynced }) =>
      !isSynced && this.#sources.has(name)
    );
    if (late.length === 0) return undefined;
    const texts = late.map(({ name, problem = "it has not answered yet" }) =>
      `source ${name}: ${problem.slice(0, TROUBLE_LENGTH_MAX)}`
    );
    return `server has not read its catalog (${texts.join("; ")})`;
  }

  /** For the admin API. */
  get answers(): DiscoveryAnswers {
    return discoveryAnswers(this, this.environment.timers);
  }

  /** Subscribers that had to authenticate, to be authorized again. */
  get links(): readonly SubscriberLink[] {
    return this.#streams.links;
  }

  /** Starts the sources; answers begin when they have synced. */
  start(): void {
    this.#unfollow = this.catalog.follow((_snapshot, diff) => {
      if (this.isReady) this.#pushes.changed(diff);
    });
    this.catalog.start();
    const { timers } = this.environment;
    this.#waiting = timers.after(CATALOG_WAIT_MS, () => this.#onLate());
    precompile(this.environment.generate);
    unawaited(
      "catalog",
      this.catalog.whenSynced().then(() => this.#onSynced()),
    );
  }

  /** The methods as one connection may call them. */
  methods(origin: CallOrigin): Readonly<Record<string, MethodHandler>> {
    return this.#streams.methods(origin);
  }

  /** The rules about visible services may have changed. */
  reconsider(): void {
    if (this.isReady && this.#streams.reconsider()) this.#pushes.changed();
  }

  /** Ends all streams with a status that sends clients to other servers. */
  drain(reason: string): void {
    if (this.#state === "draining") return;
    this.#state = "draining";
    this.#waiting?.cancel();
    this.#pushes.stop();
    this.#unfollow();
    this.#streams.drain(reason);
  }

  /** Ends the sources, too. */
  async stop(reason: string): Promise<void> {
    this.drain(reason);
    await this.catalog.stop();
  }

  #onLate(): void {
    const { problem } = this;
    if (problem === undefined) return;
    this.#isLate = true;
    this.environment.log.warn(
      `${problem}: clients of discovery are sent to other servers until it has`,
      { code: "TUN701" },
    );
    this.#streams.endAll(problem);
  }

  #onSynced(): void {
    if (this.#state !== "starting") return;
    this.#waiting?.cancel();
    this.#state = "serving";
    if (this.#isLate) {
      this.environment.log.info(
        "server has read its catalog: clients of " +
          "discovery are answered",
      );
    }
    this.#pushes.changed();
  }
}

/** Of discovery, for servers that serve it. */
export interface DiscoveryServerOptions {
  /** Of the catalog; the first that has a service owns it. */
  readonly sources: readonly Source[];
  /**
   * For programs on this machine, which need no credentials; absent: there is
   * no such port.
   */
  readonly listen?: ListenAddress | undefined;
  /** How long agents have to come back after a start; 2 s unless given. */
  readonly settleMs?: number;
  /** Between two pushes while changes keep coming; see `discovery/push/debounce.ts`. */
  readonly windowMinMs: number;
  readonly windowMaxMs: number;
}
