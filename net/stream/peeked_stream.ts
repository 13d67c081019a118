/**
 * A stream of which something was read already: that is read first.
 *
 * @module
 */

import { closedError, type Stream } from "./stream.ts";
import { StreamLayer } from "./stream_layer.ts";

export class PeekedStream extends StreamLayer {
  #first: Uint8Array | undefined;
  /** Why reading failed after these bytes; a kernel reports that only once. */
  #failure: { readonly error: unknown } | undefined;

  /** @param first Belongs to this from now on. */
  constructor(
    stream: Stream,
    first: Uint8Array,
    failure?: { readonly error: unknown },
  ) {
    super(stream);
    this.#first = first.length > 0 ? first : undefined;
    this.#failure = failure;
  }

  override read(into: Uint8Array<ArrayBuffer>): number {
    if (this.#first !== undefined) return this.#readFirst(this.#first, into);
    if (this.#failure !== undefined) throw this.#failure.error;
    return this.below.read(into);
  }

  #readFirst(first: Uint8Array, into: Uint8Array<ArrayBuffer>): number {
    if (!this.isOpen) throw closedError();
    const count = Math.min(first.length, into.length);
    into.set(count === first.length ? first : first.subarray(0, count));
    this.#first = count === first.length ? undefined : first.subarray(count);
    return count;
  }
}
