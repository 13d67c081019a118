/**
 * A frame as a peer sends it, in bytes of its own.
 *
 * @module
 */

import type { Frame } from "../../../proto/frames/frame.ts";
import { frameBytes, writeFrame } from "../../../proto/frames/frame_encoder.ts";

export function encodeFrame(frame: Frame): Uint8Array {
  const bytes = new Uint8Array(frameBytes(frame));
  writeFrame(bytes, 0, frame);
  return bytes;
}
