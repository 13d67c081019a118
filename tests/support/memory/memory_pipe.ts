/**
 * Two HTTP/2 engines joined in memory: what one puts out, the other takes in,
 * cut at random or not at all. Synchronous, so a test says when bytes move.
 *
 * @module
 */

import type { Connection } from "../../../proto/streams/connection.ts";
import type { Prng } from "./prng.ts";

/** See the module description. */
export class MemoryPipe {
  /** Bytes that went from `a` to `b`, and back. */
  bytesAb = 0;
  bytesBa = 0;

  /** @param prng Cuts the bytes into chunks of 1 to 20,000 when given. */
  constructor(
    private readonly a: Connection,
    private readonly b: Connection,
    private readonly prng?: Prng,
  ) {}

  /** Moves bytes both ways until neither end has any. */
  settle(): void {
    while (this.step());
  }

  /** Moves one batch each way; `false` if there was none. */
  step(): boolean {
    const ab = this.#move(this.a, this.b);
    const ba = this.#move(this.b, this.a);
    this.bytesAb += ab;
    this.bytesBa += ba;
    return ab + ba > 0;
  }

  #move(from: Connection, to: Connection): number {
    const batch = from.takeOutput();
    if (batch === undefined) return 0;
    const bytes = batch.length;
    if (this.prng === undefined) to.receive(batch);
    else this.#deliverCut(batch, to, this.prng);
    from.outputWritten();
    return bytes;
  }

  #deliverCut(batch: Uint8Array, to: Connection, prng: Prng): void {
    for (let at = 0; at < batch.length;) {
      const bytes = 1 + prng.below(prng.pick([12, 1500, 20_000]));
      // A copy that is wiped afterwards: views must not outlive the call.
      const chunk = batch.slice(at, at + bytes);
      to.receive(chunk);
      chunk.fill(0xee);
      at += bytes;
    }
  }
}
