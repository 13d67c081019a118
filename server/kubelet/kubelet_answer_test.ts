import { assertEquals, assertThrows } from "@std/assert";
import { MessageError } from "../../net/http1/message_error.ts";
import {
  requestHeadOf,
  responseHeadOf,
} from "../../tests/support/peers/http1_heads.ts";
import {
  type KubeletAnswer,
  kubeletAnswerOf,
  kubeletRequestOf,
} from "./kubelet_request.ts";

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
