/**
 * One kind of resources as a client has them, across streams: wanted, held,
 * awaited and known not to exist.
 *
 * @module
 */

import { type ResourceKind, TYPE_URLS } from "../../proto/xds/resource.ts";
import {
  type AdsSubscription,
  type SubscribedKind,
  WantedNames,
} from "./subscription.ts";
import type { ReceivedResource } from "../../proto/xds/discovery.ts";

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
  readonly refusal?: AdsRefusal;
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

export class AdsKind<T> implements SubscribedKind {
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
      ...refusal === undefined ? {} : { refusal },
    };
  }
}
