/**
 * How the next backend is chosen out of several that will do: any, in turns, by
 * weight, or the one with the fewest connections; and which one a client was sent
 * to before, for as long as it keeps coming (`sessionAffinity: ClientIP`).
 *
 * @module
 */

import type { Backend } from "./backend.ts";
import type { Balance } from "../../catalog/model/model.ts";
import type { Clock } from "../../../proto/sync/clock.ts";

/** Uniform in [0, 1), such as `Math.random`. */
export type Random = () => number;

export interface BalancerStrategy {
  /** There are other backends now than there were. */
  reset?(ring: readonly Backend[]): void;
  /**
   * @param ring All, in the order of the catalog.
   * @returns One that is wanted, if any is.
   */
  choose(
    ring: readonly Backend[],
    isWanted: (backend: Backend) => boolean,
  ): Backend | undefined;
  /** Whose turn is next, where there are turns; another process goes on there. */
  turn?: number;
}

/** The strategies by the names that policies have for them. */
export const STRATEGIES: Readonly<
  Record<Balance, (random: Random) => BalancerStrategy>
> = {
  "round-robin": (random) => new RoundRobin(random),
  "least-connections": (random) => new LeastConnections(random),
  weighted: () => new Weighted(),
  /** Each backend is equally likely. */
  random: (random) => ({
    choose(ring, isWanted) {
      const wanted = ring.filter(isWanted);
      return wanted[Math.floor(random() * wanted.length)];
    },
  }),
};

/**
 * One after the other, in the order of the catalog.
 *
 * kube-proxy begins with the first again whenever the list changes, and later
 * shuffled the list so that many proxies do not all begin with the same one.
 * Beginning anywhere does the same, and the order stays what people wrote.
 */
class RoundRobin implements BalancerStrategy {
  turn = 0;

  constructor(private readonly random: Random) {}

  reset(ring: readonly Backend[]): void {
    this.turn = Math.floor(this.random() * ring.length);
  }

  choose(
    ring: readonly Backend[],
    isWanted: (backend: Backend) => boolean,
  ): Backend | undefined {
    const { length } = ring;
    for (let step = 0; step < length; step++) {
      const index = (this.turn + step) % length;
      const backend = ring[index]!;
      if (!isWanted(backend)) continue;
      this.turn = (index + 1) % length;
      return backend;
    }
    return undefined;
  }
}

/**
 * The one with the fewest open connections for its weight.
 *
 * Those that have as few take turns: without that the first would get every
 * connection that ends before the next one begins.
 */
class LeastConnections extends RoundRobin {
  override choose(
    ring: readonly Backend[],
    isWanted: (backend: Backend) => boolean,
  ): Backend | undefined {
    let least = Infinity;
    for (const backend of ring) {
      if (isWanted(backend)) least = Math.min(least, loadOf(backend));
    }
    return super.choose(
      ring,
      (backend) => isWanted(backend) && loadOf(backend) === least,
    );
  }
}

function loadOf({ connections, target }: Backend): number {
  return connections / target.endpoint.weight;
}

/**
 * Each backend in proportion to its weight, spread as evenly as possible.
 *
 * nginx's smooth weighted round robin: at each choice every backend gains its
 * weight, and the richest is chosen and pays the sum of all weights. Weights 5,
 * 1 and 1 give a a b a c a a, and not five times a in a row.
 */
class Weighted implements BalancerStrategy {
  /** The balance of each backend; kept over updates for backends that stay. */
  #credits = new Map<Backend, number>();

  reset(ring: readonly Backend[]): void {
    const before = this.#credits;
    this.#credits = new Map(
      ring.map((backend) => [backend, before.get(backend) ?? 0]),
    );
  }

  choose(
    _ring: readonly Backend[],
    isWanted: (backend: Backend) => boolean,
  ): Backend | undefined {
    let best: Backend | undefined;
    let bestCredit = -Infinity;
    let gained = 0;
    for (const [backend, credit] of this.#credits) {
      if (!isWanted(backend)) continue;
      const { weight } = backend.target.endpoint;
      gained += weight;
      const now = credit + weight;
      this.#credits.set(backend, now);
      if (now <= bestCredit) continue;
      best = backend;
      bestCredit = now;
    }
    if (best !== undefined) this.#credits.set(best, bestCredit - gained);
    return best;
  }
}

/**
 * Limit on clients remembered for one port of a service. A client can come from
 * many addresses; the client not seen for longest is forgotten, and may only
 * get another backend next time.
 */
export const AFFINITY_CLIENTS_MAX = 16_384;

interface Visit {
  readonly backend: Backend;
  atMs: number;
}

/**
 * The time to live begins again with each visit, as in kube-proxy. Entries are
 * in the order of their last visit, so the expired ones are in front and no
 * timer is needed.
 */
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

  /** The former backend of `client`; the call counts as a visit. */
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

  /** Remembers that `client` was sent to `backend`. */
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
