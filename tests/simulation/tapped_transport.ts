/**
 * A transport with somebody listening to what is written to it.
 *
 * @module
 */

import type { Transport } from "../../host/transport.ts";
import { FrameTap } from "./frame_tap.ts";
import { MEMORY_IS_SHORT_OCTETS, type Plan } from "./plan.ts";

/** Options of {@linkcode tapped}. */
export interface TapOptions {
  /** The HTTP/2 client writes to it. */
  readonly isClient: boolean;
  readonly plan: Plan;
  /** Hears of frames that accuse the other end. */
  readonly complain: (what: string) => void;
}

/** `transport`, and its frames are looked at. */
export function tapped(transport: Transport, options: TapOptions): Transport {
  const tap = new FrameTap(
    options.isClient,
    options.plan.budgetOctets <= MEMORY_IS_SHORT_OCTETS,
    options.complain,
  );
  return {
    remoteAddress: transport.remoteAddress,
    localAddress: transport.localAddress,
    alpn: transport.alpn,
    identity: transport.identity,
    start: (events) => transport.start(events),
    write(octets, done) {
      tap.push(octets);
      transport.write(octets, done);
    },
    closeWrite: () => transport.closeWrite(),
    close: () => transport.close(),
  };
}
