/**
 * Lets in connections that the platform has accepted, where there is no C library
 * to accept with (`doorway.ts`): whoever comes is counted, and its handshake has
 * to wait for its turn, but nobody looks at what it says first.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import { guarded } from "../../platform/errors/internal_errors.ts";
import type { Stream } from "../stream/stream.ts";
import { tuneLink } from "../stream/tune_link.ts";
import type { Arrival } from "./doorway.ts";
import type { HandshakeQueue } from "./handshake_queue.ts";
import type { Intake } from "./intake.ts";

/** What it takes to let somebody in. */
export interface PlatformDoorwayOptions {
  readonly intake: Intake;
  readonly queue: HandshakeQueue;
  readonly timers: Timers;
  /** Begins a handshake; the guest leaves when the connection ends. */
  readonly letIn: (arrival: Arrival) => void;
}

/** Somebody has connected: lets it in when it is its turn, or closes it. */
export function welcome(
  stream: Stream,
  { intake, queue, timers, letIn }: PlatformDoorwayOptions,
): void {
  let isGone = false;
  let evict = () => {
    isGone = true;
    stream.close();
  };
  const guest = intake.arrive(stream.remoteAddress, () => evict());
  if (guest === undefined) return stream.close();
  const isSlow = !guest.brake!.takeTry(timers.now());
  if (isSlow) guest.refuseBraked();
  if (isSlow || !guest.takeHandshake()) {
    guest.leave();
    return stream.close();
  }
  tuneLink(stream);
  const arrival: Arrival = { stream, guest, onEvicted: () => stream.close() };
  const begin = () => {
    evict = () => arrival.onEvicted();
    guarded("accept", () => letIn(arrival), () => evict());
  };
  queue.add({ isGone: () => isGone, begin });
}
