/**
 * Reads what a client says first until that tells its protocol.
 *
 * It knows nothing of what happens then: whoever serves the protocol takes the
 * buffer over and reads on.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { ByteSocket } from "../../net/stream/byte_socket.ts";
import type { ReadBuffer } from "../../net/buffers/read_buffer.ts";
import { conduitReader } from "../../net/stream/socket_conduit.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { CONNECT_HEAD_TIMEOUT_MS } from "../../net/http1/connect_session.ts";
import { type SniffedProtocol, sniffProtocol } from "./sniff.ts";

/**
 * What the protocol is, and the bytes that tell: the first `bytes` of
 * `reader.buffer`.
 */
export type Sniffed = (
  protocol: SniffedProtocol,
  reader: ReadBuffer,
  bytes: number,
) => void;

/** One client of whom nothing is known yet; see the module description. */
export class FirstRead {
  readonly #socket: ByteSocket;
  readonly #sniffed: Sniffed;
  readonly #reader = conduitReader();
  readonly #timer: Timer;
  #bytes = 0;

  /**
   * @param sniffed Called at most once. Not called, and the socket closed, when
   *   the client leaves first or says too little for too long.
   */
  constructor(socket: ByteSocket, timers: Timers, sniffed: Sniffed) {
    this.#socket = socket;
    this.#sniffed = sniffed;
    this.#timer = timers.after(CONNECT_HEAD_TIMEOUT_MS, () => socket.close());
  }

  start(): void {
    const { buffer } = this.#reader;
    const into = this.#bytes === 0 ? buffer : buffer.subarray(this.#bytes);
    const read = this.#socket.read(into).then(
      (count) => this.#onRead(count),
      // The client is gone before it asked for anything: nothing to tell it.
      () => this.#giveUp(),
    );
    unawaited("socket", read, () => this.#giveUp());
  }

  #onRead(count: number | null): void {
    if (count === null) return this.#giveUp();
    this.#bytes += count;
    const { buffer } = this.#reader;
    const protocol = sniffProtocol(buffer.subarray(0, this.#bytes));
    // What does not tell yet is a part of HTTP/2's preface: there is room.
    if (protocol === undefined) return this.start();
    this.#timer.cancel();
    this.#sniffed(protocol, this.#reader, this.#bytes);
  }

  #giveUp(): void {
    this.#timer.cancel();
    this.#reader.release();
    this.#socket.close();
  }
}
