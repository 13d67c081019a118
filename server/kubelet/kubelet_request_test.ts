import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { FIELD_LINES_MAX } from "../../net/http1/fields.ts";
import { MessageError } from "../../net/http1/refusal.ts";
import {
  requestHeadOf,
  responseHeadOf,
} from "../../tests/support/peers/http1_heads.ts";
import {
  forwardedHead,
  type KubeletAnswer,
  kubeletAnswerOf,
  kubeletRequestOf,
} from "./kubelet_request.ts";

const LINE = "GET /pods HTTP/1.1";
const HOST = "Host: edge-1:10250";
const UPGRADE = ["Connection: upgrade", "Upgrade: websocket"];

function forwarded(...lines: string[]): string[] {
  const bytes = forwardedHead(
    kubeletRequestOf(requestHeadOf(...lines)),
    "10.0.0.7:10250",
  );
  return new TextDecoder("latin1").decode(bytes).split("\r\n");
}

Deno.test("a request leaves without what concerned its own connection", () => {
  assertEquals(
    forwarded(
      "POST /exec/a/b/c?command=ls HTTP/1.1",
      "hOsT: edge-1:10250",
      "User-Agent:  kube \t",
      "Connection: close, X, Keep-Alive",
      "x: 1",
      "Keep-Alive: 5",
      "Proxy-Authorization: secret",
      "TE: trailers",
      "Upgrade: h2c",
      "X-Tunnel-Proxy-Host: edge-1",
      "X-Tunnel-Anything: x",
      "Content-Length: 3",
      "Latin: \xe4",
    ),
    [
      "POST /exec/a/b/c?command=ls HTTP/1.1",
      "Host: 10.0.0.7:10250",
      "User-Agent: kube",
      "Content-Length: 3",
      "Latin: \xe4",
      "Connection: close",
      "",
      "",
    ],
  );
});

Deno.test("a change to a kubelet's protocol is passed on, any other is left out", () => {
  const ask = (upgrade: string) =>
    forwarded(LINE, HOST, "Connection: keep-alive, Upgrade", upgrade)
      .slice(2, -2);
  assertEquals(ask("Upgrade: SPDY/3.1"), [
    "Connection: Upgrade",
    "Upgrade: SPDY/3.1",
  ]);
  assertEquals(ask("Upgrade: websocket")[1], "Upgrade: websocket");
  assertEquals(ask("Upgrade: h2c"), ["Connection: close"]);
  assertEquals(ask("Upgrade: websocket, h2c"), ["Connection: close"]);
  assertEquals(forwarded(LINE, HOST, "Upgrade: websocket").slice(2, -2), [
    "Connection: close",
  ]);
});

// deno-fmt-ignore: the columns are the point.
const REFUSED: readonly [name: string, status: number, ...lines: string[]][] = [
  ["an empty request line",         400, "", HOST],
  ["a line of two words",           400, "GET /pods", HOST],
  ["a line with two blanks",        400, "GET  /pods HTTP/1.1", HOST],
  ["a line with a tab",             400, "GET\t/pods HTTP/1.1", HOST],
  ["HTTP/1.0",                      505, "GET /pods HTTP/1.0", HOST],
  ["HTTP/2",                        400, "PRI * HTTP/2.0", HOST],
  ["a word behind the version",     400, "GET /pods HTTP/1.1 x", HOST],
  ["CONNECT",                       501, "CONNECT edge-1:1 HTTP/1.1", HOST],
  ["TRACE",                         501, "TRACE / HTTP/1.1", HOST],
  ["a method in lower case",        501, "get / HTTP/1.1", HOST],
  ["a whole URL",                   400, "GET http://edge-2/pods HTTP/1.1", HOST],
  ["a target without a path",       400, "GET * HTTP/1.1", HOST],
  ["a fragment",                    400, "GET /pods#x HTTP/1.1", HOST],
  ["a path with ..",                400, "GET /logs/../exec/a/b HTTP/1.1", HOST],
  ["a path with an encoded ..",     400, "GET /logs/%2e%2E/exec/a/b HTTP/1.1", HOST],
  ["a path with .",                 400, "GET /./exec/a/b HTTP/1.1", HOST],
  ["a path with //",                400, "GET //exec/a/b HTTP/1.1", HOST],
  ["a path beyond ASCII",           400, "GET /\xff HTTP/1.1", HOST],
  ["no Host",                       400, LINE],
  ["two Hosts",                     400, LINE, HOST, "host: edge-2:10250"],
  ["a folded header",               400, LINE, HOST, "X: 1", " folded"],
  ["a folded header in front",      400, LINE, " folded", HOST],
  ["a blank before the colon",      400, LINE, HOST, "Content-Length : 5"],
  ["a header without a colon",      400, LINE, HOST, "nothing"],
  ["a header without a name",       400, LINE, HOST, ": x"],
  ["a CR within a header",          400, LINE, HOST, "X: a\rTransfer-Encoding: chunked"],
  ["a NUL within a header",         400, LINE, HOST, "X: a\0"],
  ["two lengths",                   400, LINE, HOST, "Content-Length: 1", "Content-Length: 1"],
  ["a length and chunks",           400, LINE, HOST, "Content-Length: 1", "Transfer-Encoding: chunked"],
  ["a body before another protocol", 400, LINE, HOST, ...UPGRADE, "Content-Length: 1"],
  ["chunks before another protocol", 400, LINE, HOST, ...UPGRADE, "Transfer-Encoding: chunked"],
  ["too many headers",              431, LINE, HOST, ...Array(FIELD_LINES_MAX).fill("a: b")],
];

