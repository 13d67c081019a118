/**
 * The decrypted side of TLS over a {@linkcode TlsGate}, in either role.
 *
 * The platform destroys a TLS socket as soon as both ends have said goodbye,
 * and with it what it has decrypted and nobody has read. So bytes are taken
 * from it at once, into a queue of our own that outlives it, and the gate is
 * shut while that queue is full.
 *
 * @module
 */

import type tls from "node:tls";
import { peerIdentityOf } from "../trust/peer_identity.ts";
import { ByteQueue } from "../../buffers/byte_queue.ts";
import { plainBytes } from "../../buffers/plain_bytes.ts";
import {
  type PlatformConn,
  PlatformStream,
} from "../../stream/platform_stream.ts";
import type { Socket } from "../../stream/socket.ts";
import type { Stream } from "../../stream/stream.ts";
import { HIGH_WATER_BYTES, type TlsGate } from "./tls_gate.ts";

/** How long bytes that TLS has produced may take to leave after `close`. */
const CLOSE_LINGER_MS = 2_000;

/**
 * How long TLS may take to find the peer's goodbye in bytes that it has been
 * given already; it needs some turns of the event loop.
 */
const END_GRACE_MS = 10;

/**
 * The same as a stream.
 *
 * @param socket What the gate reads and writes.
 * @param secure A TLS socket over `gate` whose handshake is complete.
 */
export function gatedStream(
  socket: Socket,
  gate: TlsGate,
  secure: tls.TLSSocket,
): Stream {
  const gated = new GatedTlsSocket(socket, gate, secure);
  const { remoteAddress, localAddress } = socket.stream;
  // `false` or `null` without; no name that could be in there is longer.
  const { servername } = secure as { servername?: string | false | null };
  return new PlatformStream(gated, {
    remoteAddress,
    localAddress,
    alpn: secure.alpnProtocol || "",
    serverName: servername || "",
    identity: peerIdentityOf(secure),
    closesInOrder: false,
    reset: () => gated.reset(),
  });
}

class GatedTlsSocket implements PlatformConn {
  readonly #socket: Socket;
  readonly #gate: TlsGate;
  readonly #tls: tls.TLSSocket;
  readonly #queue = new ByteQueue(HIGH_WATER_BYTES);
  #waiting: (() => void) | undefined;
  #state: "open" | "ended" | "closed" = "open";
  #networkEnded = false;
  #error: Error | undefined;

  constructor(socket: Socket, gate: TlsGate, secure: tls.TLSSocket) {
    this.#socket = socket;
    this.#gate = gate;
    this.#tls = secure;
    gate.isBlocked = () => !secure.destroyed && this.#queue.isFull;
    gate.onNetworkEnd = () => {
      this.#networkEnded = true;
      this.#wakeReader();
    };
    secure.on("data", (chunk: Uint8Array) => this.#onData(chunk));
    secure.on("end", () => {
      if (this.#state === "open") this.#state = "ended";
      this.#wakeReader();
    });
    // Before the platform hears of it, which may destroy the socket then.
    secure.prependListener("finish", () => this.#drain());
    secure.on("error", (error: Error) => this.#error ??= error);
    secure.on("close", () => this.#onClose());
  }

  async read(into: Uint8Array): Promise<number | null> {
    for (;;) {
      const count = this.#queue.take(into);
      if (count > 0) {
        if (!this.#queue.isFull) this.#gate.open();
        return count;
      }
      if (this.#state === "ended") return null;
      if (this.#state === "closed") {
        throw this.#error ?? new Deno.errors.Interrupted("socket was closed");
      }
      await this.#more();
    }
  }

  write(bytes: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#tls.write(bytes, (error) => {
        if (error) reject(error);
        else resolve(bytes.length);
      });
    });
  }

  async closeWrite(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#tls.once("error", reject);
      this.#tls.end(() => {
        this.#tls.off("error", reject);
        resolve();
      });
    });
    await this.#gate.finish();
  }

  close(): void {
    this.#forget();
    this.#tls.destroy();
  }

  reset(): void {
    this.#forget();
    this.#socket.reset();
    this.#tls.destroy();
    this.#gate.destroy();
  }

  #onData(chunk: Uint8Array): void {
    if (this.#state === "closed") return;
    this.#queue.push(plainBytes(chunk));
    this.#wakeReader();
  }

  /** Takes what the platform has decrypted and not handed over yet. */
  #drain(): void {
    while (this.#tls.readableLength > 0) this.#tls.read();
  }

  /** We are through with it: what has arrived interests nobody. */
  #forget(): void {
    if (this.#state === "open") this.#state = "closed";
    this.#queue.clear();
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
      if (this.#networkEnded) setTimeout(() => this.#truncate(), END_GRACE_MS);
    });
  }

  /**
   * The network has ended and TLS has not: somebody cut the connection, and
   * what is missing may be the point (RFC 8446 §6.1). That is no clean end.
   */
  #truncate(): void {
    if (this.#state !== "open" || !this.#queue.isEmpty) return;
    this.#error ??= Object.assign(
      new Error("TLS connection was cut off without a goodbye"),
      { code: "ERR_TLS_TRUNCATED" },
    );
    this.#tls.destroy();
  }

  #wakeReader(): void {
    const wake = this.#waiting;
    this.#waiting = undefined;
    wake?.();
  }

  #onClose(): void {
    if (this.#state === "open") this.#state = "closed";
    this.#wakeReader();
    const gate = this.#gate;
    gate.open();
    if (gate.destroyed || gate.writableFinished) return void gate.destroy();
    const timer = setTimeout(() => gate.destroy(), CLOSE_LINGER_MS);
    gate.once("close", () => clearTimeout(timer));
    gate.finish().then(() => gate.destroy());
  }
}
