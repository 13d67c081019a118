/**
 * The sending half of a call: messages go out whole or in parts, in order, and
 * what does not fit waits here.
 *
 * Layer: gRPC; the same for both sides. How much may wait is the caller's
 * choice: it sees `keptBytes` and the `false` of `sendMessage`.
 *
 * @module
 */

import type { Stream } from "../streams/stream.ts";
import {
  frameMessage,
  MESSAGE_PREFIX_BYTES,
  writeMessagePrefix,
} from "./message_reader.ts";

/** Free again as soon as `sendFrame` returns, so one serves all calls. */
const PREFIX = new Uint8Array(MESSAGE_PREFIX_BYTES);

export class OutgoingBody {
  // Invariant: keptBytes = sum of the lengths in kept; no chunk is empty.
  readonly #kept: Uint8Array[] = [];
  #keptBytes = 0;
  #ending: (() => void) | undefined;

  constructor(private readonly stream: Stream) {}

  /** See `CallBody.keptBytes`. */
  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** See `CallBody.room`. */
  get room(): number {
    return this.#keptBytes === 0 ? this.stream.room : 0;
  }

  /** See `CallBody.windowBytes`. */
  get windowBytes(): number | undefined {
    return this.stream.windowBytes;
  }

  /** See `CallBody.sendFrame`. */
  sendFrame(head: Uint8Array, body: Uint8Array): void {
    if (this.#keptBytes > 0) {
      throw new RangeError(
        `Cannot send a frame: ${this.#keptBytes} bytes are kept in front of it`,
      );
    }
    this.stream.sendFrame(head, body);
  }

  /** See `CallBody.sendMessage`. */
  sendMessage(message: Uint8Array, shared?: Uint8Array): boolean {
    if (shared !== undefined) return this.#sendShared(message, shared);
    if (this.#keptBytes > 0) return this.#keep(frameMessage(message));
    const room = this.stream.room;
    if (room < MESSAGE_PREFIX_BYTES) {
      this.stream.awaitRoom();
      return this.#keep(frameMessage(message));
    }
    writeMessagePrefix(PREFIX, message.length);
    let sent = Math.min(message.length, room - MESSAGE_PREFIX_BYTES);
    if (sent === message.length) {
      this.stream.sendFrame(PREFIX, message);
      return true;
    }
    this.stream.sendFrame(PREFIX, message.subarray(0, sent));
    sent += this.stream.write(message.subarray(sent));
    return sent === message.length || this.#keep(message.slice(sent));
  }

  /** Runs `ending` once all kept bytes have left; no send may follow. */
  endWith(ending: () => void): void {
    if (this.#keptBytes === 0) ending();
    else this.#ending = ending;
  }

  /**
   * There is room: sends kept bytes, then ends if that was requested.
   *
   * @returns Whether all kept bytes have left.
   */
  resume(): boolean {
    while (this.#kept.length > 0) {
      const first = this.#kept[0]!;
      const sent = this.stream.write(first);
      this.#keptBytes -= sent;
      if (sent < first.length) {
        this.#kept[0] = first.subarray(sent);
        return false;
      }
      this.#kept.shift();
    }
    const ending = this.#ending;
    this.#ending = undefined;
    ending?.();
    return true;
  }

  /** Drops kept bytes: the call is over. */
  drop(): void {
    this.#kept.length = 0;
    this.#keptBytes = 0;
    this.#ending = undefined;
  }

  #sendShared(message: Uint8Array, shared: Uint8Array): boolean {
    const head = new Uint8Array(MESSAGE_PREFIX_BYTES + message.length);
    writeMessagePrefix(head, message.length + shared.length);
    head.set(message, MESSAGE_PREFIX_BYTES);
    const room = this.room;
    if (room < head.length) {
      if (this.#keptBytes === 0) this.stream.awaitRoom();
      this.#keep(head);
      return this.#keep(shared);
    }
    let sent = Math.min(shared.length, room - head.length);
    this.stream.sendFrame(head, shared.subarray(0, sent));
    if (sent < shared.length) sent += this.stream.write(shared.subarray(sent));
    return sent === shared.length || this.#keep(shared.subarray(sent));
  }

  #keep(bytes: Uint8Array): false {
    // An empty chunk would never be taken away.
    if (bytes.length === 0) return false;
    this.#kept.push(bytes);
    this.#keptBytes += bytes.length;
    return false;
  }
}
