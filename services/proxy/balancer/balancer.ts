/**
 * Chooses a backend for each new connection or session of one service's port.
 *
 * The catalog says which backends are usable. Of those, backends that are
 * ejected or ill, or of an address family that this machine lacks, are left out
 * unless all are. Of the rest, near ones come first if the service wants that;
 * among equals the service's strategy chooses. A client with affinity gets its
 * former backend as long as that is not left out. When several processes serve
 * one port, no process knows the others' clients: then the client's address and
 * the usable backends alone decide.
 *
 * @module
 */

import {
  type Affinity,
  type Balance,
  type Ejection,
  isNear,
  NO_AFFINITY,
} from "../../catalog/model/model.ts";
import {
  type Target,
  targetKeyOf,
  usableTargets,
} from "../../catalog/snapshot.ts";
import { fnv1a } from "../../../proto/bytes/fnv1a.ts";
import type { Clock } from "../../../proto/sync/clock.ts";
import {
  AffinityTable,
  type BalancerStrategy,
  type Random,
  STRATEGIES,
} from "./strategies.ts";
import { Backend, EJECTION } from "./backend.ts";
import type { Families, Family } from "./families.ts";

/** A service's settings for its balancer. */
export interface BalancerPolicy {
  readonly balance: Balance;
  readonly affinity: Affinity;
  /** Endpoints of this zone first; absent: all are the same. */
  readonly zone?: string | undefined;
  /** Those on this node before them. */
  readonly node?: string | undefined;
  /** Absent: {@linkcode EJECTION}. */
  readonly ejection?: Ejection;
}

/** A part of the balancer's knowledge about its clients. */
export interface BalancerMemory {
  /** The key of the backend whose turn it is. */
  readonly next?: string | undefined;
  /**
   * The client with the key of its backend, and the milliseconds since its last
   * visit.
   */
  readonly clients: readonly (readonly [string, string, number])[];
}

/**
 * Clients in one part: a packet has 16 KiB, and the key of a backend may be
 * long.
 */
const MEMORY_CLIENTS_MAX = 32;

/** The longest IP address, with a zone. */
const CLIENT_LENGTH_MAX = 64;

/** What a balancer takes from outside. */
export interface BalancerOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Other processes serve the same clients, and have to choose the same. */
  readonly isShared?: boolean | undefined;
  /** Of this machine; absent: it has all. */
  readonly families?: Pick<Families, "lacking"> | undefined;
}

const DEFAULT_POLICY: BalancerPolicy = {
  balance: "round-robin",
  affinity: NO_AFFINITY,
};

const NOBODY: ReadonlySet<Backend> = new Set();

export class Balancer {
  #policy = DEFAULT_POLICY;
  #strategy: BalancerStrategy;
  #affinity: AffinityTable | undefined;
  /** By {@linkcode Backend.key}. */
  readonly #backends = new Map<string, Backend>();
  #usable: readonly Backend[] = [];
  /** Whether those are of both families, so that one may be done without. */
  #isMixed = false;

  constructor(private readonly options: BalancerOptions) {
    this.#strategy = STRATEGIES[DEFAULT_POLICY.balance](options.random);
  }

  /** All that the catalog names, usable or not, in its order. */
  get backends(): Iterable<Backend> {
    return this.#backends.values();
  }

  /** How many there are to choose from. */
  get usableCount(): number {
    return this.#usable.length;
  }

  /**
   * Remembers the backend of each client; absent: clients are not remembered.
   */
  get affinityClients(): number | undefined {
    return this.options.isShared ? undefined : this.#affinity?.size ?? 0;
  }

  get policy(): BalancerPolicy {
    return this.#policy;
  }

  /**
   * Takes another policy; clients with affinity keep it if the policy still has
   * it.
   */
  configure(policy: BalancerPolicy): void {
    if (policy.balance !== this.#policy.balance) {
      this.#strategy = STRATEGIES[policy.balance](this.options.random);
      this.#strategy.reset?.(this.#usable);
    }
    this.#policy = policy;
    const { affinity } = policy;
    const hasTable = affinity.kind !== "none" && !this.options.isShared;
    if (!hasTable) this.#affinity = undefined;
    else {
      this.#affinity ??= new AffinityTable(this.options.clock, affinity.ttlMs);
      this.#affinity.ttlMs = affinity.ttlMs;
    }
  }

