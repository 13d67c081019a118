/**
 * Nonces for renewals by proof. They are not remembered but recognised: each
 * contains when it was made, under a MAC that also covers for which source.
 *
 * @module
 */

import { createHmac, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../proto/sync/clock.ts";
import { sourceOf } from "../../net/admission/source.ts";

/** Long enough for a slow node to sign, too short to carry elsewhere. */
export const CHALLENGE_VALID_MS = 60_000;

const TIME_BYTES = 8;
const MAC_BYTES = 32;

/** Makes and checks nonces. */
export class Challenges {
  /** Of this process: a restart makes nodes ask again, no more. */
  readonly #key = crypto.getRandomValues(new Uint8Array(32));

  constructor(private readonly clock: Clock) {}

  /** A nonce for a caller at `remoteAddress`. */
  make(remoteAddress: string): Uint8Array<ArrayBuffer> {
    const nonce = new Uint8Array(TIME_BYTES + MAC_BYTES);
    new DataView(nonce.buffer).setFloat64(0, this.clock.now());
    nonce.set(
      this.#mac(nonce.subarray(0, TIME_BYTES), remoteAddress),
      TIME_BYTES,
    );
    return nonce;
  }

  /** Whether a nonce is ours, for this caller, and still fresh. */
  isGood(nonce: Uint8Array, remoteAddress: string): boolean {
    if (nonce.length !== TIME_BYTES + MAC_BYTES) return false;
    const time = nonce.subarray(0, TIME_BYTES);
    const mac = this.#mac(time, remoteAddress);
    if (!timingSafeEqual(mac, nonce.subarray(TIME_BYTES))) return false;
    const madeMs = new DataView(nonce.buffer, nonce.byteOffset).getFloat64(0);
    return this.clock.now() - madeMs < CHALLENGE_VALID_MS;
  }

  #mac(time: Uint8Array, remoteAddress: string) {
    return createHmac("sha256", this.#key)
      .update(time).update(sourceOf(remoteAddress)).digest();
  }
}