for (const [name, status, ...lines] of REFUSED) {
  Deno.test(`a request with ${name} is refused with ${status}`, () => {
    const error = assertThrows(
      () => kubeletRequestOf(requestHeadOf(...lines)),
      MessageError,
    );
    assertEquals(error.status, status);
    assertMatch(error.message, /^Cannot /);
  });
}

for (
  const name of [
    "Host",
    "authorization",
    "Content-Length",
    "X-Tunnel-Proxy-Host",
  ]
) {
  Deno.test(`Connection cannot make the header ${name} disappear`, () => {
    assertThrows(
      () => forwarded(LINE, HOST, `Connection: close, ${name}`),
      MessageError,
      "which Connection names",
    );
  });
}

function answer(method: string, ...lines: string[]): KubeletAnswer {
  const request = requestHeadOf(`${method} / HTTP/1.1`, "Host: a:1");
  return kubeletAnswerOf(responseHeadOf(...lines), kubeletRequestOf(request));
}

function body(method: string, ...lines: string[]): unknown {
  const head = answer(method, ...lines);
  return head.kind === "final" ? head.body : head.kind;
}

Deno.test("the end of an answer is where RFC 9112 §6.3 says", () => {
  const length = "Content-Length: 7";
  const none = { kind: "bytes", bytes: 0 };
  assertEquals(body("GET", "HTTP/1.1 200 OK", length), {
    kind: "bytes",
    bytes: 7,
  });
  assertEquals(body("GET", "HTTP/1.1 200 OK", "Transfer-Encoding: chunked"), {
    kind: "chunked",
  });
  assertEquals(body("GET", "HTTP/1.0 200"), { kind: "untilClose" });
  assertEquals(body("HEAD", "HTTP/1.1 200 OK", length), none);
  assertEquals(body("GET", "HTTP/1.1 204 No Content"), none);
  assertEquals(body("GET", "HTTP/1.1 304 Not Modified", length), none);
  assertEquals(body("GET", "HTTP/1.1 100 Continue"), "interim");
});

Deno.test("an answer leaves without what concerned its own connection", () => {
  const head = answer(
    "GET",
    "HTTP/1.1 200 Fine",
    "Date: now",
    "Connection: keep-alive, x",
    "X: 1",
    "Keep-Alive: 5",
    "Content-Length: 0",
  );
  assertEquals(
    new TextDecoder().decode(head.bytes),
    "HTTP/1.1 200 Fine\r\nDate: now\r\nContent-Length: 0\r\n" +
      "Connection: close\r\n\r\n",
  );
});

// deno-fmt-ignore: the columns are the point.
const BROKEN: readonly [name: string, ...lines: string[]][] = [
  ["no status line",              "hello"],
  ["a status that is none",       "HTTP/1.1 099 x"],
  ["HTTP/2",                      "HTTP/2 200 OK"],
  ["two lengths",                 "HTTP/1.1 200 OK", "Content-Length: 1", "Content-Length: 2"],
  ["a length and chunks",         "HTTP/1.1 200 OK", "Content-Length: 1", "Transfer-Encoding: chunked"],
  ["a folded header",             "HTTP/1.1 200 OK", "A: b", " c"],
  ["a change nobody asked for",   "HTTP/1.1 101 x", "Connection: upgrade", "Upgrade: websocket"],
];

for (const [name, ...lines] of BROKEN) {
  Deno.test(`an answer with ${name} is the kubelet's fault`, () => {
    const error = assertThrows(() => answer("GET", ...lines), MessageError);
    assertEquals(error.status, 502);
  });
}

Deno.test("the protocol that a kubelet changes to is the one that was asked for", () => {
  const request = kubeletRequestOf(requestHeadOf(
    "GET / HTTP/1.1",
    "Host: a:1",
    "Connection: Upgrade",
    "Upgrade: SPDY/3.1",
  ));
  const lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: spdy/3.1"];
  assertEquals(
    kubeletAnswerOf(responseHeadOf(...lines), request).kind,
    "switched",
  );
  for (const other of ["Upgrade: websocket", "X: 1"]) {
    assertThrows(
      () => kubeletAnswerOf(responseHeadOf(lines[0]!, other), request),
      MessageError,
      "the kubelet changed to",
    );
  }
});
