/**
 * Looks whether a caller speaks first, without holding up one that listens.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import type { ByteSocket } from "./byte_socket.ts";

/**
 * How long a caller may take to speak first, where what it says by then saves a
 * round trip; a target that speaks first waits so long.
 */
export const EARLY_WAIT_MS = 3;

/** A caller's request is seldom longer, and the rest follows anyway. */
const FIRST_BYTES_MAX = 16_384;

/** See {@linkcode firstBytes}. */
export interface FirstBytes {
  /** What came in time; empty when nothing did. */
  readonly early: Uint8Array;
  /** To be used instead of the socket: it still gives what comes late. */
  readonly socket: ByteSocket;
}

/**
 * Waits for the first bytes for at most `waitMs`.
 *
 * @throws What reading the socket throws, when that happens in time.
 */
export async function firstBytes(
  socket: ByteSocket,
  waitMs: number,
  timers: Timers,
): Promise<FirstBytes> {
  const buffer = new Uint8Array(FIRST_BYTES_MAX);
  const reading = socket.read(buffer);
  const waited = Promise.withResolvers<"late">();
  const timer = timers.after(waitMs, () => waited.resolve("late"));
  const first = await Promise.race([reading, waited.promise])
    .finally(() => timer.cancel());
  if (first === "late") {
    // Whoever reads next sees the failure; if nobody does it was unimportant.
    reading.catch(() => {});
    return {
      early: new Uint8Array(),
      socket: resumed(socket, reading, buffer),
    };
  }
  if (first === null) {
    const ended = resumed(socket, Promise.resolve(null), buffer);
    return { early: new Uint8Array(), socket: ended };
  }
  return { early: buffer.subarray(0, first), socket };
}

/** `socket`, whose first read has begun already, into `buffer`. */
function resumed(
  socket: ByteSocket,
  reading: Promise<number | null>,
  buffer: Uint8Array<ArrayBuffer>,
): ByteSocket {
  let begun: Promise<number | null> | undefined = reading;
  let held: Uint8Array<ArrayBuffer> | undefined = buffer;
  let rest = new Uint8Array();
  const read = async (into: Uint8Array): Promise<number | null> => {
    if (begun !== undefined) {
      const count = await begun;
      begun = undefined;
      rest = held!.subarray(0, count ?? 0);
      // A connection may live for days, and the buffer is large.
      held = undefined;
      if (count === null) return null;
    }
    if (rest.length === 0) return await socket.read(into);
    const count = Math.min(rest.length, into.length);
    into.set(rest.subarray(0, count));
    rest = count < rest.length ? rest.subarray(count) : new Uint8Array();
    return count;
  };
  return {
    remoteAddress: socket.remoteAddress,
    localAddress: socket.localAddress,
    closesInOrder: socket.closesInOrder,
    alpn: socket.alpn,
    identity: socket.identity,
    read,
    write: (bytes) => socket.write(bytes),
    closeWrite: () => socket.closeWrite(),
    close: () => socket.close(),
    reset: () => socket.reset(),
  };
}
