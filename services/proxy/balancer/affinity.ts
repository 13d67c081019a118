/**
 * Which backend a client was sent to, for as long as it keeps coming
 * (`sessionAffinity: ClientIP`).
 *
 * The time to live begins anew with each visit, as kube-proxy has it. Entries
 * are in the order of their last visit, so what has expired is in front and no
 * timer is needed to find it.
 *
 * @module
 */

import type { Clock } from "../../../proto/sync/clock.ts";
import type { Backend } from "./backend.ts";

/**
 * Clients remembered for one port of a service. Anybody who may connect can
 * come from many addresses; the client not seen for longest is forgotten, and
 * is only sent elsewhere the next time.
 */
export const AFFINITY_CLIENTS_MAX = 16_384;

interface Visit {
  readonly backend: Backend;
  atMs: number;
}

export class AffinityTable {
  /** Since the last visit. */
  ttlMs: number;
  /** By the client's IP address, the longest unseen first. */
  readonly #visits = new Map<string, Visit>();

  constructor(
    private readonly clock: Clock,
    ttlMs: number,
    private readonly clientsMax: number = AFFINITY_CLIENTS_MAX,
  ) {
    this.ttlMs = ttlMs;
  }

  get size(): number {
    return this.#visits.size;
  }

  /** Where `client` was sent before, which counts as a visit. */
  visit(client: string): Backend | undefined {
    this.#forgetExpired();
    const visit = this.#visits.get(client);
    if (visit === undefined) return undefined;
    visit.atMs = this.clock.now();
    this.#visits.delete(client);
    this.#visits.set(client, visit);
    return visit.backend;
  }

  /** Clients, where each was sent to, and how long ago; the newest last. */
  *visits(): Generator<readonly [string, Backend, number]> {
    const nowMs = this.clock.now();
    for (const [client, { backend, atMs }] of this.#visits) {
      yield [client, backend, nowMs - atMs];
    }
  }

  /** From now on `client` is sent to `backend`. */
  set(client: string, backend: Backend, agoMs = 0): void {
    this.#visits.delete(client);
    this.#visits.set(client, { backend, atMs: this.clock.now() - agoMs });
    if (this.#visits.size <= this.clientsMax) return;
    this.#forgetExpired();
    for (const longestUnseen of this.#visits.keys()) {
      if (this.#visits.size <= this.clientsMax) return;
      this.#visits.delete(longestUnseen);
    }
  }

  /** These are chosen no more; their clients are new ones when they come. */
  forget(backends: ReadonlySet<Backend>): void {
    for (const [client, { backend }] of this.#visits) {
      if (backends.has(backend)) this.#visits.delete(client);
    }
  }

  #forgetExpired(): void {
    const expired = this.clock.now() - this.ttlMs;
    for (const [client, { atMs }] of this.#visits) {
      if (atMs > expired) return;
      this.#visits.delete(client);
    }
  }
}
