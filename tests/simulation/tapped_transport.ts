/**
 * A transport with somebody listening to what is written to it.
 *
 * @module
 */

import type { Transport } from "../../net/stream/transport.ts";
import { FrameTap } from "./frame_tap.ts";

/** Options of {@linkcode tapped}. */
export interface TapOptions {
  /** The HTTP/2 client writes to it. */
  readonly isClient: boolean;
  /** See `FrameTap`. */
  readonly mayCalm: boolean;
  /** Hears of frames that accuse the other end. */
  readonly complain: (what: string) => void;
}

/** `transport`, and its frames are looked at. */
export function tapped(transport: Transport, options: TapOptions): Transport {
  const { isClient, mayCalm, complain } = options;
  const tap = new FrameTap(isClient, mayCalm, complain);
  return {
    remoteAddress: transport.remoteAddress,
    localAddress: transport.localAddress,
    alpn: transport.alpn,
    identity: transport.identity,
    start: (events) => transport.start(events),
    write(bytes, done) {
      tap.push(bytes);
      transport.write(bytes, done);
    },
    closeWrite: () => transport.closeWrite(),
    close: () => transport.close(),
  };
}
