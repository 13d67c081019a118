/**
 * The HTTP CONNECT request head: any bytes give a request, a refusal or the
 * wish for more, whatever the cutting.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { ConnectHead } from "../../../net/http1/connect_head.ts";
import { cut, prngOf } from "../cutting.ts";
import type { FuzzTarget } from "../target.ts";

/** Small, so that the limit is met. */
const HEADER_BYTES_MAX = 400;

const WORDS = [
  "CONNECT",
  "HTTP/1.1",
  "GET / HTTP/1.1\r\n",
  "[::1]:443",
  "[fe80::1%25eth0]:1",
  "user@host:1",
  ":0",
  ":65536",
  "\r\n\r\n",
  "\n\n",
  "\r",
  " ",
  "Host:",
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

/** See the module description. */
export const CONNECT_HEAD: FuzzTarget = {
  name: "connect_head",
  seeds: [
    "CONNECT node-7:10250 HTTP/1.1\r\nHost: node-7:10250\r\n\r\n",
    "CONNECT 10.0.0.7:443 HTTP/1.0\r\n\r\nearly bytes",
    "CONNECT [2001:db8::1]:5432 HTTP/1.1\r\nHost: x\r\nUser-Agent: a b\r\n" +
    "Proxy-Authorization: Basic eDp5\r\n\r\n\x16\x03\x01",
    "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
    `CONNECT h:1 HTTP/1.1\r\nCookie: ${"x".repeat(HEADER_BYTES_MAX)}\r\n\r\n`,
  ].map(bytes),
  dictionary: WORDS.map(bytes),

  split(input) {
    const lines: Uint8Array[] = [];
    for (let at = 0; at < input.length;) {
      const feed = input.indexOf(0x0a, at);
      const end = feed < 0 ? input.length : feed + 1;
      lines.push(input.subarray(at, end));
      at = end;
    }
    return lines;
  },

  repair(record) {
    return record.at(-1) === 0x0a
      ? record
      : Uint8Array.of(...record, 0x0d, 0x0a);
  },

  run(input) {
    const whole = read([input.slice()]);
    assertEquals(read(cut(input, prngOf(input))), whole);
    return shapeOf(whole);
  },
};

/** The result without what the input put into it, for telling outcomes apart. */
function shapeOf(result: string): string {
  return result
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')
    .replace(/\] [0-9a-f]+$/, "] early");
}

function bytes(text: string): Uint8Array {
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}

/** The result as text, with all early bytes, or `incomplete`. */
function read(chunks: readonly Uint8Array[]): string {
  const head = new ConnectHead({ headerBytesMax: HEADER_BYTES_MAX });
  for (const [index, chunk] of chunks.entries()) {
    const result = head.push(chunk);
    if (result === undefined) {
      chunk.fill(0xaa); // Nothing that was kept may still look at the chunk.
      continue;
    }
    if (result.kind === "refusal") {
      assert(result.status >= 400 && result.status < 500);
      assert(/^[\x20-\x7e]*$/.test(result.statusText));
      return `refusal ${result.status} ${result.message}`;
    }
    const port = Number(/:(\d+)$/.exec(result.target)?.[1]);
    assert(port >= 1 && port <= 65_535);
    const rest = chunks.slice(index + 1).map((later) => later.toHex());
    const early = [result.early.toHex(), ...rest].join("");
    return `connect "${result.target}" ${
      JSON.stringify(result.headers.lines)
    } ${early}`;
  }
  return "incomplete";
}
