/**
 * Methods that answer one message with one message.
 *
 * @module
 */

import { INTERNAL_ERROR, reportFault } from "../sync/faults.ts";
import type { MethodHandler, ServerCall } from "./call.ts";
import { encodingOf } from "./message_reader.ts";
import { OnlyMessage } from "./only_message.ts";
import { GrpcError, StatusCode } from "./status.ts";

/** Limits of one method. */
export interface MethodLimits {
  /** Longest request accepted; 4 MiB unless given. */
  readonly messageBytesMax?: number;
}

/**
 * Makes a method of a function from request to answer.
 *
 * A `GrpcError` it rejects with becomes the call's status. Anything else is a
 * slip of ours: the caller gets INTERNAL without details, and it is reported.
 *
 * @param handler Called when the request is complete. When the caller goes away
 *   meanwhile, its answer is dropped.
 */
export function unaryMethod(
  handler: (request: Uint8Array, call: ServerCall) => Promise<Uint8Array>,
  limits: MethodLimits = {},
): MethodHandler {
  return (call) => {
    const only = new OnlyMessage("request", limits.messageBytesMax);
    only.expect(encodingOf(call.metadata));
    return {
      onBody(chunk) {
        only.push(chunk);
        call.consumed(chunk.length);
      },
      onHalfClose() {
        answer(handler, only.take(), call)
          .catch((error) => reportFault("stream", error));
      },
      onWritable() {},
      onCancel() {},
    };
  };
}

async function answer(
  handler: (request: Uint8Array, call: ServerCall) => Promise<Uint8Array>,
  request: Uint8Array,
  call: ServerCall,
): Promise<void> {
  let response: Uint8Array;
  try {
    response = await handler(request, call);
  } catch (error) {
    if (error instanceof GrpcError) {
      call.finish(error.status);
      return;
    }
    call.finish({ code: StatusCode.INTERNAL, message: INTERNAL_ERROR });
    return reportFault("stream", error);
  }
  call.sendMessage(response);
  call.finish({ code: StatusCode.OK, message: "" });
}
