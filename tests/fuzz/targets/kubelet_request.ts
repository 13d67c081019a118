/**
 * Requests to kubelets: whatever comes in, what leaves is a request that can be
 * read in one way only, and not a byte more than belongs to it.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { BodyFraming } from "../../../net/http1/framing.ts";
import { RequestReader } from "../../../net/http1/head.ts";
import { MessageError } from "../../../net/http1/refusal.ts";
import {
  forwardedHead,
  type KubeletRequest,
  kubeletRequestOf,
} from "../../../server/kubelet/kubelet_request.ts";
import { requestHeadOf } from "../../support/peers/http1_heads.ts";
import { cut, LINES, prngOf } from "../cutting.ts";
import type { FuzzTarget } from "../target.ts";

/** Small, so that the limit is met. */
const HEAD_BYTES_MAX = 600;

const AUTHORITY = "10.0.0.7:10250";

const WORDS = [
  ...["GET / HTTP/1.1\r\n", "HTTP/1.0", "Host: b:1\r\n", "\r\n\r\n", "\n\n"],
  ...["\r", "\n ", "\t", " :", "\0", "0\r\n\r\n", "5\r\nhello\r\n", "ffffffff"],
  ...["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "chunked"],
  ...["Transfer-Encoding : chunked\r\n", "Connection: content-length\r\n"],
  ...["Connection: Upgrade\r\nUpgrade: websocket\r\n", "Trailer: x\r\n"],
  ...["X-Tunnel-Proxy-Host: x\r\n", "/../", "%2e%2e", ";ext=1"],
];

/** See the module description. */
export const KUBELET_REQUEST: FuzzTarget = {
  ...LINES,
  name: "kubelet_request",
  seeds: [
    "GET /pods?x=1 HTTP/1.1\r\nHost: edge-1:10250\r\n\r\n",
    "POST /run/a/b/c HTTP/1.1\r\nHost: a:1\r\nContent-Length: 5\r\n\r\nhello!",
    "POST /x HTTP/1.1\r\nHost: a:1\r\nTransfer-Encoding: chunked\r\n\r\n" +
    "5\r\nhello\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\nGET /y HTTP/1.1\r\n\r\n",
    "GET /exec/a/b HTTP/1.1\r\nHost: a:1\r\nX-Tunnel-Proxy-Host: n\r\n" +
    "Connection: keep-alive, Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nearly",
    `GET / HTTP/1.1\r\nHost: a:1\r\nX: ${"x".repeat(HEAD_BYTES_MAX)}\r\n\r\n`,
  ].map(bytesOf),
  dictionary: WORDS.map(bytesOf),

  run(input) {
    const whole = forwarded([input.slice()]);
    assertEquals(forwarded(cut(input, prngOf(input))), whole);
    return whole.kind;
  },
};

/** What becomes of a connection's bytes. */
interface Outcome {
  readonly kind: string;
  /** All that leaves, bytes as code points. */
  readonly text: string;
}

function forwarded(chunks: readonly Uint8Array[]): Outcome {
  const reader = new RequestReader("GET /path", HEAD_BYTES_MAX);
  try {
    for (const [index, chunk] of chunks.entries()) {
      const read = reader.push(chunk);
      chunk.fill(0xaa); // Nothing that was kept may still look at the chunk.
      if (read === undefined) continue;
      const head = kubeletRequestOf(read.head);
      return request(head, [read.rest, ...chunks.slice(index + 1)]);
    }
  } catch (error) {
    if (!(error instanceof MessageError)) throw error;
    assert(error.status >= 400 && error.status <= 505);
    return { kind: `refused ${error.status}`, text: "" };
  }
  return { kind: "incomplete", text: "" };
}

/** @throws {MessageError} */
function request(head: KubeletRequest, rest: readonly Uint8Array[]): Outcome {
  const leaving = textOf(forwardedHead(head, AUTHORITY));
  assertPlain(leaving, head);
  const body = bodyOf(head, rest);
  if (body === undefined) return { kind: "broken body", text: leaving };
  const kind = `${head.method} ${head.body.kind} ${head.upgrade ?? ""}`;
  return { kind: `${kind} ${body.isWhole}`, text: leaving + body.text };
}

/** What leaves is read in the same way by us, and hardly otherwise by others. */
function assertPlain(leaving: string, head: KubeletRequest): void {
  assert(leaving.endsWith("\r\n\r\n"));
  const lines = leaving.slice(0, -4).split("\r\n");
  assert(lines.every((line) => /^[\t\x20-\x7e\x80-\xff]+$/.test(line)));
  const named = (name: string) =>
    lines.filter((line) => line.toLowerCase().startsWith(`${name}:`));
  assertEquals(named("host"), [`Host: ${AUTHORITY}`]);
  const lengths = [...named("content-length"), ...named("transfer-encoding")];
  assert(lengths.length <= 1);
  assertEquals(named("connection").length, 1);
  assertEquals(named("upgrade").length, head.upgrade === undefined ? 0 : 1);
  assert(!lines.some((line) => /^x-tunnel-/i.test(line)));
  const again = kubeletRequestOf(requestHeadOf(...lines));
  assertEquals(again.body, head.body);
  assertEquals(textOf(forwardedHead(again, AUTHORITY)), leaving);
}

/** The bytes that belong to the body; absent: they are no body. */
function bodyOf(
  { body }: KubeletRequest,
  rest: readonly Uint8Array[],
): { readonly text: string; readonly isWhole: boolean } | undefined {
  const framing = new BodyFraming(body);
  const all = rest.map(textOf).join("");
  let taken = 0;
  try {
    for (const chunk of rest) taken += framing.take(chunk);
  } catch (error) {
    if (!(error instanceof MessageError)) throw error;
    return undefined;
  }
  const text = all.slice(0, taken);
  if (body.kind === "bytes") {
    assertEquals(taken, Math.min(body.bytes, all.length));
  } else if (framing.isDone) assertChunks(text);
  else assertEquals(taken, all.length);
  return { text, isWhole: framing.isDone };
}

/** Reads a chunked body in the plainest way; it ends where the text does. */
function assertChunks(text: string): void {
  let at = 0;
  for (;;) {
    const end = text.indexOf("\r\n", at);
    const size = parseInt(text.slice(at, end), 16);
    assert(end >= 0 && size >= 0);
    at = end + 2;
    if (size === 0) break;
    assertEquals(text.slice(at + size, at + size + 2), "\r\n");
    at += size + 2;
  }
  const trailers = text.slice(at);
  assert(trailers === "\r\n" || trailers.endsWith("\r\n\r\n"));
  assertEquals(trailers.indexOf("\r\n\r\n") + 4, Math.max(trailers.length, 3));
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}

function textOf(bytes: Uint8Array): string {
  return [...bytes].map((byte) => String.fromCharCode(byte)).join("");
}
