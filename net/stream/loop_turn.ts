/**
 * The turn of streams that no poller tells: those of the platform, of a tunnel
 * and of memory.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import { BYTES_PER_TURN } from "../poll/poller.ts";
import { notifyUser, type StreamUser, type Turn } from "./stream.ts";

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
  readonly #turn: Turn;
  #user: StreamUser | undefined;
  #isDue = false;
  /** What is to be told soon. */
  #hints = 0;

  constructor(turn: Turn = loopTurn) {
    this.#turn = turn;
  }

  /** See `Stream.notify`. */
  set user(user: StreamUser) {
    this.#user = user;
  }

  /** Something has happened: not from inside a call of the stream. */
  tell(hint: number): void {
    if (this.#user !== undefined) notifyUser(this.#user, hint);
  }

  /** The same from anywhere: it is told in a microtask, of all at once. */
  tellSoon(hint: number): void {
    if (this.#hints === 0) queueMicrotask(this.#tellNow);
    this.#hints |= hint;
  }

  /** See `Stream.goOn`. */
  goOn(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#turn.later(this.#goOnNow);
  }

  readonly #tellNow = () => {
    const hints = this.#hints;
    this.#hints = 0;
    this.tell(hints);
  };

  readonly #goOnNow = () => {
    this.#isDue = false;
    this.tell(0);
  };
}
