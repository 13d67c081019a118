import { assert, assertEquals, assertMatch } from "@std/assert";
import { readToEnd, tcpPair } from "../../tests/support/peers/sockets.ts";
import { httpPlan } from "../admission/connection_limits.ts";
import { descriptorsLeft } from "../libc/descriptors.ts";
import { type HttpHandler, HttpPort, LAST_ANSWER_MS } from "./http_port.ts";
import { REQUEST_HEAD_BYTES_MAX } from "../http1/head.ts";
import { onInternalErrors } from "../../platform/errors/internal_errors.ts";
import { denoStream } from "../stream/platform_stream.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { ScriptedStream } from "../../tests/support/memory/scripted_stream.ts";
import { slicedText } from "./sliced_text.ts";
import { patience } from "../../tests/support/watch/patience.ts";

const encode = (text: string) => new TextEncoder().encode(text);

/** What a port answers to `pieces`, to the end. */
async function exchange(
  port: HttpPort,
  ...pieces: readonly string[]
): Promise<string> {
  const [client, accepted] = await tcpPair();
  const served = port.accept(denoStream(accepted));
  for (const piece of pieces) await client.write(encode(piece));
  const answer = new TextDecoder().decode(await readToEnd(client));
  client.close();
  await served;
  assertEquals(port.connections, 0);
  return answer;
}

function answerTo(...pieces: readonly string[]): Promise<string> {
  const port = new HttpPort((request) => {
    const { pathname, searchParams, host } = new URL(request.url);
    return new Response(
      `${request.method} ${pathname} ${searchParams.has("v")} ${host}`,
    );
  });
  return exchange(port, ...pieces);
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

/** Four unknown ones, three of one source, in a process of so many files. */
const SMALL = httpPlan(256);

/** A port, and who was ended on it. */
function crowded(handler: HttpHandler = () => new Response()) {
  const reached: string[] = [];
  const ended: string[] = [];
  const timers = new FakeTimers();
  const port = new HttpPort(
    handler,
    (limit, scope) => reached.push(`${limit} ${scope}`),
    SMALL,
    timers,
  );
  const connect = (name: string, remoteAddress: string, said?: string) => {
    const stream = Object.assign(new ScriptedStream(), { remoteAddress });
    stream.onClosed = () => ended.push(name);
    void port.accept(stream);
    if (said !== undefined) stream.deliver(encode(said));
    return stream;
  };
  return { port, timers, reached, ended, connect };
}

Deno.test("for one silent connection too many the oldest goes: of its source, then of all", async () => {
  const { port, timers, reached, ended, connect } = crowded();
  for (const name of "abc") connect(name, `10.0.0.1:${name.charCodeAt(0)}`);
  assertEquals([reached, ended], [[], []]);
  connect("d", "10.0.0.1:9");
  assertEquals(ended, ["a"]);
  connect("e", "10.0.0.2:9");
  assertEquals(ended, ["a"]);
  connect("f", "10.0.0.3:9");
  assertEquals(ended, ["a", "b"]);
  assertEquals(reached, ["http_connections source", "http_connections all"]);
  assertEquals(port.connections, 4);
  const closed = port.close();
  assertEquals(ended.length, 2);
  timers.advance(LAST_ANSWER_MS);
  assertEquals(ended.length, 6);
  await closed;
  await settled();
  assertEquals(port.limiter.connections, 0);
});

Deno.test("a crowd ends nothing that an operator waits for", async () => {
  const { port, timers, ended, connect } = crowded((request, peer) => {
    peer.known?.(request.url.includes("view") ? "view" : "operate", () => true);
    return new Promise(() => {});
  });
  const at = "127.0.0.1:1";
  connect("operator", at, "GET /operate HTTP/1.1\r\nHost: a\r\n\r\n");
  connect("viewer", at, "GET /view HTTP/1.1\r\nHost: a\r\n\r\n");
  await settled();
  for (let n = 0; n < 100; n++) connect("silent", at);
  assertEquals(ended.filter((name) => name !== "silent"), ["viewer"]);
  // Nor do so many viewers that each has said who he is.
  for (let n = 0; n < 100; n++) {
    connect("viewer", at, "GET /view HTTP/1.1\r\nHost: a\r\n\r\n");
    await settled();
  }
  assertEquals(ended.includes("operator"), false);
  assertEquals(port.connections <= SMALL.all.connections, true);
  const closed = port.close();
  timers.advance(LAST_ANSWER_MS);
  await closed;
});

Deno.test("ways to health and administration take what links leave, and no more", () => {
  const room = (descriptors?: number) => {
    const { source, all } = httpPlan(descriptors);
    return [source.unauthenticated, all.unauthenticated, all.connections];
  };
  assertEquals(room(64), [2, 2, 6]);
  assertEquals(room(256), [3, 4, 12]);
  assertEquals(room(1_024), [12, 16, 48]);
  assertEquals(room(1_048_576), [96, 128, 384]);
  assertEquals(room(), [96, 128, 384]);
  for (const limit of [256, 1_024, 4_096, 65_536]) {
    const { unauthenticated } = httpPlan(limit).all;
    assertEquals(4 * unauthenticated <= descriptorsLeft("link", limit), true);
  }
});

Deno.test("an answer that is made while it is sent arrives whole", async () => {
  const ask = (head: string) =>
    exchange(
      new HttpPort(() =>
        new Response(ReadableStream.from(["one ", "two ", "three"].map(encode)))
      ),
      head,
    );
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
    const request = `GET / HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`;
    return (await exchange(port, request)).split("\r\n\r\n")[1];
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
  assert(performance.now() - startMs < patience(2_000));
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
  const answer = await exchange(port, "GET / HTTP/1.1\r\n\r\n");
  stop();
  assert(!answer.endsWith("0\r\n\r\n"));
  assertEquals(received, [slip]);
});

Deno.test("a port that closes answers who has connected, for a moment", async () => {
  const port = new HttpPort(() => new Response("last"));
  const [early, late] = [await tcpPair(), await tcpPair()];
  const served = [port.accept(denoStream(early[1]))];
  const closed = port.close();
  served.push(port.accept(denoStream(late[1])));
  for (const [client] of [early, late]) {
    await client.write(encode("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    const answer = new TextDecoder().decode(await readToEnd(client));
    assert(answer.endsWith("\r\n\r\nlast"), answer);
    client.close();
  }
  await Promise.all([...served, closed]);
});
