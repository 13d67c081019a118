/**
 * One kind of resources as a client has them, across streams: what is wanted,
 * held, waited for and known not to exist.
 *
 * @module
 */

import { type ResourceKind, TYPE_URLS } from "../../proto/xds/resource.ts";
import type { Held } from "./received.ts";
import type { AdsSubscription, SubscribedKind } from "./subscription.ts";
import { WantedNames } from "./wanted_names.ts";

/** What can be seen of a kind from outside. Plain data. */
export interface AdsKindStatus {
  readonly isWildcard: boolean;
  /** Names that are asked for. */
  readonly wanted: number;
  readonly held: number;
  /** Asked for, and nothing was heard yet. */
  readonly awaited: number;
  /** Asked for, and not there. */
  readonly absent: readonly string[];
  /** Of the last response that was accepted; of Delta what the server says. */
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

/** Names that do not exist and are told to people. */
const ABSENT_SHOWN_MAX = 100;

/**
 * Versions that are said in the first request of a stream; it has 2 MiB at most
 * for servers of ours.
 */
export const ANNOUNCED_MAX = 5_000;

/** See the module description. */
export class AdsKind<T> implements SubscribedKind {
  readonly wanted = new WantedNames();
  readonly held = new Map<string, Held<T>>();
  readonly absent = new Set<string>();
  /**
   * When each is given up, soonest first: all are waited for equally long. It is
   * held when the server was not told so, and says it again if it is there.
   */
  readonly awaited = new Map<string, number>();
  /** Read from disk: held, but the server's versions may mean other content. */
  readonly recalled = new Set<string>();
  /** Names whose answers are waited for on this stream, if they are not known. */
  lookedAt: ReadonlySet<string> | undefined;
  /** The server was not told what is held, and has not begun to say it. */
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

  /** Whether all that is wanted was heard of. */
  get isSynced(): boolean {
    const { wanted, held, absent } = this;
    if (wanted.isWildcard && this.responses === 0) return false;
    for (const name of wanted.names) {
      if (!held.has(name) && !absent.has(name)) return false;
    }
    return true;
  }

  /**
   * Whether there is too much to tell a server what is held: it says all then,
   * and what it does not say is gone.
   */
  get isUnannounced(): boolean {
    return this.held.size > ANNOUNCED_MAX;
  }

  heldVersions(): ReadonlyMap<string, string> {
    const versions = new Map<string, string>();
    if (this.isUnannounced) return versions;
    for (const { name, version } of this.held.values()) {
      // Of no content: the server sends it, or says that it is gone.
      versions.set(name, this.recalled.has(name) ? "" : version);
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
