import { assert, assertEquals, assertMatch } from "@std/assert";
import { readToEnd, tcpPair } from "../../tests/support/peers/sockets.ts";
import { denoStream } from "../stream/platform_stream.ts";
import { eventAnswer } from "./event_stream.ts";
import { jsonAnswer } from "./http_endpoints.ts";
import { type HttpHandler, HttpPort, WATCHERS_MAX } from "./http_port.ts";
import { HTTP_BODY_BYTES_MAX } from "./http_request.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

async function open(port: HttpPort, request: string) {
  const [client, accepted] = await tcpPair();
  const served = port.accept(denoStream(accepted));
  await client.write(encode(request));
  return { client, served };
}

async function answerBytes(handler: HttpHandler, request: string) {
  const { client, served } = await open(new HttpPort(handler), request);
  const bytes = await readToEnd(client);
  client.close();
  await served;
  const text = decode(bytes);
  const bodyAt = text.indexOf("\r\n\r\n") + 4;
  return { text, bytes, body: text.slice(bodyAt) };
}

async function readUntil(client: Deno.Conn, pattern: RegExp): Promise<string> {
  const buffer = new Uint8Array(64 * 1024);
  let text = "";
  while (!pattern.test(text)) {
    const count = await client.read(buffer);
    if (count === null) break;
    text += decode(buffer.subarray(0, count));
  }
  return text;
}

const echo: HttpHandler = async (request) =>
  new Response(`${request.method} ${await request.text()}`);

Deno.test("a body is read by its length or in chunks, and not of a GET", async () => {
  const cases = [
    ["POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi", "POST hi"],
    [
      "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n",
      "POST hi",
    ],
    ["POST / HTTP/1.1\r\n\r\n", "POST "],
    ["GET / HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi", "GET "],
  ] as const;
  for (const [request, wanted] of cases) {
    assertEquals((await answerBytes(echo, request)).body, wanted);
  }
});

Deno.test("a body that is too long or ambiguous is refused unread", async () => {
  const long = "x".repeat(HTTP_BODY_BYTES_MAX + 1);
  const cases = [
    [`POST / HTTP/1.1\r\ncontent-length: ${long.length}\r\n\r\n`, 413],
    [
      `POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n${
        long.length.toString(16)
      }\r\n${long}\r\n0\r\n\r\n`,
      413,
    ],
    [
      "POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
      400,
    ],
    ["POST / HTTP/1.1\r\ncontent-length: +1\r\n\r\nx", 400],
  ] as const;
  for (const [request, status] of cases) {
    const { text } = await answerBytes(echo, request);
    assertMatch(text, new RegExp(`^HTTP/1\\.1 ${status} `));
  }
});

Deno.test("who sends Expect is told to go on", async () => {
  const { client, served } = await open(
    new HttpPort(echo),
    "POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n",
  );
  await readUntil(client, /100 Continue\r\n\r\n/);
  await client.write(encode("hi"));
  assertMatch(decode(await readToEnd(client)), /POST hi$/);
  client.close();
  await served;
});

Deno.test("a long answer is packed for who can read that", async () => {
  const nodes = Array.from(
    { length: 5_000 },
    (_, at) => ({ name: `edge-${at}` }),
  );
  const handler = () => jsonAnswer({ nodes });
  const ask = (accepted: string) =>
    answerBytes(
      handler,
      `GET / HTTP/1.0\r\naccept-encoding: ${accepted}\r\n\r\n`,
    );
  for (const accepted of ["deflate", "gzip;q=0", "br, xgzip"]) {
    assert(!(await ask(accepted)).text.includes("content-encoding"));
  }
  const { text, bytes } = await ask("br;q=1, gzip;q=0.5");
  assertMatch(text, /\r\ncontent-encoding: gzip\r\n/);
  const bodyAt = decode(bytes.slice(0, 1_000)).indexOf("\r\n\r\n") + 4;
  const packed = new Blob([bytes.slice(bodyAt) as Uint8Array<ArrayBuffer>]);
  assert(packed.size < 40_000, `${packed.size}`);
  const plain = packed.stream().pipeThrough(new DecompressionStream("gzip"));
  assertEquals(await new Response(plain).json(), { nodes });
  const short = await answerBytes(
    () => jsonAnswer({ a: 1 }),
    "GET / HTTP/1.1\r\naccept-encoding: gzip\r\n\r\n",
  );
  assertMatch(short.text, /\r\ncontent-length: 8\r\n/);
});

