/**
 * A peer that says whatever it likes over a real socket, and remembers how the
 * server put up with it.
 *
 * @module
 */

import type { Frame } from "../../proto/frames/frame.ts";
import { FrameDecoder } from "../../proto/frames/frame_decoder.ts";
import { errorCodeName } from "../../proto/frames/wire_error.ts";
import { ACK, frame, Type } from "./bytes.ts";

/** Where a server is attacked. */
export type Port =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly port: number }
  | {
    readonly kind: "tls";
    readonly port: number;
    /** PEM of the server's CA. */
    readonly ca: string;
    readonly alpn: string;
    /** PEM; absent: the peer is not authenticated. */
    readonly pair?: { readonly cert: string; readonly key: string };
  };

/** How a connection ended. */
export interface Ending {
  /** Of GOAWAY, or of its absence: `closed`. */
  readonly code: string;
  /** The server's words, as far as it had any. */
  readonly reason: string;
  /** From the first byte that was said to the end. */
  readonly afterMs: number;
}

/** How a peer behaves while it attacks. */
export interface Manners {
  /** It does not read. */
  readonly isDeaf?: boolean;
  /** It does not acknowledge SETTINGS. */
  readonly isRude?: boolean;
}

export function connect(port: Port): Promise<Deno.Conn> {
  switch (port.kind) {
    case "unix":
      return Deno.connect({ transport: "unix", path: port.path });
    case "tcp":
      return Deno.connect({ port: port.port });
    case "tls":
      return Deno.connectTls({
        port: port.port,
        hostname: "127.0.0.1",
        caCerts: [port.ca],
        alpnProtocols: [port.alpn],
        ...port.pair ?? {},
      });
  }
}

/** See the module description. */
export class HostilePeer {
  /** How often each kind of frame was heard. */
  readonly received = new Map<string, number>();
  /** Settles when the server has had enough. */
  readonly ended: Promise<Ending>;
  readonly #startMs = performance.now();
  #isOver = false;
  #said = 0;
  #goaway: Frame & { type: "GOAWAY" } | undefined;

  static async open(port: Port, manners: Manners = {}): Promise<HostilePeer> {
    return new HostilePeer(await connect(port), manners);
  }

  constructor(
    private readonly conn: Deno.Conn,
    private readonly manners: Manners,
  ) {
    this.ended = this.#listen();
  }

  /** @returns false: nobody listens any more. */
  async say(bytes: Uint8Array): Promise<boolean> {
    try {
      for (let at = 0; at < bytes.length && !this.#isOver;) {
        at += await this.conn.write(bytes.subarray(at));
      }
      // A write that succeeds at once leaves no turn to what was answered.
      if (++this.#said % 8 === 0) await pause(0);
      return !this.#isOver;
    } catch {
      // The server has closed: what was wanted to know. A deaf peer only
      // learns it here.
      this.#isOver = true;
      return false;
    }
  }

  /** It has nothing more to say, and looks what it was answered. */
  giveUp(): void {
    this.#isOver = true;
  }

  close(): void {
    this.#isOver = true;
    try {
      this.conn.close();
    } catch {
      // It was closed before.
    }
  }

  async #listen(): Promise<Ending> {
    const decoder = new FrameDecoder(0xff_ffff);
    const buffer = new Uint8Array(64 * 1024);
    while (this.manners.isDeaf && !this.#isOver) await pause(20);
    try {
      for (let count; (count = await this.conn.read(buffer)) !== null;) {
        decoder.push(buffer.slice(0, count));
        for (let next; (next = decoder.next()) !== undefined;) {
          this.#hear(next);
        }
        // It is told: what follows is only that the server lets it go.
        if (this.#goaway !== undefined) break;
      }
    } catch {
      // Reset by the server, or not HTTP/2: the end either way.
    }
    const afterMs = performance.now() - this.#startMs;
    this.close();
    return {
      code: this.#goaway === undefined
        ? "closed"
        : errorCodeName(this.#goaway.errorCode),
      reason: new TextDecoder().decode(this.#goaway?.debugData),
      afterMs,
    };
  }

  #hear(next: Frame): void {
    const name = next.type === "RST_STREAM"
      ? `RST_STREAM ${errorCodeName(next.errorCode)}`
      : next.type;
    this.received.set(name, (this.received.get(name) ?? 0) + 1);
    if (next.type === "GOAWAY") {
      this.#goaway = { ...next, debugData: next.debugData.slice() };
    }
    if (next.type === "SETTINGS" && !next.ack && !this.manners.isRude) {
      void this.say(frame(Type.SETTINGS, ACK, 0));
    }
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
