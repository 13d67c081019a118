/**
 * What a client of xDS holds, of all kinds together: resources that were taken,
 * and what they need, within limits.
 *
 * A resource is held as long as it is wanted: because somebody said so, or
 * another one that is held needs it. Whatever is held or let go of is told as a
 * change; when to ask and what to answer is for `ads_client.ts`.
 *
 * @module
 */

import { sameBytes } from "../../proto/bytes/same_bytes.ts";
import type { ReceivedResource } from "../../proto/xds/discovery.ts";
import type { ResourceKind } from "../../proto/xds/resource.ts";
import type { AdsKind } from "./ads_kind.ts";
import {
  type AdsChange,
  type Held,
  RefusedResource,
  type ResourceReader,
  type UsableResource,
} from "./received.ts";

/** Of all kinds together: twice what a catalog may have of each. */
export const HELD_MAX = 200_000;

/** Bytes of all that is held; some five times what a full catalog has. */
export const HELD_BYTES_MAX: number = 256 * 1024 * 1024;

/** By what resources are taken. */
export interface HeldResourcesOptions<T> {
  readonly judge: ResourceReader<T>;
  /** {@linkcode HELD_MAX} unless given. */
  readonly heldMax?: number;
  /** {@linkcode HELD_BYTES_MAX} unless given. */
  readonly heldBytesMax?: number;
}

/** See the module description. */
export class HeldResources<T> {
  readonly #kinds: Readonly<Record<ResourceKind, AdsKind<T>>>;
  readonly #options: HeldResourcesOptions<T>;
  #bytes = 0;

  constructor(
    kinds: Readonly<Record<ResourceKind, AdsKind<T>>>,
    options: HeldResourcesOptions<T>,
  ) {
    this.#kinds = kinds;
    this.#options = options;
  }

  /**
   * Takes what a server says, if it is wanted and can be used.
   *
   * @returns What is wrong with it; what was held by its name stays then.
   */
  take(
    state: AdsKind<T>,
    resource: ReceivedResource,
    changes: AdsChange<T>[],
  ): string | undefined {
    const { name, version, value } = resource;
    // Asked for when the response left, perhaps, and not any more.
    if (!state.wanted.has(name)) return undefined;
    const before = state.held.get(name);
    let judged: UsableResource<T>;
    try {
      // Without content it is a sign of life.
      const isOld = before !== undefined &&
        (value.length === 0 || sameBytes(before.value, value));
      judged = isOld ? before : this.#judge(state, resource);
    } catch (error) {
      if (!(error instanceof RefusedResource)) throw error;
      // It exists, whatever it is like.
      state.awaited.delete(name);
      return error.message;
    }
    state.awaited.delete(name);
    state.absent.delete(name);
    state.recalled.delete(name);
    const { content, needs } = judged;
    // A view of its response would keep all of that.
    const own = judged === before ? before.value : value.slice();
    const held = { name, version, value: own, content, needs };
    state.held.set(name, held);
    this.#bytes += own.length - (before?.value.length ?? 0);
    if (judged === before) return undefined;
    changes.push({ kind: state.kind, name, held });
    this.#exchangeNeeds(before?.needs ?? [], needs, changes);
    return undefined;
  }

  /** A resource is gone, or was found not to exist. */
  remove(state: AdsKind<T>, name: string, changes: AdsChange<T>[]): void {
    const held = state.held.get(name);
    const isNamed = state.wanted.names.has(name);
    const wasAwaited = state.awaited.delete(name);
    if (isNamed) state.absent.add(name);
    if (held === undefined && !wasAwaited) return;
    this.#forget(state, name);
    changes.push({ kind: state.kind, name });
    if (held !== undefined) this.#exchangeNeeds(held.needs, [], changes);
  }

  /** Lets go of what is not wanted any more. */
  forgetUnwanted(kind: ResourceKind, changes: AdsChange<T>[]): void {
    const { held, absent, awaited } = this.#kinds[kind];
    for (const name of [...held.keys(), ...absent, ...awaited.keys()]) {
      this.#forgetIfUnwanted(kind, name, changes);
    }
  }

  /** @throws {RefusedResource} */
  #judge(state: AdsKind<T>, resource: ReceivedResource): UsableResource<T> {
    const { kind, held, typeUrl } = state;
    if (resource.name === "") throw new RefusedResource("it has no name");
    if (resource.typeUrl !== typeUrl) {
      throw new RefusedResource(
        `its type is ${resource.typeUrl}, wanted ${typeUrl}`,
      );
    }
    const { heldMax = HELD_MAX, heldBytesMax = HELD_BYTES_MAX } = this.#options;
    const before = held.get(resource.name);
    if (before === undefined && this.#count >= heldMax) {
      throw new RefusedResource(`there are ${heldMax} resources already`);
    }
    const more = resource.value.length - (before?.value.length ?? 0);
    if (this.#bytes + more > heldBytesMax) {
      throw new RefusedResource(
        `it has ${resource.value.length} bytes, and all that is held has ` +
          `${this.#bytes} already, of ${heldBytesMax}`,
      );
    }
    return this.#options.judge(kind, resource);
  }

  get #count(): number {
    return Object.values(this.#kinds)
      .reduce((sum, { held }) => sum + held.size, 0);
  }

  #exchangeNeeds(
    before: Held<T>["needs"],
    after: Held<T>["needs"],
    changes: AdsChange<T>[],
  ): void {
    for (const { kind, name } of after) this.#kinds[kind].wanted.need(name);
    for (const { kind, name } of before) {
      this.#kinds[kind].wanted.release(name);
      this.#forgetIfUnwanted(kind, name, changes);
    }
  }

  #forgetIfUnwanted(
    kind: ResourceKind,
    name: string,
    changes: AdsChange<T>[],
  ): void {
    const state = this.#kinds[kind];
    if (state.wanted.has(name)) return;
    const held = state.held.get(name);
    state.absent.delete(name);
    state.awaited.delete(name);
    if (held === undefined) return;
    this.#forget(state, name);
    changes.push({ kind, name });
    this.#exchangeNeeds(held.needs, [], changes);
  }

  #forget(state: AdsKind<T>, name: string): void {
    this.#bytes -= state.held.get(name)?.value.length ?? 0;
    state.held.delete(name);
    state.recalled.delete(name);
  }
}