  /**
   * The catalog has these targets now, and no others.
   *
   * @returns Backends that were usable and are not any more: UDP sessions with
   *   them have to move, connections may go on.
   */
  update(targets: readonly Target[]): readonly Backend[] {
    const before = this.#usable;
    const all = targets.map((target) => this.#keep(target));
    const named = new Set(all);
    for (const [key, backend] of this.#backends) {
      if (!named.has(backend)) this.#backends.delete(key);
    }
    const now = usableTargets(targets)
      .map((target) => this.#backends.get(targetKeyOf(target))!);
    const isNow = new Set(now);
    const left = new Set(before.filter((backend) => !isNow.has(backend)));
    for (const backend of left) backend.isUsable = false;
    for (const backend of now) backend.isUsable = true;
    // Only another order is no news: upstream compares sorted lists, too.
    if (left.size > 0 || now.length !== before.length) {
      this.#usable = now;
      const families = new Set(now.map(({ family }) => family));
      this.#isMixed = families.has(4) && families.has(6);
      this.#strategy.reset?.(now);
      this.#affinity?.forget(left);
    }
    return [...left];
  }

  /**
   * The backend for a new connection or session.
   *
   * @param client The client's IP address.
   * @param tried Backends that failed this client just now. If there are any,
   *   affinity with another one is given up, too (`sessionAffinityReset`).
   * @returns `undefined` when there is no backend, or all were tried.
   */
  pick(
    client: string,
    tried: ReadonlySet<Backend> = NOBODY,
  ): Backend | undefined {
    const nowMs = this.options.clock.now();
    const lacking = this.#lacking;
    const isIn = (backend: Backend) =>
      !tried.has(backend) && backend.health !== "ill" &&
      !backend.isEjected(nowMs) &&
      (lacking === undefined || backend.family !== lacking);
    if (tried.size === 0) {
      const same = this.#affinity?.visit(client);
      if (same !== undefined && isIn(same)) return same;
    }
    const byClient = this.options.isShared === true &&
      this.#policy.affinity.kind !== "none";
    const choose = (isIn: (backend: Backend) => boolean) =>
      byClient
        ? this.#ofClient(client, isIn)
        : this.#strategy.choose(this.#usable, isIn);
    const chosen = this.#nearest(isIn, choose) ?? choose(isIn) ??
      // All are left out, but trying one is better than refusing the client.
      choose((backend) => !tried.has(backend));
    if (chosen !== undefined) this.#affinity?.set(client, chosen);
    return chosen;
  }

  /** What another process goes on with, in parts that fit into a packet. */
  *memory(): Generator<BalancerMemory> {
    const next = this.#usable[this.#strategy.turn ?? -1]?.key;
    let clients: (readonly [string, string, number])[] = [];
    for (const [client, { key }, agoMs] of this.#affinity?.visits() ?? []) {
      clients.push([client, key, Math.round(agoMs)]);
      if (clients.length < MEMORY_CLIENTS_MAX) continue;
      yield { clients };
      clients = [];
    }
    yield { clients, next };
  }

  /**
   * Takes over the knowledge of another process; nonsense in it is left out.
   */
  recall({ next, clients }: Readonly<Record<string, unknown>>): void {
    const turn = this.#usable.findIndex(({ key }) => key === next);
    if (turn >= 0 && this.#strategy.turn !== undefined) {
      this.#strategy.turn = turn;
    }
    if (!Array.isArray(clients)) return;
    for (const one of clients) {
      const [client, key, agoMs] = Array.isArray(one) ? one : [];
      const backend = this.#backends.get(key);
      const isSensible = backend?.isUsable === true &&
        typeof client === "string" && client.length <= CLIENT_LENGTH_MAX &&
        Number.isFinite(agoMs) && agoMs >= 0;
      if (isSensible) this.#affinity?.set(client, backend, agoMs);
    }
  }

  /**
   * Whether it is left out because this machine has addresses of the other
   * family only.
   */
  isBeyond({ family }: Backend): boolean {
    return family !== undefined && family === this.#lacking;
  }

  get #lacking(): Family | undefined {
    return this.#isMixed ? this.options.families?.lacking : undefined;
  }

  /** Backends on this node, or else in its zone, if the service wants that. */
  #nearest(
    isIn: (backend: Backend) => boolean,
    choose: (isIn: (backend: Backend) => boolean) => Backend | undefined,
  ): Backend | undefined {
    const { node, zone } = this.#policy;
    const here = node === undefined ? undefined : choose(
      (backend) => isIn(backend) && backend.target.endpoint.node === node,
    );
    if (here !== undefined || zone === undefined) return here;
    return choose(
      (backend) => isIn(backend) && isNear(backend.target.endpoint, zone),
    );
  }

  /**
   * The same in every process that knows the same backends (rendezvous hashing):
   * one more or less moves only its own clients.
   */
  #ofClient(
    client: string,
    isIn: (backend: Backend) => boolean,
  ): Backend | undefined {
    let best: Backend | undefined;
    let most = -1;
    for (const backend of this.#usable) {
      if (!isIn(backend)) continue;
      const score = spread(fnv1a(`${client} ${backend.key}`));
      if (score <= most) continue;
      best = backend;
      most = score;
    }
    return best;
  }

  /**
   * Backends that are ill while another one is well and usable: their clients
   * should move, if they can.
   */
  get deserted(): readonly Backend[] {
    const nowMs = this.options.clock.now();
    const isAnyWell = this.#usable.some((backend) =>
      backend.health === "well" && !backend.isEjected(nowMs)
    );
    return isAnyWell
      ? this.#usable.filter(({ health }) => health === "ill")
      : [];
  }

  /** A dial to `backend` failed. @returns Whether that ejects it. */
  failed(backend: Backend, problem: string): boolean {
    const { ejection = EJECTION } = this.#policy;
    return backend.failed(problem, this.options.clock.now(), ejection);
  }

  /** How long `backend` will be left out yet; 0: it is not ejected. */
  ejectedForMs({ ejectedUntilMs }: Backend): number {
    return Math.max(0, ejectedUntilMs - this.options.clock.now());
  }

  #keep(target: Target): Backend {
    const key = targetKeyOf(target);
    let backend = this.#backends.get(key);
    if (backend === undefined) {
      this.#backends.set(key, backend = new Backend(target));
    }
    backend.target = target;
    return backend;
  }
}

/** Names that differ in their end alone get numbers that do not (MurmurHash3). */
function spread(hash: number): number {
  let mixed = Math.imul(hash ^ hash >>> 16, 0x85ebca6b);
  mixed = Math.imul(mixed ^ mixed >>> 13, 0xc2b2ae35);
  return (mixed ^ mixed >>> 16) >>> 0;
}
