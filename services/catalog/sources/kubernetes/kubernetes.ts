/**
 * Services and endpoints of a Kubernetes cluster: its Services, and the
 * EndpointSlices that belong to them, whichever controller writes those.
 *
 * A follower tells a sink of them in the catalog's form. Each of the two is
 * delivered whole after its first list, and by its changes from then on.
 * Kubernetes does not promise that the two are in step. From time to time the
 * source lists everything as a check, and a follower that has missed something
 * is replaced by a new one.
 *
 * @module
 */

import {
  isKubernetesTrouble,
  NoAnswerError,
} from "../../../../neighbours/kubernetes/errors.ts";
import {
  listPages,
  ListWatch,
  type ListWatchClient,
} from "../../../../neighbours/kubernetes/list_watch.ts";
import {
  type ObjectChange,
  objectKeyOf,
} from "../../../../neighbours/kubernetes/object_copy.ts";
import type {
  EndpointSlice,
  KubernetesObject,
  KubernetesService,
} from "../../../../neighbours/kubernetes/objects.ts";
import {
  type ApiCollection,
  ENDPOINT_SLICES,
  objectPathOf,
  SERVICES,
} from "../../../../neighbours/kubernetes/paths.ts";
import type { Timers } from "../../../../proto/sync/clock.ts";
import { keyOf } from "../../model/model.ts";
import type { Sink, Source } from "../../model/source.ts";
import { EndpointSlices, sliceProblem } from "./endpoint_slices.ts";
import { annotationProblemOf, serviceOfObject } from "./kubernetes_service.ts";
import { pause } from "../../../../platform/time/pause.ts";

/**
 * kube-proxy's: headless services have no address that a proxy could stand for,
 * and the other label says that another proxy does. Slices carry both as well.
 */
export const PROXIED =
  "!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name";

/** What a follower needs. */
export interface KubernetesFollowerOptions {
  readonly client: ListWatchClient;
  /** Absent: all of them. */
  readonly namespace?: string | undefined;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

export class KubernetesFollower {
  readonly #services: ListWatch<KubernetesService>;
  readonly #slices: ListWatch<EndpointSlice>;
  readonly #joined = new EndpointSlices();
  /** The parts that were delivered whole. */
  readonly #isSaid = { services: false, endpoints: false };

