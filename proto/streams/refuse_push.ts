/**
 * A client's answer to a stream that its server opens.
 *
 * @module
 */

import type { StreamEvents } from "./stream.ts";

/** Push is off (RFC 9113 §8.4), so the engine never calls this. */
export function refusePush(): StreamEvents {
  throw new TypeError("Cannot accept a stream: push is disabled");
}
