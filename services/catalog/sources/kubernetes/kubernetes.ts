/**
 * Services and endpoints of a Kubernetes cluster: its Services, and the
 * EndpointSlices that belong to them, whichever controller writes those.
 *
 * Following them is `kubernetes_follower.ts`; this is a follower's life, and the
 * doubt in it: from time to time everything is listed besides, and one that has
 * missed something is replaced by a new one.
 *
 * @module
 */

import { listPages } from "../../../../neighbours/kubernetes/list_watch.ts";
import { isKubernetesTrouble } from "../../../../neighbours/kubernetes/errors.ts";
import { objectKeyOf } from "../../../../neighbours/kubernetes/object_copy.ts";
import type { KubernetesObject } from "../../../../neighbours/kubernetes/objects.ts";
import { pause } from "../../../../platform/time/pause.ts";
import type { Sink, Source } from "../../model/source.ts";
import {
  KubernetesFollower,
  type KubernetesFollowerOptions,
  PROXIED,
} from "./kubernetes_follower.ts";

/** What a list says may still be on its way through the watch. */
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
    // Before it has said all, nothing can be missing from it.
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

  /** What is listed now, by key: the versions. */
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