/** A port of events that come when `say` is called. */
function watched() {
  const signals: AbortSignal[] = [];
  let waiting: (() => void)[] = [];
  let count = 0;
  let asked = 0;
  const port = new HttpPort(({ signal, url }, peer) => {
    if (!url.includes("/watch")) return new Response("scraped");
    peer.known?.(url.endsWith("?view") ? "view" : "operate", () => true);
    signals.push(signal);
    return eventAnswer(
      async () => {
        asked++;
        await new Promise<void>((resolve) => waiting.push(resolve));
        return [{ name: "status", data: { count, fill: "x".repeat(100_000) } }];
      },
      signal,
    );
  });
  const say = () => {
    count++;
    const all = waiting;
    waiting = [];
    for (const one of all) one();
  };
  return { port, say, signals, askedTimes: () => asked };
}

const WATCH = "GET /watch HTTP/1.1\r\n\r\n";

Deno.test("events come as they happen, until the client goes", async () => {
  const { port, say, signals } = watched();
  const { client, served } = await open(port, WATCH);
  const head = await readUntil(client, /: ok\n\n/);
  assertMatch(head, /content-type: text\/event-stream\r\n/);
  assertEquals([port.connections, port.watchers], [0, 1]);
  say();
  assertMatch(await readUntil(client, /\n\n/), /"count":1,/);
  assertEquals(signals[0]!.aborted, false);
  client.close();
  await served;
  assertEquals([port.watchers, signals[0]!.aborted], [0, true]);
});

Deno.test("a slow reader gets fewer events and no queue", async () => {
  const { port, say, askedTimes } = watched();
  const { client, served } = await open(port, WATCH);
  await readUntil(client, /: ok\n\n/);
  // More than any socket holds; each is asked for when the last has left.
  for (let round = 0; round < 600; round++) {
    say();
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  assert(askedTimes() < 300, `asked ${askedTimes()} times`);
  client.close();
  await served;
});

Deno.test("watchers and scrapes do not crowd each other out", async () => {
  const { port } = watched();
  const watching = [];
  for (let at = 0; at < WATCHERS_MAX; at++) {
    const one = await open(port, WATCH);
    await readUntil(one.client, /: ok\n\n/);
    watching.push(one);
  }
  const late = await open(port, WATCH);
  assertMatch(decode(await readToEnd(late.client)), /^HTTP\/1\.1 503 /);
  late.client.close();
  await late.served;
  // Those with another role have places of their own.
  const viewer = await open(port, WATCH.replace("/watch", "/watch?view"));
  await readUntil(viewer.client, /: ok\n\n/);
  viewer.client.close();
  await viewer.served;
  const flood = [];
  for (let at = 0; at < 200; at++) {
    flood.push(await open(port, "GET /metr"));
  }
  assertEquals(port.watchers, WATCHERS_MAX);
  const scrape = await open(port, "GET /metrics HTTP/1.1\r\n\r\n");
  assertMatch(decode(await readToEnd(scrape.client)), /scraped$/);
  port.close();
  const all = [...watching, ...flood, scrape];
  for (const { client } of all) client.close();
  await Promise.all(all.map(({ served }) => served));
  assertEquals([port.watchers, port.connections], [0, 0]);
});

Deno.test("silence is broken by heartbeats", async () => {
  const port = new HttpPort(({ signal }) =>
    eventAnswer(() => new Promise(() => {}), signal, 5)
  );
  const { client, served } = await open(port, WATCH);
  assertMatch(await readUntil(client, /: beat\n\n/), /: beat/);
  client.close();
  await served;
});
