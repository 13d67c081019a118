import { assertEquals } from "@std/assert";
import { sniffProtocol } from "./first_look.ts";

const encode = (text: string) => new TextEncoder().encode(text);

Deno.test("sniffProtocol() waits on every strict prefix of the preface", () => {
  const preface = "PRI * HTTP/2.0\r\n";
  for (let size = 0; size < preface.length; size++) {
    assertEquals(sniffProtocol(encode(preface.slice(0, size))), undefined);
  }
  assertEquals(sniffProtocol(encode(preface + "\r\nSM")), "http2");
});

Deno.test("sniffProtocol() knows HTTP/1 by its method, as much as there is", () => {
  for (const text of ["C", "CONNECT a:1", "GET /", "PA", "POST /", "PUT /"]) {
    assertEquals(sniffProtocol(encode(text)), "http1", text);
  }
  for (const text of ["INVALID ", "hello", "get /", "PRx", "GETTING /"]) {
    assertEquals(sniffProtocol(encode(text)), "unknown", text);
  }
});

Deno.test("sniffProtocol() names TLS and gives up on anything else", () => {
  assertEquals(sniffProtocol(Uint8Array.of(0x16, 3, 1)), "tls");
  assertEquals(sniffProtocol(Uint8Array.of(0)), "unknown");
  assertEquals(sniffProtocol(encode("\r\n")), "unknown");
});
