/**
 * The table of stream states applied: the next state, or the error of whose
 * fault it is that there is none (RFC 9113 §5.1).
 *
 * @module
 */

import { ErrorCode, WireError } from "../frames/wire_error.ts";
import {
  onStreamInput,
  type StreamInput,
  type StreamState,
} from "./stream_state.ts";

/**
 * Where `input` takes a stream in `state`.
 *
 * @throws {WireError} If the peer must not send that.
 * @throws {TypeError} If we must not.
 */
export function nextStreamState(
  streamId: number,
  state: StreamState,
  input: StreamInput,
): StreamState {
  const outcome = onStreamInput(state, input);
  switch (outcome) {
    case "bug":
      throw new TypeError(
        `Cannot ${input} on stream ${streamId}: it is ${state}`,
      );
    case "connectionError":
      throw new WireError(
        ErrorCode.PROTOCOL_ERROR,
        "5.1",
        `Cannot accept ${input} on stream ${streamId}: it is ${state}`,
      );
    case "streamError":
    case "late":
      throw new WireError(
        ErrorCode.STREAM_CLOSED,
        "5.1",
        `Cannot accept ${input} on stream ${streamId}: it is ${state}`,
        { scope: "stream", streamId },
      );
    default:
      return outcome;
  }
}
