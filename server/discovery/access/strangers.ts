/**
 * Streams of callers that have shown no certificate and were not let in yet:
 * they cost whoever makes them nothing, so the one that has waited longest makes
 * room for the next, and who has a certificate waits beside them.
 *
 * @module
 */

import { StatusCode } from "../../../proto/grpc/status.ts";
import type { Status } from "../../../proto/grpc/status.ts";

/** Tokens are looked at within ten seconds, a few at once. */
export const WAITING_MAX = 256;

/** What waits. */
export interface WaitingStream {
  end(status: Status): void;
}

/** See the module description. */
export class WaitingStrangers<Stream extends WaitingStream> {
  readonly #streams = new Set<Stream>();

  add(stream: Stream): void {
    this.#streams.add(stream);
    if (this.#streams.size <= WAITING_MAX) return;
    const [oldest] = this.#streams;
    this.#streams.delete(oldest!);
    oldest!.end({
      code: StatusCode.RESOURCE_EXHAUSTED,
      message: `More than ${WAITING_MAX} clients without a certificate ask ` +
        "for discovery at once; try again",
    });
  }

  /** It was let in, or is gone. */
  delete(stream: Stream): void {
    this.#streams.delete(stream);
  }
}
