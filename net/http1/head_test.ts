import { assert, assertEquals, assertThrows } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  INTERIM_MAX,
  isInterim,
  REQUEST_HEAD_BYTES_MAX,
  RequestReader,
  RESPONSE_HEAD_BYTES_MAX,
  ResponseReader,
} from "./head.ts";
import { MessageError } from "./refusal.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

function request(text: string) {
  return new RequestReader("GET /").push(encode(text));
}

function response(text: string) {
  return new ResponseReader("the peer").push(encode(text));
}

function refusal(action: () => unknown): string {
  const { status, message } = assertThrows(action, MessageError);
  return `${status} ${message}`;
}

Deno.test("a request's head is its line, its fields and what follows", () => {
  const { head, rest } = request(
    "POST /a?b HTTP/1.1\r\nHost: x\r\nA:1\r\na:\t2 \r\n\r\nGET / HTTP/1.0\r\n\r\n",
  )!;
  assertEquals([head.method, head.target, head.version], [
    "POST",
    "/a?b",
    "1.1",
  ]);
  assertEquals(head.fields.one("host"), "x");
  assertEquals(head.fields.all("a"), ["1", "2"]);
  assertEquals(decode(rest), "GET / HTTP/1.0\r\n\r\n");
});

Deno.test("an answer's head is its status, its phrase and its fields", () => {
  for (
    const [line, status, phrase] of [
      ["HTTP/1.1 200 Connection Established", 200, "Connection Established"],
      ["HTTP/1.0 204", 204, ""],
      ["HTTP/1.1 599 ", 599, ""],
    ] as const
  ) {
    const { head } = response(`${line}\r\nX: y\r\n\r\n`)!;
    assertEquals([head.status, head.phrase], [status, phrase]);
    assertEquals(head.fields.one("x"), "y");
  }
});

Deno.test("a head does not care how it is cut", () =>
  forAll(100, (prng) => {
    const text = "CONNECT a:1 HTTP/1.1\r\nHost: x\r\nTunnel-Node: n1\r\n\r\n!";
    const bytes = encode(text);
    const reader = new RequestReader("GET /");
    for (let at = 0; at < bytes.length;) {
      const to = Math.min(bytes.length, at + 1 + prng.below(7));
      const chunk = bytes.slice(at, to);
      const read = reader.push(chunk);
      chunk.fill(0xaa); // Nothing that was kept may still look at the chunk.
      at = to;
      if (read === undefined) continue;
      assert(at >= bytes.length - 1);
      assertEquals(read.head.fields.one("tunnel-node"), "n1");
      // What follows the blank line in later chunks is the caller's business.
      assertEquals(read.rest.length, at - (bytes.length - 1));
      return;
    }
    throw new Error("the head was never complete");
  }));

Deno.test("every strict prefix of a head is waited on", () => {
  const text = "CONNECT h:1 HTTP/1.1\r\nA: b\r\n\r\n";
  for (let size = 0; size < text.length; size++) {
    assertEquals(request(text.slice(0, size)), undefined, text.slice(0, size));
  }
  assert(request(text) !== undefined);
});

Deno.test("a head above its limit is refused, complete or not, cut anyhow", () => {
  const filler = "a".repeat(RESPONSE_HEAD_BYTES_MAX);
  for (const end of ["", "\r\n\r\n"]) {
    assertEquals(
      refusal(() => request(`GET / HTTP/1.1\r\nA: ${filler}${end}`)),
      `431 Cannot read a request head of more than ${REQUEST_HEAD_BYTES_MAX} bytes`,
    );
    assertEquals(
      refusal(() => response(`HTTP/1.1 200 OK\r\nA: ${filler}${end}`)),
      `502 the peer answered with a head of more than ${RESPONSE_HEAD_BYTES_MAX} bytes`,
    );
  }
  for (const size of [1000, Infinity]) {
    for (const excess of [0, 1]) {
      const length = REQUEST_HEAD_BYTES_MAX - 1 + 2 * excess;
      const head = "GET / HTTP/1.1\r\nx: ".padEnd(length, "y") + "\r\n\r\n";
      const reader = new RequestReader("GET /");
      const push = () => {
        for (let at = 0; at < head.length; at += size) {
          const read = reader.push(encode(head.slice(at, at + size)));
          if (read !== undefined) return read;
        }
        return undefined;
      };
      if (excess > 0) assertThrows(push, MessageError);
      else assert(push() !== undefined);
    }
  }
});

