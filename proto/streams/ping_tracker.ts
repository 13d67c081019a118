/**
 * The PINGs that we sent and what each was for (RFC 9113 §6.7).
 *
 * At most one of each purpose is under way, and its bytes tell which it is, so
 * an answer is never taken for another's and a made-up one for none.
 *
 * @module
 */

import { readUint32, writeUint32 } from "../frames/byte_order.ts";

/** What a PING is for; the number goes into its bytes. */
export const PingPurpose = {
  keepalive: 1,
  probe: 2,
  drain: 3,
  life: 4,
} as const;

/** See {@linkcode PingPurpose}. */
export type PingPurpose = keyof typeof PingPurpose;

const PURPOSES = Object.keys(PingPurpose) as PingPurpose[];

/** An answered PING. */
export interface PingAnswer {
  readonly purpose: PingPurpose;
  readonly rttMs: number;
}

/** Written and copied within one call, so one for all is enough. */
const opaqueBytes = new Uint8Array(8);

interface SentPing {
  readonly serial: number;
  readonly sentMs: number;
}

/** See the module description. */
export class PingTracker {
  /** Made with the first one: most connections are too short to have any. */
  #sent: Map<PingPurpose, SentPing> | undefined;
  #serial = 0;

  /** True while a PING for `purpose` is unanswered. */
  isUnderWay(purpose: PingPurpose): boolean {
    return this.#sent?.has(purpose) ?? false;
  }

  /** Bytes for a new PING, valid until the next call of any tracker. */
  begin(purpose: PingPurpose, nowMs: number): Uint8Array {
    this.#serial = (this.#serial + 1) >>> 0;
    this.#sent ??= new Map();
    this.#sent.set(purpose, { serial: this.#serial, sentMs: nowMs });
    writeUint32(opaqueBytes, 0, PingPurpose[purpose]);
    writeUint32(opaqueBytes, 4, this.#serial);
    return opaqueBytes;
  }

  /** Which of ours is answered; `undefined` if none. */
  answer(opaque: Uint8Array, nowMs: number): PingAnswer | undefined {
    const purpose = PURPOSES.find((name) =>
      PingPurpose[name] === readUint32(opaque, 0)
    );
    if (purpose === undefined) return undefined;
    const sent = this.#sent?.get(purpose);
    if (sent?.serial !== readUint32(opaque, 4)) return undefined;
    this.#sent!.delete(purpose);
    return { purpose, rttMs: nowMs - sent.sentMs };
  }
}
