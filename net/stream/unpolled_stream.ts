/**
 * The turn of streams that no poller notifies (those of the platform, of a tunnel
 * and of memory), and what these have in common.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import {
  ANONYMOUS,
  type PeerIdentity,
} from "../../proto/peer/peer_identity.ts";
import { BYTES_PER_TURN, Ready } from "../poll/poller.ts";
import {
  closedError,
  notifyUser,
  type Stream,
  type StreamUser,
  type Turn,
} from "./stream.ts";

class LoopTurn implements Turn {
  #bytes = 0;

  moved(bytes: number): void {
    if (this.#bytes === 0) setImmediate(this.#next);
    this.#bytes += bytes;
  }

  get isOver(): boolean {
    return this.#bytes >= BYTES_PER_TURN;
  }

  later(task: () => void): void {
    setImmediate(task);
  }

  readonly #next = () => {
    this.#bytes = 0;
  };
}

/** One for the process. */
export const loopTurn: Turn = new LoopTurn();

/** What `goOn` and `notify` of such a stream are made of. */
export class Notifier {
  #user: StreamUser | undefined;
  #isDue = false;
  /** What the next `notifySoon` passes on. */
  #hints = 0;

  constructor(private readonly turn: Turn = loopTurn) {}

  /** See `Stream.notify`. */
  set user(user: StreamUser) {
    this.#user = user;
  }

  /** Something has happened: not from inside a call of the stream. */
  notify(hint: number): void {
    if (this.#user !== undefined) notifyUser(this.#user, hint);
  }

  /** The same from anywhere: the user is notified once, in a microtask. */
  notifySoon(hint: number): void {
    if (this.#hints === 0) queueMicrotask(this.#notifyNow);
    this.#hints |= hint;
  }

  /** See `Stream.goOn`. */
  goOn(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.turn.later(this.#goOnNow);
  }

  readonly #notifyNow = () => {
    const hints = this.#hints;
    this.#hints = 0;
    this.notify(hints);
  };

  readonly #goOnNow = () => {
    this.#isDue = false;
    this.notify(0);
  };
}

/** A stream without TLS and descriptor. */
export abstract class UnpolledStream implements Stream {
  abstract readonly remoteAddress: string;
  abstract readonly localAddress: string;
  abstract readonly closesInOrder: boolean;
  readonly serverName = "";
  readonly descriptor = undefined;
  readonly turn = loopTurn;
  onClosed: (() => void) | undefined;
  protected readonly notifier = new Notifier();
  #isOpen = true;

  constructor(
    readonly alpn = "",
    readonly identity: PeerIdentity = ANONYMOUS,
  ) {}

  abstract read(into: Uint8Array<ArrayBuffer>): number;
  abstract write(bytes: Uint8Array<ArrayBuffer>): number;
  abstract flush(): boolean;
  abstract closeWrite(): void;
  abstract close(): void;
  abstract reset(): void;

  get isOpen(): boolean {
    return this.#isOpen;
  }

  peerCredentials(): undefined {
    return undefined;
  }

  notify(user: StreamUser): void {
    this.notifier.user = user;
  }

  goOn(): void {
    this.notifier.goOn();
  }

  protected mustBeOpen(): void {
    if (!this.#isOpen) throw closedError();
  }

  /** @param free Called once, before anybody is notified. */
  protected end(free: () => void): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    free();
    this.onClosed?.();
    this.notifier.notifySoon(Ready.HANGUP);
  }
}