Deno.test("what follows a head has no limit of its own", () => {
  const rest = "x".repeat(REQUEST_HEAD_BYTES_MAX * 2);
  const read = request(`CONNECT h:1 HTTP/1.1\r\n\r\n${rest}`)!;
  assertEquals(read.rest.length, rest.length);
});

Deno.test("the peer is told what was wanted", () => {
  assertEquals(
    refusal(() => request("GET /\r\n\r\n")),
    '400 Cannot read the request line "GET /", wanted "GET / HTTP/1.1"',
  );
  for (
    const line of [
      ...["", " ", "GET  / HTTP/1.1", "GET\t/ HTTP/1.1", "GET / HTTP/1.1 "],
      ...["GET / HTTP/2.0", "GET / HTTP/1.11", "G\0T / HTTP/1.1", "GET /\xff"],
      ...["GET /\r HTTP/1.1", " GET / HTTP/1.1", "PRI * HTTP/2.0"],
    ]
  ) {
    assert(refusal(() => request(`${line}\r\n\r\n`)).startsWith("400 "), line);
  }
});

Deno.test("what is no answer is called what it is", () => {
  for (
    const line of [
      ...["", "SSH-2.0-banner", "HTTP/2 200 OK", "HTTP/1.1 999 OK"],
      ...["HTTP/1.1 099 x", "HTTP/1.1 20 x", "HTTP/1.1  200", "HTTP/1.1 2000"],
      "HTTP/1.1 200 \x1b[2J",
    ]
  ) {
    assertEquals(
      refusal(() => response(`${line}\r\n\r\n`)),
      `502 the peer answered ${JSON.stringify(line)}, which is no HTTP/1.1`,
    );
  }
});

Deno.test("who speaks something else is not waited for", () => {
  assertEquals(
    refusal(() => request("\x16\x03\x01\x00\x00")),
    '400 Cannot read the request line "\\u0016\\u0003\\u0001\\u0000\\u0000", ' +
      'wanted "GET / HTTP/1.1"',
  );
  assertEquals(
    refusal(() => response("-ERR unknown command\r\n")),
    '502 the peer answered "-ERR unknown command", which is no HTTP/1.1',
  );
  assertEquals(response("HT"), undefined);
});

Deno.test("interim answers come first, up to a number", () => {
  const interim = "HTTP/1.1 103 Early\r\n\r\n";
  const final = "HTTP/1.1 200 OK\r\n\r\nrest";
  const pushed = (text: string) =>
    new ResponseReader("the peer").pushFinal(encode(text))!;
  const { head, rest } = pushed(interim.repeat(INTERIM_MAX) + final);
  assertEquals([head.status, decode(rest)], [200, "rest"]);
  assertThrows(() => pushed(interim.repeat(INTERIM_MAX + 1) + final));
  const reader = new ResponseReader("the peer");
  const first = reader.push(encode(interim + final))!;
  assert(isInterim(first.head));
  assertEquals(reader.push(first.rest)?.head.status, 200);
});

Deno.test("a protocol that nobody asked to change is no final answer", () => {
  const text = encode("HTTP/1.1 101 Switching Protocols\r\n\r\n");
  assertEquals(new ResponseReader("it").push(text)?.head.status, 101);
  assertThrows(() => new ResponseReader("it").pushFinal(text), MessageError);
});
