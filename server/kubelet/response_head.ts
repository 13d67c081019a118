/**
 * The head of a kubelet's answer, and the one that leaves for the caller.
 *
 * @module
 */

import { type BodyLength, bodyLength, NO_BODY } from "./body_framing.ts";
import { headBytes, HeaderFields } from "./header_fields.ts";
import { MessageError, quote } from "./message_error.ts";
import { connectionLines, type RequestHead } from "./request_head.ts";

/** What a kubelet's fault is called towards the caller. */
const BAD_GATEWAY = 502;

/** See the module description. */
export type ResponseHead =
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
 * Reads a response head.
 *
 * @param request What it answers.
 * @throws {MessageError} With 502.
 */
export function parseResponseHead(
  lines: readonly string[],
  request: RequestHead,
): ResponseHead {
  const [statusLine = "", ...rest] = lines;
  const match = /^HTTP\/1\.[01] ([1-5][0-9]{2})(?: ([\t\x20-\x7e\x80-\xff]*))?$/
    .exec(statusLine);
  if (match === null) {
    throw new MessageError(
      BAD_GATEWAY,
      `the kubelet answered ${quote(statusLine)}, which is no HTTP/1.1`,
    );
  }
  const status = Number(match[1]);
  const fields = HeaderFields.parse(rest, BAD_GATEWAY);
  const head = (connection: readonly string[]) =>
    headBytes([
      `HTTP/1.1 ${status} ${match[2] ?? ""}`,
      ...fields.endToEnd(() => false, BAD_GATEWAY),
      ...connection,
    ]);
  if (status === 101) {
    const upgrade = switchedTo(fields, request);
    return { kind: "switched", bytes: head(connectionLines(upgrade)) };
  }
  if (status < 200) return { kind: "interim", bytes: head([]) };
  return {
    kind: "final",
    status,
    bytes: head(connectionLines(undefined)),
    body: bodyOf(status, fields, request),
  };
}

function switchedTo(fields: HeaderFields, { upgrade }: RequestHead): string {
  const seen = fields.one("upgrade", BAD_GATEWAY);
  if (upgrade !== undefined && seen?.toLowerCase() === upgrade.toLowerCase()) {
    return seen;
  }
  throw new MessageError(
    BAD_GATEWAY,
    `the kubelet changed to ${quote(seen ?? "an unnamed protocol")}, ` +
      `wanted ${upgrade ?? "none"}`,
  );
}

/** RFC 9112 §6.3. */
function bodyOf(
  status: number,
  fields: HeaderFields,
  { method }: RequestHead,
): BodyLength {
  const length = bodyLength(fields, { kind: "untilClose" }, BAD_GATEWAY);
  const hasNone = method === "HEAD" || status === 204 || status === 304;
  return hasNone ? NO_BODY : length;
}
