/**
 * Heads of HTTP/1.1: any bytes give a head, a refusal or a request for more,
 * whatever the cutting; and a head that is a request to CONNECT has a port.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { ConnectAnswerReader } from "../../../net/http1/connect_answer.ts";
import {
  CONNECT_EXAMPLE,
  connectRequestOf,
} from "../../../net/http1/connect_request.ts";
import {
  type RequestHead,
  RequestReader,
  type WithRest,
} from "../../../net/http1/head.ts";
import { MessageError } from "../../../net/http1/refusal.ts";
import { cut, LINES, prngOf } from "../cutting.ts";
import type { FuzzTarget } from "../target.ts";

/** Small, so that the limit is met. */
const HEAD_BYTES_MAX = 400;

const FIELD_WORDS = ["\r\n\r\n", "\n\n", "\r", " ", "\t", "\0", "Host:", " :"];

const REQUEST_WORDS = [
  ...["CONNECT", "HTTP/1.1", "GET / HTTP/1.1\r\n", "[::1]:443", "user@host:1"],
  ...["[fe80::1%25eth0]:1", ":0", ":65536", "Tunnel-Node: a\r\n"],
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  ...FIELD_WORDS,
];

const RESPONSE_WORDS = [
  ...[
    "HTTP/1.1",
    "HTTP/1.0 200",
    "HTTP/1.1 100 x\r\n\r\n",
    "502",
    "101",
    "204",
  ],
  ...["Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "99999999999"],
  ...FIELD_WORDS,
];

/** See the module description. */
export const HTTP1_REQUEST: FuzzTarget = {
  ...LINES,
  name: "http1_request",
  seeds: [
    "CONNECT node-7:10250 HTTP/1.1\r\nHost: node-7:10250\r\n\r\n",
    "CONNECT 10.0.0.7:443 HTTP/1.0\r\n\r\nearly bytes",
    "CONNECT [2001:db8::1]:5432 HTTP/1.1\r\nHost: x\r\nUser-Agent: a b\r\n" +
    "Proxy-Authorization: Basic eDp5\r\n\r\n\x16\x03\x01",
    "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
    `CONNECT h:1 HTTP/1.1\r\nCookie: ${"x".repeat(HEAD_BYTES_MAX)}\r\n\r\n`,
  ].map(bytesOf),
  dictionary: REQUEST_WORDS.map(bytesOf),

  run(input) {
    const whole = request([input.slice()]);
    assertEquals(request(cut(input, prngOf(input))), whole);
    return shapeOf(whole);
  },
};

/** See the module description. */
export const HTTP1_RESPONSE: FuzzTarget = {
  ...LINES,
  name: "http1_response",
  seeds: [
    "HTTP/1.1 200 Connection Established\r\n\r\nearly bytes",
    "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.0 204\r\n\r\n",
    "HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\nno agent\nMORE",
    "HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\nconnection refused",
    "HTTP/1.1 405 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
  ].map(bytesOf),
  dictionary: RESPONSE_WORDS.map(bytesOf),

  run(input) {
    const whole = answer([input.slice()]);
    assertEquals(answer(cut(input, prngOf(input))), whole);
    return shapeOf(whole);
  },
};

/** The result without what the input put into it, for telling outcomes apart. */
function shapeOf(result: string): string {
  return result
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')
    .replace(/\] [0-9a-f]+$/, "] early");
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}

/** The result as text, with all that follows the head, or `incomplete`. */
function request(chunks: readonly Uint8Array[]): string {
  const reader = new RequestReader(CONNECT_EXAMPLE, HEAD_BYTES_MAX);
  return outcomeOf(chunks, (chunk, later) => {
    const read = reader.push(chunk);
    return read === undefined ? undefined : requestText(read, later);
  });
}

/** @throws {MessageError} */
function requestText(
  { head, rest }: WithRest<RequestHead>,
  later: () => string,
): string {
  assert(/^[\x21-\x7e]+$/.test(head.method + head.target));
  assert(head.fields.lines.every((line) => !/[\0\r\n]/.test(line)));
  const { target } = connectRequestOf(head);
  const port = Number(/:(\d+)$/.exec(target)?.[1]);
  assert(port >= 1 && port <= 65_535);
  const lines = JSON.stringify(head.fields.lines);
  return `connect "${target}" ${lines} ${rest.toHex()}${later()}`;
}

/** What CONNECT was answered, as text, with all that follows it. */
function answer(chunks: readonly Uint8Array[]): string {
  const reader = new ConnectAnswerReader("it");
  const outcome = outcomeOf(chunks, (chunk, later) => {
    const said = reader.push(chunk);
    if (said?.kind !== "granted") return said && JSON.stringify(said);
    return `granted [] ${said.early.toHex()}${later()}`;
  });
  return outcome === "incomplete"
    ? JSON.stringify(reader.end() ?? outcome)
    : outcome;
}

function outcomeOf(
  chunks: readonly Uint8Array[],
  push: (chunk: Uint8Array, later: () => string) => string | undefined,
): string {
  for (const [index, chunk] of chunks.entries()) {
    const later = () =>
      chunks.slice(index + 1).map((each) => each.toHex()).join("");
    try {
      const outcome = push(chunk, later);
      if (outcome !== undefined) return outcome;
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      assert(error.status >= 400 && error.status <= 505);
      // What is shown of the start depends on the cutting.
      return shapeOf(`refusal ${error.status} ${error.message}`);
    }
    chunk.fill(0xaa); // Nothing that was kept may still look at the chunk.
  }
  return "incomplete";
}
