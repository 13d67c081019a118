/**
 * The resources of a client of xDS by kind, across streams (wanted, held,
 * awaited, known not to exist), and the resources that it holds of all kinds
 * together, with what they need, within limits.
 *
 * A resource is held as long as it is wanted: because the owner named it, or
 * because another held resource needs it. Each addition and removal is reported
 * as a change; `ads_client.ts` decides when to ask and what to answer.
 *
 * @module
 */

import { sameBytes } from "../../proto/bytes/byte_arrays.ts";
import type { ReceivedResource } from "../../proto/xds/discovery.ts";
import { type ResourceKind, TYPE_URLS } from "../../proto/xds/resource.ts";
import { type AdsSubscription, WantedNames } from "./subscription.ts";

/** Of all kinds together: twice what a catalog may have of each. */
export const HELD_MAX = 200_000;

/** Bytes of all that is held; some five times what a full catalog has. */
export const HELD_BYTES_MAX: number = 256 * 1024 * 1024;

/** How resources are read, and how many may be held. */
export interface HeldResourcesOptions<T> {
  readonly read: ResourceReader<T>;
  /** {@linkcode HELD_MAX} unless given. */
  readonly heldMax?: number;
  /** {@linkcode HELD_BYTES_MAX} unless given. */
  readonly heldBytesMax?: number;
}

export class HeldResources<T> {
  #bytes = 0;

  constructor(
    private readonly kinds: Readonly<Record<ResourceKind, AdsKind<T>>>,
    private readonly options: HeldResourcesOptions<T>,
  ) {}

  /**
   * Holds a received resource, if it is wanted and can be used.
   *
   * @returns What is wrong with it; the resource before stays then.
   */
  take(
    state: AdsKind<T>,
    resource: ReceivedResource,
    changes: AdsChange<T>[],
  ): string | undefined {
    const { name, version, value } = resource;
    // Maybe it was wanted when the response left.
    if (!state.wanted.has(name)) return undefined;
    const before = state.held.get(name);
    let usable: UsableResource<T>;
    try {
      // Without content it is a sign of life.
      const isOld = before !== undefined &&
        (value.length === 0 || sameBytes(before.value, value));
      usable = isOld ? before : this.#read(state, resource);
    } catch (error) {
      if (!(error instanceof RefusedResource)) throw error;
      // It exists, even if it cannot be used.
      state.awaited.delete(name);
      return error.message;
    }
    state.awaited.delete(name);
    state.absent.delete(name);
    const { content, needs } = usable;
    // A view of its response would keep all of that.
    const own = usable === before ? before.value : value.slice();
    const held = { name, version, value: own, content, needs };
    state.held.set(name, held);
    this.#bytes += own.length - (before?.value.length ?? 0);
    if (usable === before) return undefined;
    changes.push({ kind: state.kind, name, held });
    this.#exchangeNeeds(before?.needs ?? [], needs, changes);
    return undefined;
  }

  /** A resource is removed, or does not exist. */
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

  /** Drops resources that are not wanted any more. */
  forgetUnwanted(kind: ResourceKind, changes: AdsChange<T>[]): void {
    const { held, absent, awaited } = this.kinds[kind];
    for (const name of [...held.keys(), ...absent, ...awaited.keys()]) {
      this.#forgetIfUnwanted(kind, name, changes);
    }
  }

  /** @throws {RefusedResource} */
  #read(state: AdsKind<T>, resource: ReceivedResource): UsableResource<T> {
    const { kind, held, typeUrl } = state;
    if (resource.name === "") throw new RefusedResource("it has no name");
    if (resource.typeUrl !== typeUrl) {
      throw new RefusedResource(
        `its type is ${resource.typeUrl}, wanted ${typeUrl}`,
      );
    }
    const { heldMax = HELD_MAX, heldBytesMax = HELD_BYTES_MAX } = this.options;
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
    return this.options.read(kind, resource);
  }

  get #count(): number {
    return Object.values(this.kinds)
      .reduce((sum, { held }) => sum + held.size, 0);
  }

  #exchangeNeeds(
    before: Held<T>["needs"],
    after: Held<T>["needs"],
    changes: AdsChange<T>[],
  ): void {
    for (const { kind, name } of after) this.kinds[kind].wanted.need(name);
    for (const { kind, name } of before) {
      this.kinds[kind].wanted.release(name);
      this.#forgetIfUnwanted(kind, name, changes);
    }
  }

  #forgetIfUnwanted(
    kind: ResourceKind,
    name: string,
    changes: AdsChange<T>[],
  ): void {
    const state = this.kinds[kind];
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
  }
}

