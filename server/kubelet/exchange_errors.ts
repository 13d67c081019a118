/**
 * Errors between a caller and a kubelet, in the caller's words.
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import type { Code } from "../../proto/codes/codes.ts";
import { TlsHandshakeError } from "../../net/tls/trust/tls_errors.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { dialFailureStatus } from "../../policy/refusal.ts";
import { MessageError } from "../../net/http1/refusal.ts";

/** The caller is gone, so no answer is possible. */
export class CallerLeft extends Error {
  override readonly name = "CallerLeft";
}

/** A kubelet that could not be reached; `message` says which and why. */
export class KubeletError extends Error {
  override readonly name = "KubeletError";
  readonly tunnelCode: Code = "TUN506";

  constructor(readonly status: number, message: string, cause: unknown) {
    super(message, { cause });
  }
}

/** A status line and a sentence. */
export interface KubeletRefusal {
  readonly status: number;
  readonly message: string;
}

/**
 * The error for a connection that did not come about.
 *
 * @param kubelet How to call it.
 * @throws What is our own fault.
 */
export function kubeletError(kubelet: string, error: unknown): KubeletError {
  const message = messageOf(error);
  const sentence = `Cannot reach ${kubelet}: ${message}`;
  if (error instanceof DialError) {
    // Upstream's 503 would invite clients to try again at once.
    const status = error.reason === "no-agent" ? 502 : dialFailureStatus(error);
    return new KubeletError(status, sentence, error);
  }
  if (error instanceof TlsHandshakeError) {
    const status = error.failure === "timeout" ? 504 : 502;
    return new KubeletError(status, sentence, error);
  }
  throw error;
}

/** Whether no agent was found, or the agent could not connect. */
export function isDialFailure(error: unknown): boolean {
  return error instanceof KubeletError && error.cause instanceof DialError;
}

/**
 * The answer to the caller; `undefined`: none, it is gone.
 *
 * @throws Internal errors.
 */
export function refusalOf(error: unknown): KubeletRefusal | undefined {
  if (error instanceof CallerLeft) return undefined;
  if (error instanceof MessageError || error instanceof KubeletError) {
    const { status, message } = error;
    return { status, message };
  }
  // The kubelet refuses our certificate as late as in the first read.
  if (error instanceof TlsHandshakeError || isOfTheConnection(error)) {
    const { message } = error as Error;
    return {
      status: 502,
      message: `the connection to the kubelet broke: ${message}`,
    };
  }
  throw error;
}

/** Whether a socket failed for outside reasons; other errors are ours. */
function isOfTheConnection(error: unknown): boolean {
  return error instanceof Error && !(error instanceof TypeError) &&
    !(error instanceof RangeError);
}