  /** @param first How each of the two is said at first. */
  constructor(
    private readonly options: KubernetesFollowerOptions,
    private readonly sink: Sink,
    private readonly first: "set" | "repair",
  ) {
    this.#services = this.#watch<KubernetesService>(
      SERVICES,
      (changes) => this.#onServices(changes),
      () => this.#sayServices(),
    );
    this.#slices = this.#watch<EndpointSlice>(
      ENDPOINT_SLICES,
      (changes) => this.#onSlices(changes),
      () => this.#sayEndpoints(),
    );
  }

  /** The two collections as they are known, and where they are from. */
  get collections(): readonly {
    readonly path: string;
    readonly objects: ReadonlyMap<string, KubernetesObject>;
  }[] {
    return [
      { path: this.#pathOf(SERVICES), objects: this.#services.objects },
      { path: this.#pathOf(ENDPOINT_SLICES), objects: this.#slices.objects },
    ];
  }

  /** Whether both were said whole. */
  get isSynced(): boolean {
    return this.#isSaid.services && this.#isSaid.endpoints;
  }

  start(): void {
    this.#services.start();
    this.#slices.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#services.stop(), this.#slices.stop()]);
  }

  #watch<T extends KubernetesObject>(
    resource: ApiCollection,
    onChanges: (changes: readonly ObjectChange<T>[]) => void,
    sayAll: () => void,
  ): ListWatch<T> {
    const { client, timers, random } = this.options;
    return new ListWatch<T>({
      client,
      timers,
      random,
      path: this.#pathOf(resource),
      query: { labelSelector: PROXIED },
      onChanges,
      onSynced: sayAll,
      onFollowing: () => this.#onFollowing(),
      onProblem: (error, retryMs) => {
        // An API server that is away is so for both: that is one thing to say.
        const message = error instanceof NoAnswerError
          ? `Cannot follow the cluster: ${error.what}`
          : error.message;
        this.sink.failed(message, retryMs);
      },
    });
  }

  #pathOf(resource: ApiCollection): string {
    const { namespace } = this.options;
    return objectPathOf(resource, namespace === undefined ? {} : { namespace });
  }

  #onFollowing(): void {
    const both = [this.#services, this.#slices];
    if (both.every((each) => each.isSynced && !each.isStale)) {
      this.sink.synced();
    }
  }

  // --- Services ------------------------------------------------------------------

  #sayServices(): void {
    if (this.#isSaid.services) return;
    this.#isSaid.services = true;
    const services = [...this.#services.objects.values()].map(serviceOfObject);
    this.sink[this.first]({ services: services.filter(isThere) });
  }

  #onServices(changes: readonly ObjectChange<KubernetesService>[]): void {
    for (const change of changes) this.#refuse(change, annotationProblemOf);
    if (!this.#isSaid.services) return;
    this.sink.change({
      services: new Map(
        changes.map(({ type, object }) => [
          keyOfObject(object),
          type === "removed" ? undefined : serviceOfObject(object),
        ]),
      ),
    });
  }

  // --- Endpoints -----------------------------------------------------------------

  #sayEndpoints(): void {
    if (this.#isSaid.endpoints) return;
    this.#isSaid.endpoints = true;
    this.sink[this.first]({ endpoints: this.#joined.all() });
  }

  #onSlices(changes: readonly ObjectChange<EndpointSlice>[]): void {
    const touched = new Set<string | undefined>();
    for (const change of changes) {
      this.#refuse(change, sliceProblem);
      // It may have been another service's before.
      if (change.type === "updated") {
        touched.add(this.#joined.remove(change.previous));
      }
      touched.add(
        change.type === "removed"
          ? this.#joined.remove(change.object)
          : this.#joined.put(change.object),
      );
    }
    if (!this.#isSaid.endpoints) return;
    const keys = [...touched].filter(isThere);
    this.sink.change({
      endpoints: new Map(
        keys.map((key) => [key, this.#joined.endpointsOf(key)]),
      ),
    });
  }

  /** Reports what is left out of an object, unless that was reported before. */
  #refuse<T extends KubernetesObject>(
    change: ObjectChange<T>,
    problemOf: (object: T) => string | undefined,
  ): void {
    if (change.type === "removed") return;
    const problem = problemOf(change.object);
    if (problem === undefined) return;
    const isNews = change.type === "added" ||
      problemOf(change.previous) !== problem;
    if (isNews) this.sink.refused(problem);
  }
}

function keyOfObject({ metadata }: KubernetesObject): string {
  const { namespace = "", name = "" } = metadata;
  return keyOf({ namespace, name });
}

function isThere<T>(value: T | undefined): value is T {
  return value !== undefined;
}

/** A list may be ahead of the watch. */
export const WATCH_GRACE_MS = 10_000;

/** The client is the source's own, and ends with it. */
export interface KubernetesSourceOptions extends KubernetesFollowerOptions {
  readonly client: KubernetesFollowerOptions["client"] & Disposable;
}

export class KubernetesSource implements Source {
  readonly name = "kubernetes";
  readonly #stopping = new AbortController();
  #sink: Sink | undefined;
  #follower: KubernetesFollower | undefined;

  constructor(private readonly options: KubernetesSourceOptions) {}

  start(sink: Sink): void {
    this.#sink = sink;
    this.#follow("set");
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#follower?.stop();
    this.options.client[Symbol.dispose]();
  }

  async reconcile(): Promise<void> {
    const { signal } = this.#stopping;
    const follower = this.#follower;
    // Before the first whole list nothing can be missing.
    if (follower?.isSynced !== true) return;
    try {
      if (!await this.#hasMissed(follower)) return;
    } catch (error) {
      // It is asked again another time; what the watch says counts meanwhile.
      if (signal.aborted || isKubernetesTrouble(error)) return;
      throw error;
    }
    await follower.stop();
    if (!signal.aborted) this.#follow("repair");
  }

  #follow(first: "set" | "repair"): void {
    this.#follower = new KubernetesFollower(this.options, this.#sink!, first);
    this.#follower.start();
  }

  /** Whether something stays other than it is listed. */
  async #hasMissed(follower: KubernetesFollower): Promise<boolean> {
    const { signal } = this.#stopping;
    const suspects = await Promise.all(
      follower.collections.map(async ({ path, objects }) => {
        const listed = await this.#versions(path);
        const keys = new Set([...listed.keys(), ...objects.keys()]);
        const known = (key: string) => versionOf(objects.get(key));
        return [...keys]
          .filter((key) => known(key) !== listed.get(key))
          .map((key) => ({ known: () => known(key), before: known(key) }));
      }),
    );
    if (suspects.flat().length === 0) return false;
    await pause(this.options.timers, WATCH_GRACE_MS, signal);
    if (signal.aborted) return false;
    return suspects.flat().some(({ known, before }) => known() === before);
  }

  /** The present versions, by key. */
  async #versions(path: string): Promise<ReadonlyMap<string, string>> {
    const { items } = await listPages<KubernetesObject>(
      this.options.client,
      path,
      { query: { labelSelector: PROXIED }, signal: this.#stopping.signal },
    );
    return new Map(
      items.map((object) => [objectKeyOf(object), versionOf(object) ?? ""]),
    );
  }
}

function versionOf(object: KubernetesObject | undefined): string | undefined {
  return object === undefined
    ? undefined
    : object.metadata.resourceVersion ?? "";
}
