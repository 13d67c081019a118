/**
 * A conduit that is listed while it lives. It is the {@linkcode ObservedConduit}
 * that every connection passes anyway, so being listed costs no read anything.
 *
 * @module
 */

import type { ConnectionFacts } from "../log/connection_log.ts";
import type { ConnectionId } from "../../proto/peer/connection_id.ts";
import type { Conduit, ConduitEnd } from "../../proto/transfer/conduit.ts";
import {
  type ConduitObserver,
  ObservedConduit,
} from "../../proto/transfer/observed_conduit.ts";

/** What carries a conduit, as far as its list wants to know; links are that. */
export interface ConduitCarrier {
  /** Newest round trip. */
  readonly roundTripMs?: number | undefined;
  /** Since when its other end owes a sign of life, by the clock. */
  readonly askedMs?: number | undefined;
}

/** The list that contains it. */
export interface ConduitHome {
  /** It is over. */
  left(conduit: LiveConduit): void;
}

/** The list's facts about it, besides its caller and target. */
export interface LiveOrigin {
  /** The same in all programs that the connection passes. */
  readonly id: ConnectionId;
  /** When it was asked for, by the clock. */
  readonly askedMs: number;
  /** The present time, for callers that have read the clock already. */
  readonly openedMs?: number;
  readonly carrier?: ConduitCarrier | undefined;
}

/** See the module description. */
export class LiveConduit extends ObservedConduit {
  readonly id: ConnectionId;
  readonly askedMs: number;
  readonly carrier: ConduitCarrier | undefined;
  #isEnding = false;

  /**
   * @param place Its place in the list.
   * @param openedMs When it was open, by the clock.
   */
  constructor(
    conduit: Conduit,
    observer: ConduitObserver,
    readonly facts: ConnectionFacts,
    origin: LiveOrigin,
    private readonly home: ConduitHome,
    readonly place: number,
    readonly openedMs: number,
  ) {
    super(conduit, observer);
    this.id = origin.id;
    this.askedMs = origin.askedMs;
    this.carrier = origin.carrier;
  }

  /** One of both sides has ended its data. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  override end(isGone?: boolean): void {
    this.#isEnding = true;
    super.end(isGone);
  }

  override onEnd(isGone?: boolean): void {
    this.#isEnding = true;
    super.onEnd(isGone);
  }

  override onClose(end: ConduitEnd): void {
    this.home.left(this);
    super.onClose(end);
  }
}
