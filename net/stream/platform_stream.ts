/**
 * Sockets of the platform, which use promises, as {@linkcode Stream}s: for
 * machines whose C library cannot be called, and for operators who choose them.
 *
 * A read that finds nothing begins one read of the platform, into a buffer of
 * its own that is small while it waits; its bytes are copied to the reader.
 * Written bytes are copied, and one write is in flight.
 *
 * @module
 */

import { sharedBufferPool } from "../../proto/bytes/buffer_pool.ts";
import { ReadBuffer } from "../buffers/read_buffer.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import { sendReset } from "../libc/platform_sockets.ts";
import { UnpolledStream } from "./unpolled_stream.ts";
import { Ready } from "../poll/poller.ts";
import { type Stream, WOULD_BLOCK } from "./stream.ts";

/** What is written at once; more waits for the next call. */
const WRITE_BYTES_MAX = 128 * 1024;

/**
 * A connected socket of the platform. Turns Nagle's algorithm off: it would hold
 * small writes back for up to 40 ms.
 */
export function denoStream(conn: Deno.Conn): Stream {
  const isTcp = conn.localAddr.transport === "tcp";
  if (isTcp) setNoDelay(conn as Deno.TcpConn);
  return new PlatformStream(conn);
}

class PlatformStream extends UnpolledStream {
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly closesInOrder = true;

  // Reading. From `#at` to `#end` the buffer holds unread bytes.
  readonly #reader = new ReadBuffer();
  #at = 0;
  #end = 0;
  #reading: "idle" | "waiting" | "ended" | { readonly error: unknown } = "idle";

  // Writing.
  #inFlight: Uint8Array<ArrayBuffer> | undefined;
  #writing: "open" | "ending" | "closing" | "ended" | { error: unknown } =
    "open";

  constructor(private readonly conn: Deno.Conn) {
    super();
    this.remoteAddress = addressText(conn.remoteAddr);
    this.localAddress = addressText(conn.localAddr);
  }

  // Reading ------------------------------------------------------------------

  read(into: Uint8Array<ArrayBuffer>): number {
    this.mustBeOpen();
    if (this.#at < this.#end) return this.#take(into);
    const reading = this.#reading;
    if (typeof reading === "object") throw reading.error;
    if (reading === "ended") return 0;
    if (reading === "idle") {
      this.#reading = "waiting";
      this.conn.read(this.#reader.buffer).then(
        this.#onRead,
        this.#onReadError,
      );
    }
    return WOULD_BLOCK;
  }

  #take(into: Uint8Array<ArrayBuffer>): number {
    const count = Math.min(into.length, this.#end - this.#at);
    into.set(this.#reader.buffer.subarray(this.#at, this.#at + count));
    this.#at += count;
    if (this.#at === this.#end) {
      this.#reader.adapt(this.#end);
      this.#at = this.#end = 0;
      // A stalled reader holds no buffer.
      this.#reader.release();
    }
    return count;
  }

  readonly #onRead = (count: number | null) => {
    if (count === null || !this.isOpen) this.#reader.release();
    this.#reading = count === null ? "ended" : "idle";
    if (!this.isOpen) return;
    this.#end = count ?? 0;
    this.notifier.notify(Ready.READ);
  };

  readonly #onReadError = (error: unknown) => {
    this.#reader.release();
    this.#reading = { error };
    if (this.isOpen) this.notifier.notify(Ready.READ);
  };

  // Writing ------------------------------------------------------------------

  write(bytes: Uint8Array<ArrayBuffer>): number {
    this.#checkWriting();
    if (this.#inFlight !== undefined || bytes.length === 0) return 0;
    const count = Math.min(bytes.length, WRITE_BYTES_MAX);
    const own = sharedBufferPool.acquire(count);
    own.set(count === bytes.length ? bytes : bytes.subarray(0, count));
    this.#inFlight = own;
    this.#send(own, 0, count);
    return count;
  }

  flush(): boolean {
    this.#checkWriting();
    return this.#inFlight === undefined &&
      (this.#writing === "open" || this.#writing === "ended");
  }

  closeWrite(): void {
    this.#checkWriting();
    if (this.#writing !== "open") return;
    this.#writing = "ending";
    if (this.#inFlight === undefined) this.#endOurSide();
  }

  #checkWriting(): void {
    this.mustBeOpen();
    if (typeof this.#writing === "object") throw this.#writing.error;
  }

  #send(own: Uint8Array<ArrayBuffer>, from: number, to: number): void {
    this.conn.write(own.subarray(from, to)).then((count) => {
      // A socket may take a part only.
      if (from + count < to && this.isOpen) {
        return this.#send(own, from + count, to);
      }
      this.#onWritten();
    }, (error) => {
      this.#writing = { error };
      this.#onWritten();
    });
  }

  #onWritten(): void {
    sharedBufferPool.release(this.#inFlight!);
    this.#inFlight = undefined;
    if (!this.isOpen) return;
    if (this.#writing === "ending") this.#endOurSide();
    else this.notifier.notify(Ready.WRITE);
  }

  #endOurSide(): void {
    this.#writing = "closing";
    this.conn.closeWrite().then(() => {
      this.#writing = "ended";
    }, (error) => {
      this.#writing = { error };
    }).then(() => {
      if (this.isOpen) this.notifier.notify(Ready.WRITE);
    });
  }

  // The end ------------------------------------------------------------------

  close(): void {
    this.end(() => {
      // The kernel may still look at a buffer that is being read into.
      if (this.#reading !== "waiting") this.#reader.release();
      close(this.conn);
    });
  }

  reset(): void {
    if (!this.isOpen) return;
    sendReset(this.conn);
    this.close();
  }
}

function setNoDelay(conn: Deno.TcpConn): void {
  try {
    conn.setNoDelay(true);
  } catch {
    // The peer is gone already; the next read or write reports it.
  }
}

function close(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch (error) {
    // Closing twice is harmless; anything else is a bug.
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}

/** `ip:port`, `[ip6]:port`, a path, or `unix` when the path is empty. */
function addressText(address: Deno.Addr): string {
  if ("path" in address) return address.path || "unix";
  if (!("hostname" in address)) return address.transport;
  return hostPort(address.hostname, address.port);
}
