/**
 * Objects of an API server that are read on demand and cached for a while;
 * nothing is watched.
 *
 * @module
 */

import type { Clock } from "../../proto/sync/clock.ts";
import type { KubernetesClient } from "./client.ts";
import { codeOf } from "./errors.ts";
import { type ApiCollection, type ApiPath, objectPathOf } from "./paths.ts";

/** What `RememberedObjects` needs. */
export interface RememberedObjectsOptions {
  readonly client: Pick<KubernetesClient, "get">;
  readonly clock: Clock;
  /** How long an answer is believed. */
  readonly believedMs: number;
  /** That there is no such object is believed as long; else it is asked again. */
  readonly believesMissing: boolean;
  /** For each request. */
  readonly timeoutMs: number;
  /** Answers that are kept; beyond it all are forgotten. */
  readonly most: number;
}

/** See the module description. */
export class RememberedObjects {
  readonly #answers = new Map<
    string,
    { readonly object: Promise<unknown>; readonly untilMs: number }
  >();

  constructor(private readonly options: RememberedObjectsOptions) {}

  /**
   * @param version The version, when several objects had the name in turn.
   * @throws {KubernetesError | NeighbourConfigError} That there is no such
   *   object with the code 404.
   */
  get<T>(
    collection: ApiCollection,
    where: ApiPath,
    version = "",
  ): Promise<T> {
    const { client, clock, believedMs, believesMissing, timeoutMs, most } =
      this.options;
    const path = objectPathOf(collection, where);
    const key = `${path} ${version}`;
    const now = clock.now();
    const known = this.#answers.get(key);
    if (known !== undefined && now < known.untilMs) {
      return known.object as Promise<T>;
    }
    if (this.#answers.size >= most) this.#answers.clear();
    const object = client.get<T>(path, { timeoutMs }).catch((error) => {
      if (!believesMissing || codeOf(error) !== 404) this.#answers.delete(key);
      throw error;
    });
    this.#answers.set(key, { object, untilMs: now + believedMs });
    return object;
  }
}
