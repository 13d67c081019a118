import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { CONNECT_EXAMPLE, connectRequestOf } from "./connect_request.ts";
import { RequestReader } from "./head.ts";
import { MessageError } from "./refusal.ts";

function read(text: string) {
  const bytes = new TextEncoder().encode(`${text}\r\n\r\n`);
  return connectRequestOf(new RequestReader(CONNECT_EXAMPLE).push(bytes)!.head);
}

const NOTHING_MORE = {
  node: undefined,
  oneAgent: false,
  maybeNode: false,
  hasOthers: false,
  id: undefined,
  trace: undefined,
};

Deno.test("kube-apiserver's request is read, and what fields of ours ask for", () => {
  // deno-fmt-ignore: the columns are the point.
  const cases = [
    ["10.0.0.1:443", "Host: 127.0.0.1",         {}],
    ["[::1]:80",     "tunnel-NODE:  n1 ",       { node: "n1" }],
    ["a:1",          "Tunnel-One-Agent: x",     { oneAgent: true }],
    ["a:1",          "tunnel-node-name: x",     { maybeNode: true }],
    ["a:1",          "tunnel-other-servers: x", { hasOthers: true }],
  ] as const;
  for (const [target, field, asked] of cases) {
    assertEquals(
      read(`CONNECT ${target} HTTP/1.1\r\n${field}`),
      { target, ...NOTHING_MORE, ...asked },
    );
  }
});

Deno.test("the id is the client's own, or the span that it sent", () => {
  const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const idOf = (...fields: string[]) =>
    read(["CONNECT a:1 HTTP/1.1", ...fields].join("\r\n")).id;
  const own = "tunnel-connection-id: 7edcba9876543210";
  assertEquals(idOf(own), "7edcba9876543210");
  assertEquals(idOf(`traceparent: ${trace}`), "00f067aa0ba902b7");
  assertEquals(idOf(`traceparent: ${trace}`, own), "7edcba9876543210");
  assertEquals(
    idOf(`traceparent: ${trace}`, `traceparent: ${trace}`),
    undefined,
  );
  assertEquals(idOf(`traceparent: ${trace}x`), undefined);
  assertEquals(idOf(own, own), undefined);
  assertEquals(idOf("tunnel-connection-id: 0000000000000001"), undefined);
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
  ["two nodes",              "CONNECT h:1 HTTP/1.1\r\nTunnel-Node: a\r\ntunnel-node: a", 400, "given twice"],
];

for (const [name, request, status, words] of REFUSED) {
  Deno.test(`CONNECT is refused with a sentence for ${name}`, () => {
    const error = assertThrows(() => read(request), MessageError);
    assertEquals(error.status, status);
    assertStringIncludes(error.message, words);
  });
}
