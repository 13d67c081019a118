import { assert, assertEquals, assertMatch } from "@std/assert";
import { readToEnd, tcpPair } from "../../tests/support/peers/sockets.ts";
import { HTTP_CONNECTIONS_MAX, HttpPort } from "./http_port.ts";
import { REQUEST_HEAD_BYTES_MAX } from "../http1/head.ts";
import { onInternalErrors } from "../../platform/errors/internal_errors.ts";
import { denoStream } from "../stream/platform_stream.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { ScriptedStream } from "../../tests/support/memory/scripted_stream.ts";
import { slicedText } from "./sliced_text.ts";

const encode = (text: string) => new TextEncoder().encode(text);

/** What a port answers to `pieces`, to the end. */
async function answerTo(...pieces: readonly string[]): Promise<string> {
  const port = new HttpPort((request) => {
    const { pathname, searchParams, host } = new URL(request.url);
    return new Response(
      `${request.method} ${pathname} ${searchParams.has("v")} ${host}`,
    );
  });
  const [client, accepted] = await tcpPair();
  const served = port.accept(denoStream(accepted));
  for (const piece of pieces) await client.write(encode(piece));
  const answer = new TextDecoder().decode(await readToEnd(client));
  client.close();
  await served;
  assertEquals(port.connections, 0);
  return answer;
}

Deno.test("a request is answered once and the connection ended, however it is cut", async () => {
  for (
    const pieces of [
      ["GET /readyz?v HTTP/1.1\r\nHost: a:1\r\n\r\n"],
      ["GET /read", "yz?v HTTP/1.1\r\nHost: a:1\r", "\n\r\n"],
    ]
  ) {
    const answer = await answerTo(...pieces);
    assertMatch(answer, /^HTTP\/1\.1 200 OK\r\n/);
    assertMatch(answer, /\r\nconnection: close\r\n/);
    assert(answer.endsWith("\r\n\r\nGET /readyz true a:1"), answer);
  }
});

Deno.test("HEAD has the length of the body and no body", async () => {
  const answer = await answerTo("HEAD / HTTP/1.0\r\n\r\n");
  assertMatch(answer, /\r\ncontent-length: 22\r\n/);
  assert(answer.endsWith("\r\n\r\n"));
});

Deno.test("what is no request, or too long, is refused in words", async () => {
  for (
    const first of [
      "\x16\x03\x01\x00\x00",
      "GET http://elsewhere/ HTTP/1.1\r\n\r\n",
      "GET / HTTP/2.0\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: [\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
    ]
  ) {
    assertMatch(await answerTo(first), /^HTTP\/1\.1 400 Bad Request/);
  }
  const long = `GET / HTTP/1.1\r\nx: ${"y".repeat(REQUEST_HEAD_BYTES_MAX)}`;
  assertMatch(await answerTo(long), /^HTTP\/1\.1 431 /);
});

Deno.test("the oldest silent connection goes for the one too many", async () => {
  let evicted = 0;
  const port = new HttpPort(() => new Response(), () => evicted++);
  const closed: number[] = [];
  const silent = (index: number) => {
    const stream = new ScriptedStream();
    stream.onClosed = () => closed.push(index);
    return stream;
  };
  for (let index = 0; index < HTTP_CONNECTIONS_MAX; index++) {
    void port.accept(silent(index));
  }
  assertEquals([evicted, closed.length], [0, 0]);
  void port.accept(silent(HTTP_CONNECTIONS_MAX));
  assertEquals([evicted, closed], [1, [0]]);
  assertEquals(port.connections, HTTP_CONNECTIONS_MAX);
  port.close();
  assertEquals(closed.length, HTTP_CONNECTIONS_MAX + 1);
  await settled();
});

Deno.test("an answer that is made while it is sent arrives whole", async () => {
  const ask = async (head: string) => {
    const port = new HttpPort(() =>
      new Response(ReadableStream.from(["one ", "two ", "three"].map(encode)))
    );
    const [client, accepted] = await tcpPair();
    const served = port.accept(denoStream(accepted));
    await client.write(encode(head));
    const answer = new TextDecoder().decode(await readToEnd(client));
    client.close();
    await served;
    return answer;
  };
  const chunked = await ask("GET / HTTP/1.1\r\n\r\n");
  assertMatch(chunked, /\r\ntransfer-encoding: chunked\r\n/);
  assert(
    chunked.endsWith("4\r\none \r\n4\r\ntwo \r\n5\r\nthree\r\n0\r\n\r\n"),
  );
  const old = await ask("GET / HTTP/1.0\r\n\r\n");
  assert(!/chunked|content-length/.test(old));
  assert(old.endsWith("\r\n\r\none two three"));
  assert((await ask("HEAD / HTTP/1.1\r\n\r\n")).endsWith("\r\n\r\n"));
});

Deno.test("one credential reaches the handler, whatever stands around it", async () => {
  const shownOf = async (...lines: readonly string[]) => {
    const port = new HttpPort(({ headers }) =>
      new Response(headers.get("authorization") ?? "none")
    );
    const [client, accepted] = await tcpPair();
    const served = port.accept(denoStream(accepted));
    await client.write(
      encode(`GET / HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`),
    );
    const answer = new TextDecoder().decode(await readToEnd(client));
    client.close();
    await served;
    return answer.split("\r\n\r\n")[1];
  };
  assertEquals(await shownOf("Authorization: \t Bearer a b \t"), "Bearer a b");
  assertEquals(await shownOf("authorization: a", "authorization: b"), "none");
  assertEquals(await shownOf("authorization:  "), "none");
});

Deno.test("a header of blanks stops nobody", async () => {
  // To be read again for each way to part them would take minutes.
  const blanks = " ".repeat(REQUEST_HEAD_BYTES_MAX - 100);
  const startMs = performance.now();
  await answerTo(`GET / HTTP/1.1\r\nauthorization:${blanks}\x01\r\n\r\n`);
  assert(performance.now() - startMs < 2_000);
});

Deno.test("an answer that cannot be made to its end is cut off and reported", async () => {
  const received: unknown[] = [];
  const stop = onInternalErrors((_where, error) => received.push(error));
  const slip = new Error("a slip");
  const pieces = function* () {
    yield "x".repeat(40_000);
    yield "y".repeat(40_000);
    throw slip;
  };
  const port = new HttpPort(() => new Response(slicedText(pieces())));
  const [client, accepted] = await tcpPair();
  const served = port.accept(denoStream(accepted));
  await client.write(encode("GET / HTTP/1.1\r\n\r\n"));
  const answer = new TextDecoder().decode(await readToEnd(client));
  client.close();
  await served;
  stop();
  assert(!answer.endsWith("0\r\n\r\n"));
  assertEquals(received, [slip]);
});
