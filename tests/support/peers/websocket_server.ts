/**
 * The server's side of WebSocket messages (RFC 6455 §5), without fragments:
 * what kubelets say and hear by it is short.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import type { Socket } from "../../../net/stream/socket.ts";

const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

/** See the module description. */
export class WebSocketServer {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** The next message; `null` when the client has closed. */
  async receive(): Promise<Uint8Array | null> {
    for (;;) {
      const head = await this.#exactly(2);
      if (head === null) return null;
      const opcode = head[0]! & 0xf;
      let length = head[1]! & 0x7f;
      if (length === 126) length = number(await this.#exactly(2));
      else if (length === 127) length = number(await this.#exactly(8));
      const mask = await this.#exactly(4);
      const masked = await this.#exactly(length);
      if (mask === null || masked === null || opcode === CLOSE) return null;
      const payload = masked.map((byte, at) => byte ^ mask[at % 4]!);
      if (opcode === PING) await this.#frame(PONG, payload);
      else if (opcode !== PONG) return payload;
    }
  }

  send(payload: Uint8Array): Promise<void> {
    return this.#frame(BINARY, payload);
  }

  /** Says goodbye with 1000, "normal". */
  close(): Promise<void> {
    return this.#frame(CLOSE, Uint8Array.of(3, 232));
  }

  #frame(opcode: number, payload: Uint8Array): Promise<void> {
    const { length } = payload;
    const size = length < 126
      ? [length]
      : [126, Math.floor(length / 256), length % 256];
    const head = Uint8Array.of(0x80 | opcode, ...size);
    return this.#socket.writeAll(joinedBytes([head, payload]));
  }

  async #exactly(count: number): Promise<Uint8Array | null> {
    const bytes = new Uint8Array(count);
    for (let at = 0; at < count;) {
      const read = await this.#socket.read(bytes.subarray(at));
      if (read === null) return null;
      at += read;
    }
    return bytes;
  }
}

function number(bytes: Uint8Array | null): number {
  return [...bytes ?? []].reduce((sum, byte) => sum * 256 + byte, 0);
}
