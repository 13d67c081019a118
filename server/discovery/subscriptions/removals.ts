/**
 * Resources that are gone, and that a client keeps until nothing that it was
 * told leads to them any more: make before break.
 *
 * A cluster goes after the listeners and routes that led to it, which the client
 * must have acknowledged; what is in a resource is not known here, so it waits
 * for all of them to be as they were when the cluster went, or later. A client
 * that does not acknowledge keeps it for {@linkcode REMOVAL_GRACE_MS}.
 *
 * @module
 */

import type { Resource, ResourceKind } from "../../../proto/xds/resource.ts";

/** A client that refuses, or says nothing, keeps what is gone for so long. */
export const REMOVAL_GRACE_MS = 30_000;

/** By kind: the kinds whose resources lead to it. */
export const PARENTS: Readonly<
  Record<ResourceKind, readonly ResourceKind[]>
> = {
  cluster: ["listener", "route"],
  endpoints: ["cluster"],
  listener: [],
  route: ["listener"],
};

interface Held {
  readonly resource: Resource;
  /** The generation of the view that was the first without it. */
  readonly generation: number;
  readonly sinceMs: number;
}

/** See the module description; of one kind on one stream. */
export class HeldRemovals {
  readonly #held = new Map<string, Held>();

  get size(): number {
    return this.#held.size;
  }

  get(name: string): Resource | undefined {
    return this.#held.get(name)?.resource;
  }

  get resources(): readonly Resource[] {
    return [...this.#held.values()].map(({ resource }) => resource);
  }

  /** When the first is given up on; else Infinity. */
  get dueMs(): number {
    let dueMs = Infinity;
    for (const { sinceMs } of this.#held.values()) {
      dueMs = Math.min(dueMs, sinceMs + REMOVAL_GRACE_MS);
    }
    return dueMs;
  }

  /** Nothing happens when it is held already. */
  hold(resource: Resource, generation: number, nowMs: number): void {
    const { name } = resource;
    if (this.#held.has(name)) return;
    this.#held.set(name, { resource, generation, sinceMs: nowMs });
  }

  /** It is back, or nobody asks for it any more. */
  drop(name: string): void {
    this.#held.delete(name);
  }

  dropAllBut(keep: (name: string) => boolean): void {
    for (const name of this.#held.keys()) {
      if (!keep(name)) this.#held.delete(name);
    }
  }

  /**
   * Names that may go now.
   *
   * @param clearedTo The generation up to which the parents' removals were
   *   acknowledged.
   */
  release(clearedTo: number, nowMs: number): readonly string[] {
    const released: string[] = [];
    for (const [name, { generation, sinceMs }] of this.#held) {
      const isDue = generation <= clearedTo ||
        nowMs >= sinceMs + REMOVAL_GRACE_MS;
      if (!isDue) continue;
      this.#held.delete(name);
      released.push(name);
    }
    return released;
  }
}
