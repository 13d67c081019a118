/**
 * Recognises the bytes with which every HTTP/2 client begins
 * (RFC 9113 §3.4), however they are cut.
 *
 * @module
 */

import { ErrorCode, WireError } from "../frames/wire_error.ts";
import { CLIENT_PREFACE } from "./frame_writer.ts";

/** How much of a peer's first bytes is shown. */
const SHOWN_BYTES = 24;

export class PrefaceMatcher {
  #matched = 0;

  /**
   * Matches the next bytes; all of a chunk is handed in.
   *
   * @returns How many bytes of `chunk` belong to the preface.
   * @throws {WireError} At the first byte that differs.
   */
  match(chunk: Uint8Array): number {
    const wanted = CLIENT_PREFACE.length - this.#matched;
    const count = Math.min(wanted, chunk.length);
    for (let index = 0; index < count; index++) {
      if (chunk[index] === CLIENT_PREFACE[this.#matched + index]) continue;
      const seen = new TextDecoder().decode(chunk.subarray(0, SHOWN_BYTES));
      throw new WireError(
        ErrorCode.PROTOCOL_ERROR,
        "3.4",
        `Cannot accept the connection preface: saw ${
          JSON.stringify(seen)
        }, wanted HTTP/2`,
      );
    }
    this.#matched += count;
    return count;
  }
}
