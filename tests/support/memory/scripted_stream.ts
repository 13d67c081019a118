/**
 * A stream in the hands of a test: what it gives, what it takes, and how it
 * fails.
 *
 * @module
 */

import { loopTurn, Notifier } from "../../../net/stream/loop_turn.ts";
import { Ready } from "../../../net/poll/poller.ts";
import {
  closedError,
  type Stream,
  type StreamUser,
  WOULD_BLOCK,
} from "../../../net/stream/stream.ts";
import { ANONYMOUS } from "../../../proto/peer/peer_identity.ts";

/** See the module description. */
export class ScriptedStream implements Stream {
  readonly remoteAddress = "";
  readonly localAddress = "";
  readonly alpn = "";
  readonly serverName = "";
  readonly identity = ANONYMOUS;
  readonly descriptor = undefined;
  readonly turn = loopTurn;
  readonly closesInOrder = false;
  onClosed: (() => void) | undefined;
  /** What was written, by call. */
  readonly written: Uint8Array[] = [];
  /** What else was asked for. */
  readonly calls: ("closeWrite" | "close" | "reset")[] = [];
  /** Reads that found nothing. */
  waits = 0;
  /** How much a write takes at the most. */
  takes = Infinity;
  /** What was written leaves when the test says so. */
  isSlow = false;
  writeError: Error | undefined;
  readonly #notifier = new Notifier();
  readonly #arrived: (Uint8Array | Error | null)[] = [];
  #isLeaving = false;
  #isOpen = true;

  /** What was written, as text. */
  get texts(): string[] {
    return this.written.map((bytes) => new TextDecoder().decode(bytes));
  }

  /** Bytes arrive; `null`: the peer's end. An error is what a read throws. */
  deliver(arrived: Uint8Array | Error | null): void {
    this.#arrived.push(arrived);
    this.#notifier.notify(Ready.READ);
  }

  /** What was written has left, or there is room again. */
  complete(): void {
    this.#isLeaving = false;
    this.#notifier.notify(Ready.WRITE);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  peerCredentials(): undefined {
    return undefined;
  }

  notify(user: StreamUser): void {
    this.#notifier.user = user;
  }

  goOn(): void {
    this.#notifier.goOn();
  }

  read(into: Uint8Array): number {
    if (!this.#isOpen) throw closedError();
    const first = this.#arrived[0];
    if (first instanceof Error) throw first;
    if (first === undefined) this.waits++;
    if (first === undefined) return WOULD_BLOCK;
    if (first === null) return 0;
    const run = first.subarray(0, into.length);
    into.set(run);
    if (run.length === first.length) this.#arrived.shift();
    else this.#arrived[0] = first.subarray(run.length);
    return run.length;
  }

  write(bytes: Uint8Array): number {
    if (!this.#isOpen) throw closedError();
    if (this.writeError !== undefined) throw this.writeError;
    if (this.#isLeaving) return 0;
    const count = Math.min(bytes.length, this.takes);
    this.written.push(bytes.slice(0, count));
    this.#isLeaving = this.isSlow;
    return count;
  }

  flush(): boolean {
    if (!this.#isOpen) throw closedError();
    return !this.#isLeaving;
  }

  closeWrite(): void {
    this.calls.push("closeWrite");
  }

  close(): void {
    this.#close("close");
  }

  reset(): void {
    this.#close("reset");
  }

  #close(how: "close" | "reset"): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.calls.push(how);
    this.onClosed?.();
    this.#notifier.notifySoon(Ready.HANGUP);
  }
}
