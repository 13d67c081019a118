/**
 * Requests that cannot be served, over the real socket: each is answered with a
 * sentence, and the server stays up.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { RawCaller } from "../support/peers/raw_caller.ts";
import { readToEnd, writeAll } from "../support/peers/sockets.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";

const encode = (text: string) => new TextEncoder().encode(text);

const HEAD_OF_64_KIB = `CONNECT node:80 HTTP/1.1\r\nX: ${
  "x".repeat(65_536)
}\r\n\r\n`;

// deno-fmt-ignore: the columns are the point.
const BAD_REQUESTS: readonly [what: string, request: string, answer: RegExp][] = [
  ["no port",            "CONNECT node HTTP/1.1\r\n\r\n",            /^HTTP\/1\.1 400 .*there is no port/],
  ["port 0",             "CONNECT node:0 HTTP/1.1\r\n\r\n",          /^HTTP\/1\.1 400 .*port is .0., wanted 1/],
  ["port 70000",         "CONNECT node:70000 HTTP/1.1\r\n\r\n",      /^HTTP\/1\.1 400 .*70000/],
  ["a name as port",     "CONNECT node:http HTTP/1.1\r\n\r\n",       /^HTTP\/1\.1 400 .*wanted 1 to 65535/],
  ["user information",   "CONNECT me@node:80 HTTP/1.1\r\n\r\n",      /^HTTP\/1\.1 400 .*user information/],
  ["bare IPv6",          "CONNECT 2001:db8::1:443 HTTP/1.1\r\n\r\n", /^HTTP\/1\.1 400 .*brackets/],
  ["a URL",              "CONNECT http://node/ HTTP/1.1\r\n\r\n",    /^HTTP\/1\.1 400 .*host:port/],
  ["no host",            "CONNECT :80 HTTP/1.1\r\n\r\n",             /^HTTP\/1\.1 400 .*the host is empty/],
  ["a head of 64 KiB",   HEAD_OF_64_KIB,                              /^HTTP\/1\.1 431 .*32768 bytes/],
  ["another method",     "GET http://node/ HTTP/1.1\r\n\r\n",        /^HTTP\/1\.1 405 .*only supports CONNECT/],
  ["no version",         "CONNECT node:80\r\n\r\n",                  /^HTTP\/1\.1 400 .*request line/],
  ["a folded header",    "CONNECT n:80 HTTP/1.1\r\nA: b\r\n c\r\n\r\n", /^HTTP\/1\.1 400 .*header line/],
];

Deno.test("CONNECT that makes no sense is answered with a sentence", async (t) => {
  await using tunnel = await Tunnel.open();
  for (const [what, request, answer] of BAD_REQUESTS) {
    await t.step(what, async () => {
      const path = tunnel.socketPath;
      using conn = await Deno.connect({ transport: "unix", path });
      const reading = readToEnd(conn);
      await writeAll(conn, encode(request)).catch(() => {});
      const text = new TextDecoder().decode(await reading);
      assertMatch(text, answer);
      const [head, body] = text.split("\r\n\r\n");
      assert(head!.includes("Connection: close"));
      assertMatch(body!, /^.{20,}\n$/);
    });
  }
  assertEquals(
    tunnel.log.matching(/^CONNECT refused/).length,
    BAD_REQUESTS.length,
  );
});

Deno.test("a mode that is not served says which one is", async () => {
  for (const mode of ["grpc", "http-connect"] as const) {
    await using tunnel = await Tunnel.open({ mode });
    const path = tunnel.socketPath;
    using conn = await Deno.connect({ transport: "unix", path });
    const said = mode === "grpc"
      ? "CONNECT node:80 HTTP/1.1\r\n\r\n"
      : "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    await writeAll(conn, encode(said));
    await readToEnd(conn).catch(() => {});
    await tunnel.log.until(new RegExp(`--mode=${mode}`));
  }
});

Deno.test("an unknown gRPC method is UNIMPLEMENTED, by its name", async () => {
  await using tunnel = await Tunnel.open();
  const caller = await RawCaller.open(tunnel.socketPath, "/No/Such");
  await caller.receives(/^status UNIMPLEMENTED .*\/No\/Such/);
  caller.close();
});

Deno.test("bad protobuf is INVALID_ARGUMENT; other calls go on", async () => {
  await using tunnel = await Tunnel.linked("streams");
  const fine = await tunnel.connect("grpc");
  const caller = await RawCaller.open(tunnel.socketPath);
  caller.script.call.sendMessage(Uint8Array.of(0xff, 0xff, 0xff));
  await caller.receives(/^status INVALID_ARGUMENT ./);
  caller.close();
  fine.caller.send("fine");
  await fine.target.received(4);
});

Deno.test("a target of a protocol that is not served says so", async () => {
  await using tunnel = await Tunnel.linked("streams");
  const wanted = {
    sctp: /dial sctp: unknown network sctp/,
    unix: /--allow-unix/,
  };
  for (const [protocol, message] of Object.entries(wanted)) {
    const target = { protocol, address: "/run/secret.sock" };
    const error = await tunnel.dial("grpc", { target }).then(
      () => new Error("was let in"),
      (error: Error) => error,
    );
    assertMatch(error.message, message);
  }
});
