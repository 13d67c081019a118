/**
 * Admits connections that the platform has accepted, where there is no C
 * library to accept with (`accept_queue.ts`): each is counted, and its
 * handshake has to wait for its turn, but its first bytes are not looked at.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import { guarded } from "../../platform/errors/internal_errors.ts";
import type { Stream } from "../stream/stream.ts";
import { tuneLink } from "../stream/socket_connect.ts";
import type { AdmittedStream } from "./accept_queue.ts";
import type { HandshakeQueue } from "./handshake_queue.ts";
import type { ConnectionLimiter } from "./connection_limiter.ts";

/** What admission needs. */
export interface PlatformAcceptorOptions {
  readonly limiter: ConnectionLimiter;
  readonly queue: HandshakeQueue;
  readonly timers: Timers;
  /** Begins a handshake; what was admitted leaves when the connection ends. */
  readonly admit: (admittedStream: AdmittedStream) => void;
}

/** Admits a connection when it is its turn, or closes it. */
export function admitPlatformStream(
  stream: Stream,
  { limiter, queue, timers, admit }: PlatformAcceptorOptions,
): void {
  let isGone = false;
  let evict = () => {
    isGone = true;
    stream.close();
  };
  const admitted = limiter.arrive(stream.remoteAddress, () => evict());
  if (admitted === undefined) return stream.close();
  const isSlow = !admitted.penalty!.takeTry(timers.now());
  if (isSlow) admitted.refusePenalized();
  if (isSlow || !admitted.takeHandshake()) {
    admitted.leave();
    return stream.close();
  }
  tuneLink(stream);
  const admittedStream: AdmittedStream = {
    stream,
    admitted,
    onEvicted: () => stream.close(),
  };
  const begin = () => {
    evict = () => admittedStream.onEvicted();
    guarded("accept", () => admit(admittedStream), () => evict());
  };
  queue.add({ isGone: () => isGone, begin });
}
