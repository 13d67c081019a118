/**
 * Resources that are gone, and that a client keeps until nothing that it was
 * told leads to them any more: make before break.
 *
 * A cluster goes after the listeners and routes that led to it, which the client
 * must have taken; what is in a resource is not known here, so it waits
 * for all of them to be as they were when the cluster went, or later. A client
 * that does not take that keeps it for {@linkcode REMOVAL_GRACE_MS}.
 *
 * @module
 */

import type { Resource, ResourceKind } from "../../../proto/xds/resource.ts";

/** A client that refuses, or says nothing, keeps what is gone for so long. */
export const REMOVAL_GRACE_MS = 30_000;

/**
 * gRPC clients acknowledge routes before they go by them (C-core: at once, one
 * call of 31,594 went to a cluster that was removed behind that): what nothing
 * leads to any more stays so much longer with them.
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
};

/** What is known of what a client has. */
export type Knowledge = "exact" | "good" | "refused";

interface Held {
  readonly resource: Resource;
  /**
   * - `exact`: the client has that.
   * - `good`: it took that, and may have applied something else that it refused.
   * - `refused`: it refused that, and may have applied it.
   */
  readonly knowledge: Knowledge;
  /** Of the view that was the first without it; Infinity when it is back. */
  readonly generation: number;
  readonly sinceMs: number;
  /** When the client had taken all that does not lead to it; else Infinity. */
  clearedMs: number;
}

/** See the module description; of one kind on one stream. */
export class HeldRemovals {
  readonly #held = new Map<string, Held>();
  readonly #patienceMs: number;

  /** @param patienceMs How long it stays when nothing leads to it any more. */
  constructor(patienceMs = 0) {
    this.#patienceMs = patienceMs;
  }

  get size(): number {
    return this.#held.size;
  }

  get(name: string): Resource | undefined {
    return this.#held.get(name)?.resource;
  }

  /** What the client has of a name; absent if nobody knows. */
  ackedOf(name: string): Resource | undefined {
    const held = this.#held.get(name);
    return held?.knowledge === "refused" ? undefined : held?.resource;
  }

  /** Whether the client has exactly this, so that it need not be told. */
  hasExactly({ name, version }: Resource): boolean {
    const held = this.#held.get(name);
    return held?.knowledge === "exact" && held.resource.version === version;
  }

  get resources(): readonly Resource[] {
    return [...this.#held.values()].map(({ resource }) => resource);
  }

  /** When the first is given up on; else Infinity. */
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
      clearedMs + this.#patienceMs,
    );
  }

  /** Nothing happens when it is held already. */
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
   * Something may be back: it stays known as what the client has, until it is
   * told. Or it may be gone once more.
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

  /** The client has something else, or nothing. */
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
   * Names that may go now, with what the client has of each, if that is known.
   *
   * @param clearedTo The generation up to which the parents' removals were
   *   taken.
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
