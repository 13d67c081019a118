/**
 * Connected sockets and listening ends of conduits, for tests.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../../proto/transfer/conduit.ts";

/** Two ends of one loopback TCP connection: the dialing one, the accepted one. */
export async function tcpPair(): Promise<[Deno.TcpConn, Deno.TcpConn]> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  return await Promise.all([
    Deno.connect({ hostname: "127.0.0.1", port }),
    listener.accept() as Promise<Deno.TcpConn>,
  ]);
}

/**
 * Whoever connects, until the listener is closed; not those who have gone again
 * with a reset by then, which the platform takes for a failure.
 */
export async function* arrivals<Conn extends Deno.Conn>(
  listener: { accept(): Promise<Conn> },
): AsyncGenerator<Conn, void> {
  for (;;) {
    try {
      yield await listener.accept();
    } catch (error) {
      if (error instanceof Deno.errors.NotConnected) continue;
      if (
        error instanceof Deno.errors.BadResource ||
        error instanceof Deno.errors.Interrupted
      ) return;
      throw error;
    }
  }
}

/** Reads until the peer ends its side. */
export async function readToEnd(conn: Deno.Conn): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  const buffer = new Uint8Array(64 * 1024);
  for (;;) {
    const count = await conn.read(buffer);
    if (count === null) return joinedBytes(parts);
    parts.push(buffer.slice(0, count));
  }
}

/** Writes all of `bytes`. */
export async function writeAll(
  conn: { write(bytes: Uint8Array): Promise<number> },
  bytes: Uint8Array,
): Promise<void> {
  let offset = 0;
  while (offset < bytes.length) {
    offset += await conn.write(bytes.subarray(offset));
  }
}

/** Receives a conduit's events and lets a test wait for any of them. */
export class Listener implements ConduitEvents {
  readonly #parts: Uint8Array[] = [];
  #waiters: { until: () => boolean; resolve: () => void }[] = [];
  receivedBytes = 0;
  writableCalls = 0;
  ended = false;
  end: ConduitEnd | undefined;

  /** @param options.consume Answer data at once; else the test does. */
  constructor(
    readonly conduit: Conduit,
    readonly options: { consume: boolean } = { consume: true },
  ) {
    conduit.attach(this);
  }

  onData(chunk: Uint8Array): void {
    this.#parts.push(new Uint8Array(chunk));
    this.receivedBytes += chunk.length;
    if (this.options.consume) this.conduit.consumed(chunk.length);
    this.#wake();
  }

  onWritable(): void {
    this.writableCalls++;
    this.#wake();
  }

  onEnd(): void {
    this.ended = true;
    this.#wake();
  }

  onClose(end: ConduitEnd): void {
    if (this.end !== undefined) throw new TypeError("onClose came twice");
    this.end = end;
    this.#wake();
  }

  /** What has arrived so far. */
  get received(): Uint8Array {
    return joinedBytes(this.#parts);
  }

  /** The chunks as they were delivered. */
  get chunks(): readonly Uint8Array[] {
    return this.#parts;
  }

  /** Resolves as soon as `condition` holds after an event. */
  until(condition: () => boolean): Promise<void> {
    if (condition()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiters.push({ until: condition, resolve });
    });
  }

  /** Resolves with how it ended. */
  async closed(): Promise<ConduitEnd> {
    await this.until(() => this.end !== undefined);
    return this.end!;
  }

  /** Writes all of `bytes`, as the conduit takes them. */
  async send(bytes: Uint8Array): Promise<void> {
    let offset = 0;
    while (offset < bytes.length) {
      const seen = this.writableCalls;
      const piece = bytes.subarray(offset);
      const taken = this.conduit.write(piece);
      offset += taken;
      if (taken < piece.length) {
        await this.until(() =>
          this.writableCalls > seen || this.end !== undefined
        );
        if (this.end !== undefined) return;
      }
    }
  }

  #wake(): void {
    const due = this.#waiters.filter((waiter) => waiter.until());
    this.#waiters = this.#waiters.filter((waiter) => !due.includes(waiter));
    for (const waiter of due) waiter.resolve();
  }
}
