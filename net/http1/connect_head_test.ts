import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import { CONNECT_HEAD_BYTES_MAX, ConnectHead } from "./connect_head.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function read(text: string) {
  return new ConnectHead().push(encoder.encode(text));
}

Deno.test("ConnectHead reads kube-apiserver's request", () => {
  const head = read("CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  assert(head?.kind === "connect");
  assertEquals(head.target, "10.0.0.1:443");
  assertEquals(head.headers.get("host"), "127.0.0.1");
  assertEquals(head.early.length, 0);
});

Deno.test("ConnectHead keeps what stands behind the blank line", () => {
  const head = read("CONNECT [::1]:80 HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n");
  assert(head?.kind === "connect");
  assertEquals(decoder.decode(head.early), "GET / HTTP/1.0\r\n\r\n");
});

Deno.test("ConnectHead does not care how the head is cut", () =>
  forAll(100, (prng) => {
    const bytes = encoder.encode(
      "CONNECT a.example:8443 HTTP/1.1\r\nHost: x\r\nTunnel-Node: n1\r\n\r\n!",
    );
    const parser = new ConnectHead();
    for (let at = 0; at < bytes.length;) {
      const to = Math.min(bytes.length, at + 1 + prng.below(7));
      const head = parser.push(bytes.subarray(at, to));
      at = to;
      // What follows the blank line in later chunks is the caller's business.
      if (head !== undefined) {
        assert(head.kind === "connect" && at >= bytes.length - 1);
        assertEquals(head.headers.get("tunnel-node"), "n1");
        assertEquals(head.early.length, at - (bytes.length - 1));
        return;
      }
    }
    throw new Error("the head was never complete");
  }));

Deno.test("ConnectHead waits on every strict prefix", () => {
  const text = "CONNECT h:1 HTTP/1.1\r\nA: b\r\n\r\n";
  for (let size = 0; size < text.length; size++) {
    assertEquals(read(text.slice(0, size)), undefined, text.slice(0, size));
  }
  assertEquals(read(text)?.kind, "connect");
});

// deno-fmt-ignore: the columns are the point.
const REFUSED: readonly [name: string, request: string, status: number, words: string][] = [
  ["no port",                "CONNECT host HTTP/1.1",              400, "no port"],
  ["port 0",                 "CONNECT host:0 HTTP/1.1",            400, "wanted 1 to 65535"],
  ["port 70000",             "CONNECT host:70000 HTTP/1.1",        400, "wanted 1 to 65535"],
  ["a port that is a word",  "CONNECT host:https HTTP/1.1",        400, "wanted 1 to 65535"],
  ["an empty port",          "CONNECT host: HTTP/1.1",             400, "wanted 1 to 65535"],
  ["user information",       "CONNECT me@host:22 HTTP/1.1",        400, "user information"],
  ["IPv6 without brackets",  "CONNECT ::1:80 HTTP/1.1",            400, "brackets"],
  ["a bracketed name",       "CONNECT [host]:80 HTTP/1.1",         400, "not an IPv6 address"],
  ["a bracketed number",     "CONNECT [abcd]:80 HTTP/1.1",         400, "not an IPv6 address"],
  ["an empty host",          "CONNECT :80 HTTP/1.1",               400, "host is empty"],
  ["a path",                 "CONNECT /a:80 HTTP/1.1",             400, "a path was seen"],
  ["a URL",                  "CONNECT http://h:80 HTTP/1.1",       400, "a path was seen"],
  ["another method",         "GET http://h/ HTTP/1.1",             405, "only supports CONNECT"],
  ["HTTP/2's preface",       "PRI * HTTP/2.0",                     400, "request line"],
  ["another version",        "CONNECT h:1 HTTP/3.0",               400, "request line"],
  ["blanks in the line",     "CONNECT h:1  HTTP/1.1",              400, "request line"],
  ["a header with no colon", "CONNECT h:1 HTTP/1.1\r\noops",       400, "header line"],
  ["a folded header",        "CONNECT h:1 HTTP/1.1\r\nA: b\r\n c", 400, "header line"],
  ["NUL in a value",         "CONNECT h:1 HTTP/1.1\r\nA: b\0c",    400, "header line"],
  ["a carriage return",      "CONNECT h:1 HTTP/1.1\r\nA: b\rc",    400, "header line"],
  ["two nodes",              "CONNECT h:1 HTTP/1.1\r\nTunnel-Node: a\r\ntunnel-node: a", 400, "given twice"],
];

for (const [name, request, status, words] of REFUSED) {
  Deno.test(`ConnectHead refuses ${name} with a sentence`, () => {
    const head = read(`${request}\r\n\r\n`);
    assert(head?.kind === "refusal");
    assertEquals(head.status, status);
    assertStringIncludes(head.message, words);
  });
}

Deno.test("ConnectHead refuses a head above its limit, complete or not", () => {
  const filler = "a".repeat(CONNECT_HEAD_BYTES_MAX);
  const open = read(`CONNECT h:1 HTTP/1.1\r\nA: ${filler}`);
  const closed = read(`CONNECT h:1 HTTP/1.1\r\nA: ${filler}\r\n\r\n`);
  assert(open?.kind === "refusal" && closed?.kind === "refusal");
  assertEquals([open.status, closed.status], [431, 431]);
});

Deno.test("ConnectHead has no limit on early bytes of its own", () => {
  const early = "x".repeat(CONNECT_HEAD_BYTES_MAX * 2);
  const head = read(`CONNECT h:1 HTTP/1.1\r\n\r\n${early}`);
  assert(head?.kind === "connect");
  assertEquals(head.early.length, early.length);
});
