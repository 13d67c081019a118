/**
 * A kubelet's answer: what its head says, and the one that leaves for the
 * caller.
 *
 * @module
 */

import type { Fields } from "../../net/http1/fields.ts";
import { answerLength, type BodyLength } from "../../net/http1/framing.ts";
import {
  headBytes,
  isInterim,
  type ResponseHead,
} from "../../net/http1/head.ts";
import { MessageError, quote } from "../../net/http1/message_error.ts";
import { connectionLines, type KubeletRequest } from "./kubelet_request.ts";

/** See the module description. */
export type KubeletAnswer =
  /** More is to come: 100 Continue and its like (RFC 9110 §15.2). */
  | { readonly kind: "interim"; readonly bytes: Uint8Array }
  /** The connection has changed its protocol. */
  | { readonly kind: "switched"; readonly bytes: Uint8Array }
  | {
    readonly kind: "final";
    readonly status: number;
    readonly bytes: Uint8Array;
    readonly body: BodyLength;
  };

/**
 * @param request What it answers.
 * @throws {MessageError} With 502.
 */
export function kubeletAnswerOf(
  answer: ResponseHead,
  request: KubeletRequest,
): KubeletAnswer {
  const { status, phrase, fields } = answer;
  const head = (connection: readonly string[]) =>
    headBytes([
      `HTTP/1.1 ${status} ${phrase}`,
      ...fields.endToEnd(() => false),
      ...connection,
    ]);
  if (isInterim(answer)) return { kind: "interim", bytes: head([]) };
  if (status === 101) {
    const upgrade = switchedTo(fields, request);
    return { kind: "switched", bytes: head(connectionLines(upgrade)) };
  }
  return {
    kind: "final",
    status,
    bytes: head(connectionLines(undefined)),
    body: answerLength(request.method, answer),
  };
}

function switchedTo(fields: Fields, { upgrade }: KubeletRequest): string {
  const seen = fields.one("upgrade");
  if (upgrade !== undefined && seen?.toLowerCase() === upgrade.toLowerCase()) {
    return seen;
  }
  throw new MessageError(
    502,
    `the kubelet changed to ${quote(seen ?? "an unnamed protocol")}, ` +
      `wanted ${upgrade ?? "none"}`,
  );
}
