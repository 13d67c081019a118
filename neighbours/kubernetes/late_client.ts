/**
 * A client of an API server whose configuration may not be there yet: on a node
 * that is just being set up, somebody else writes it. Each request looks again.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import type { KubernetesClient, RequestOptions } from "./client.ts";
import { connectKubernetes, type KubernetesOptions } from "./connect.ts";

/** Fails as `KubernetesClient` does. */
export class LateClient implements Disposable {
  #client: KubernetesClient | undefined;

  constructor(
    private readonly options: KubernetesOptions,
    private readonly timers: Timers,
  ) {}

  /**
   * As `KubernetesClient.authority`.
   *
   * @throws {KubernetesConfigError}
   */
  get authority(): string | undefined {
    return this.#open().authority;
  }

  async get<T>(path: string, options: RequestOptions): Promise<T> {
    return await this.#open().get<T>(path, options);
  }

  async create<T>(path: string, body: T, options: RequestOptions): Promise<T> {
    return await this.#open().create<T>(path, body, options);
  }

  async stream(
    path: string,
    options: RequestOptions & { readonly signal: AbortSignal },
  ): Promise<ReadableStream<Uint8Array>> {
    return await this.#open().stream(path, options);
  }

  [Symbol.dispose](): void {
    this.#client?.[Symbol.dispose]();
  }

  #open(): KubernetesClient {
    return this.#client ??= connectKubernetes(this.options, this.timers);
  }
}
