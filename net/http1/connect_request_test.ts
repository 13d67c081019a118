import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { CONNECT_EXAMPLE, connectRequestOf } from "./connect_request.ts";
import { RequestReader } from "./head.ts";
import { MessageError } from "./refusal.ts";

function read(text: string) {
  const bytes = new TextEncoder().encode(`${text}\r\n\r\n`);
  return connectRequestOf(new RequestReader(CONNECT_EXAMPLE).push(bytes)!.head);
}

Deno.test("kube-apiserver's request is read", () => {
  assertEquals(read("CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1"), {
    target: "10.0.0.1:443",
    node: undefined,
    oneAgent: false,
    maybeNode: false,
    hasOthers: false,
    id: undefined,
    trace: undefined,
  });
});

Deno.test("a node, or one agent, is asked for by fields of ours", () => {
  assertEquals(read("CONNECT [::1]:80 HTTP/1.0\r\ntunnel-NODE:  n1 "), {
    target: "[::1]:80",
    node: "n1",
    oneAgent: false,
    maybeNode: false,
    hasOthers: false,
    id: undefined,
    trace: undefined,
  });
  assertEquals(
    read("CONNECT a:1 HTTP/1.1\r\nTunnel-One-Agent: x").oneAgent,
    true,
  );
  assertEquals(
    read("CONNECT a:1 HTTP/1.1\r\ntunnel-node-name: x").maybeNode,
    true,
  );
  assertEquals(
    read("CONNECT a:1 HTTP/1.1\r\ntunnel-other-servers: x").hasOthers,
    true,
  );
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
  Deno.test(`CONNECT is refused with a sentence for ${name}`, () => {
    const error = assertThrows(() => read(request), MessageError);
    assertEquals(error.status, status);
    assertStringIncludes(error.message, words);
  });
}
