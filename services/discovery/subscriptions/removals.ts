/**
 * Removed resources that a client keeps until nothing that it was sent leads to
 * them any more: make before break.
 *
 * A cluster goes after the listeners and routes that led to it, once the client
 * has acknowledged their removal. The content of resources is not known here, so
 * the cluster waits for all of them to be as they were when it was removed, or
 * later. A client that does not acknowledge that keeps the cluster for
 * {@linkcode REMOVAL_GRACE_MS}.
 *
 * @module
 */

import type { Resource, ResourceKind } from "../../../proto/xds/resource.ts";

/** A client that refuses, or does not answer, keeps removed resources so long. */
export const REMOVAL_GRACE_MS = 30_000;

/**
 * gRPC clients acknowledge routes before they use them (C-core: at once, one call
 * of 31,594 went to a cluster that was removed behind that): they keep a removed
 * resource so much longer after nothing leads to it any more.
 */
export const REMOVAL_PATIENCE_MS = 1_000;

/** By kind: the kinds whose resources lead to it. */
export const PARENTS: Readonly<
  Record<ResourceKind, readonly ResourceKind[]>
> = {
  cluster: ["listener", "route"],
  endpoints: ["cluster"],
  listener: [],
  route: ["listener"],
  service: [],
};

/** How well the server knows what a client has. */
export type Knowledge = "exact" | "good" | "refused";

interface Held {
  readonly resource: Resource;
  /**
   * - `exact`: the client has that.
   * - `good`: it acknowledged that, and may use something else that it refused.
   * - `refused`: it refused that, and may use it.
   */
  readonly knowledge: Knowledge;
  /** The generation of the first view without it; Infinity when it is back. */
  readonly generation: number;
  readonly sinceMs: number;
  /** When the client had acknowledged that nothing leads to it; else Infinity. */
  clearedMs: number;
}

/** See the module description; of one kind on one stream. */
export class HeldRemovals {
  readonly #held = new Map<string, Held>();

  /** @param patienceMs How long a resource stays that nothing leads to. */
  constructor(private readonly patienceMs: number) {}

  get size(): number {
    return this.#held.size;
  }

  get(name: string): Resource | undefined {
    return this.#held.get(name)?.resource;
  }

  /** What the client has of a name; absent if unknown. */
  ackedOf(name: string): Resource | undefined {
    const held = this.#held.get(name);
    return held?.knowledge === "refused" ? undefined : held?.resource;
  }

  /** Whether the client has exactly this, so that it need not be sent. */
  hasExactly({ name, version }: Resource): boolean {
    const held = this.#held.get(name);
    return held?.knowledge === "exact" && held.resource.version === version;
  }

  get resources(): readonly Resource[] {
    return [...this.#held.values()].map(({ resource }) => resource);
  }

  /** When the first removal is due; else Infinity. */
  get dueMs(): number {
    let dueMs = Infinity;
    for (const held of this.#held.values()) {
      dueMs = Math.min(dueMs, this.#dueMsOf(held));
    }
    return dueMs;
  }

  #dueMsOf({ sinceMs, clearedMs }: Held): number {
    return Math.min(
      sinceMs + REMOVAL_GRACE_MS,
      clearedMs + this.patienceMs,
    );
  }

  /** Does nothing when the name is held already. */
  hold(
    resource: Resource,
    knowledge: Knowledge,
    generation: number,
    nowMs: number,
  ): void {
    const { name } = resource;
    if (this.#held.has(name)) return;
    this.#held.set(name, {
      ...{ resource, knowledge, generation },
      ...{ sinceMs: nowMs, clearedMs: Infinity },
    });
  }

  /**
   * A removed resource may be back: it counts as what the client has until the
   * new content is sent. Or it may be removed a second time.
   */
  look(
    isThere: (name: string) => boolean,
    generation: number,
    nowMs: number,
  ): void {
    for (const [name, held] of this.#held) {
      const wasBack = held.generation === Infinity;
      if (isThere(name) === wasBack) continue;
      this.#held.set(name, {
        ...held,
        generation: wasBack ? generation : Infinity,
        sinceMs: wasBack ? nowMs : Infinity,
        clearedMs: Infinity,
      });
    }
  }

  /** The client has `resource` instead, or nothing. */
  exchange(name: string, resource: Resource | undefined): void {
    const held = this.#held.get(name);
    if (held === undefined) return;
    if (resource === undefined) this.#held.delete(name);
    else this.#held.set(name, { ...held, resource });
  }

  dropAllBut(keep: (name: string) => boolean): void {
    for (const name of this.#held.keys()) {
      if (!keep(name)) this.#held.delete(name);
    }
  }

  /**
   * Names whose removal is due, with what the client has of each, if known.
   *
   * @param clearedTo The generation up to which the client acknowledged all
   *   removals of parents.
   */
  release(
    clearedTo: number,
    nowMs: number,
  ): ReadonlyMap<string, Resource | undefined> {
    const released = new Map<string, Resource | undefined>();
    for (const [name, held] of this.#held) {
      const { generation, clearedMs } = held;
      if (generation === Infinity) continue;
      if (clearedMs === Infinity && generation <= clearedTo) {
        held.clearedMs = nowMs;
      }
      if (nowMs < this.#dueMsOf(held)) continue;
      released.set(name, this.ackedOf(name));
      this.#held.delete(name);
    }
    return released;
  }
}