/** Another resource without which one is of no use. */
export interface Need {
  readonly kind: ResourceKind;
  readonly name: string;
}

/** The content of a resource, and what it needs. */
export interface UsableResource<T> {
  readonly content: T;
  /** Asked for as long as the resource is held. */
  readonly needs: readonly Need[];
}

/** A resource that cannot be used. The message goes on after its name. */
export class RefusedResource extends Error {
  override readonly name = "RefusedResource";
}

/**
 * Reads a resource, and decides whether it can be used.
 *
 * @throws {RefusedResource} It is refused alone; the resource before stays.
 */
export type ResourceReader<T> = (
  kind: ResourceKind,
  resource: ReceivedResource,
) => UsableResource<T>;

/** A resource that a client has. */
export interface Held<T> {
  readonly name: string;
  readonly version: string;
  /** The message, encoded. */
  readonly value: Uint8Array;
  readonly content: T;
  readonly needs: readonly Need[];
}

/** A resource that changed. */
export interface AdsChange<T> {
  readonly kind: ResourceKind;
  readonly name: string;
  /** Absent: it is removed, or does not exist. */
  readonly held?: Held<T>;
}

/** What can be seen of a kind from outside. Plain data. */
export interface AdsKindStatus {
  readonly isWildcard: boolean;
  /** Names that are asked for. */
  readonly wanted: number;
  readonly held: number;
  /** Requested, and not received yet. */
  readonly awaited: number;
  /** Requested, and known not to exist. */
  readonly absent: readonly string[];
  /** Of the last accepted response; in Delta the server's system version. */
  readonly version: string;
  readonly responses: number;
  readonly accepted: number;
  readonly refused: number;
  /** The last refusal, until a later response of the kind was accepted. */
  readonly refusal?: AdsRefusal | undefined;
}

/** Why a response was refused. */
export interface AdsRefusal {
  readonly message: string;
  /** Of the response. */
  readonly version: string;
  /** On the client's clock. */
  readonly atMs: number;
}

/** Absent names that are shown to people. */
const ABSENT_SHOWN_MAX = 100;

/**
 * Versions in the first request of a stream; our servers read requests of 2 MiB.
 */
export const ANNOUNCED_MAX = 5_000;

export class AdsKind<T> {
  readonly wanted = new WantedNames();
  readonly held = new Map<string, Held<T>>();
  readonly absent = new Set<string>();
  /**
   * When each is given up, soonest first: all are awaited equally long. A held
   * resource is awaited when the request did not have its version.
   */
  readonly awaited = new Map<string, number>();
  /** Names that are awaited on this stream, if they are unknown. */
  lookedAt: ReadonlySet<string> | undefined;
  /** The request had no versions, and the server has not begun to answer it. */
  isUnconfirmed = false;
  /** On the stream that is open. */
  subscription: AdsSubscription | undefined;
  /** Of the last accepted response, on any stream. */
  acceptedVersion = "";
  responses = 0;
  accepted = 0;
  refused = 0;
  refusal: AdsRefusal | undefined;

  constructor(readonly kind: ResourceKind) {}

  get typeUrl(): string {
    return TYPE_URLS[this.kind];
  }

  /** Whether each wanted name was received, or does not exist. */
  get isSynced(): boolean {
    const { wanted, held, absent } = this;
    if (wanted.isWildcard && this.responses === 0) return false;
    for (const name of wanted.names) {
      if (!held.has(name) && !absent.has(name)) return false;
    }
    return true;
  }

  /**
   * Whether there are too many versions for a request: the server sends everything
   * then, and what it does not send is gone.
   */
  get isUnannounced(): boolean {
    return this.held.size > ANNOUNCED_MAX;
  }

  /** Versions of what is held, by name, for a server to compare (Delta). */
  heldVersions(): ReadonlyMap<string, string> {
    const versions = new Map<string, string>();
    if (this.isUnannounced) return versions;
    for (const { name, version } of this.held.values()) {
      versions.set(name, version);
    }
    return versions;
  }

  get status(): AdsKindStatus {
    const { refusal } = this;
    return {
      isWildcard: this.wanted.isWildcard,
      wanted: this.wanted.names.size,
      held: this.held.size,
      awaited: this.awaited.size,
      absent: [...this.absent].slice(0, ABSENT_SHOWN_MAX),
      version: this.acceptedVersion,
      responses: this.responses,
      accepted: this.accepted,
      refused: this.refused,
      refusal,
    };
  }
}
