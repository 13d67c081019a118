import { assert, assertEquals, assertRejects } from "@std/assert";
import { certificates } from "../../tests/support/certificates/certificates.ts";
import { NO_MATERIAL } from "../tls/trust/credentials.ts";
import { HttpClient } from "./http_client.ts";

const NEVER = new AbortController().signal;

function clientOf(proxyUrl?: string): HttpClient {
  return new HttpClient({ credentials: NO_MATERIAL, proxyUrl });
}

const get = (url: string, signal: AbortSignal = NEVER) => ({
  method: "GET",
  url,
  headers: {},
  signal,
});

/** Behind it a scripted server ends the connection. */
const GOODBYE = "<end>";

/** Says what each connection is to hear, once it has said a whole head. */
class ScriptedServer implements AsyncDisposable {
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly heads: string[] = [];
  connections = 0;
  readonly #done: Promise<void>;

  /** @param answer By number of request; ends the connection: `undefined`. */
  constructor(answer: (head: string, index: number) => string | undefined) {
    this.#done = this.#serve(answer);
  }

  get address(): string {
    return `127.0.0.1:${this.#listener.addr.port}`;
  }

  get url(): string {
    return `http://${this.address}/things?a=b`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#done;
  }

  async #serve(answer: (head: string, index: number) => string | undefined) {
    const serving: Promise<void>[] = [];
    for await (const conn of this.#listener) {
      this.connections++;
      serving.push(this.#talk(conn, answer));
    }
    await Promise.all(serving);
  }

  async #talk(
    conn: Deno.Conn,
    answer: (head: string, index: number) => string | undefined,
  ): Promise<void> {
    using _ = conn;
    const decoder = new TextDecoder();
    let text = "";
    try {
      for await (const chunk of conn.readable) {
        text += decoder.decode(chunk, { stream: true });
        for (let end; (end = text.indexOf("\r\n\r\n")) >= 0;) {
          const head = text.slice(0, end);
          text = text.slice(end + 4);
          const said = answer(head, this.heads.push(head) - 1);
          if (said === undefined) return;
          const writer = conn.writable.getWriter();
          const isLast = said.endsWith(GOODBYE);
          const words = isLast ? said.slice(0, -GOODBYE.length) : said;
          await writer.write(new TextEncoder().encode(words));
          writer.releaseLock();
          if (isLast) return;
        }
      }
    } catch {
      // The client has left.
    }
  }
}

Deno.test("a kept connection carries the next request", async () => {
  await using server = new ScriptedServer((_, index) =>
    `HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n${index}`
  );
  using client = clientOf();
  for (const index of [0, 1, 2]) {
    const response = await client.request(get(server.url));
    assertEquals(await response.text(), `${index}`);
  }
  assertEquals(server.connections, 1);
  assert(server.heads[0]!.startsWith("GET /things?a=b HTTP/1.1\r\n"));
});

Deno.test("a connection that is to close is not used again", async () => {
  await using server = new ScriptedServer(() =>
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1"
  );
  using client = clientOf();
  for (const _ of [0, 1]) {
    await (await client.request(get(server.url))).text();
  }
  assertEquals(server.connections, 2);
});

Deno.test("a GET is asked again when a kept connection ends with it", async () => {
  await using server = new ScriptedServer((_, index) =>
    index === 1 ? undefined : "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
  );
  using client = clientOf();
  await client.request(get(server.url));
  assertEquals((await client.request(get(server.url))).status, 200);
  assertEquals(server.heads.length, 3);
});

Deno.test("a GET is asked once more when a new connection ends with it", async () => {
  await using server = new ScriptedServer((_, index) =>
    index === 0 || index > 1
      ? undefined
      : "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
  );
  using client = clientOf();
  assertEquals((await client.request(get(server.url))).status, 200);
  await assertRejects(
    () => client.request(get(server.url)),
    Error,
    "closed the connection without an answer",
  );
  assertEquals(server.heads.length, 4);
});

Deno.test("a POST is asked once", async () => {
  await using server = new ScriptedServer((_, index) =>
    index === 1 ? undefined : "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
  );
  using client = clientOf();
  await client.request(get(server.url));
  await assertRejects(
    () => client.request({ ...get(server.url), method: "POST" }),
    Error,
    "closed the connection without an answer",
  );
  assertEquals(server.heads.length, 2);
});

Deno.test("chunks are put together, and trailers left out", async () => {
  await using server = new ScriptedServer(() =>
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
    "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: 1\r\n\r\n"
  );
  using client = clientOf();
  for (const _ of [0, 1]) {
    const response = await client.request(get(server.url));
    assertEquals(await response.text(), "abcde");
  }
  assertEquals(server.connections, 1);
});

Deno.test("a body that is cut off is an error, not an end", async () => {
  for (const head of ["Content-Length: 5", "Transfer-Encoding: chunked"]) {
    await using server = new ScriptedServer(() =>
      `HTTP/1.1 200 OK\r\n${head}\r\n\r\n3\r\n${GOODBYE}`
    );
    using client = clientOf();
    const response = await client.request(get(server.url));
    await assertRejects(() => response.text(), Error, "within its answer");
  }
});

Deno.test("the signal ends what is still read, with its reason", async () => {
  await using server = new ScriptedServer(() =>
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"
  );
  using client = clientOf();
  const stopping = new AbortController();
  const response = await client.request(get(server.url, stopping.signal));
  const reading = response.text();
  stopping.abort(new Error("enough"));
  await assertRejects(() => reading, Error, "enough");
});

Deno.test("a large answer that is packed is unpacked", async () => {
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => {
      const packed = new Blob(["a".repeat(100_000)]).stream()
        .pipeThrough(new CompressionStream("gzip"));
      return new Response(packed, { headers: { "content-encoding": "gzip" } });
    },
  );
  using client = clientOf();
  const response = await client.request(
    get(`http://127.0.0.1:${server.addr.port}/`),
  );
  assertEquals((await response.text()).length, 100_000);
});

Deno.test("only the authority that was given counts", async () => {
  const { ca, otherCa, server: pair } = await certificates();
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {}, ...pair },
    () => new Response("hello"),
  );
  const url = `https://127.0.0.1:${server.addr.port}/`;
  using trusting = new HttpClient({
    credentials: { ...NO_MATERIAL, ca },
  });
  assertEquals(await (await trusting.request(get(url))).text(), "hello");
  for (const credentials of [{ ...NO_MATERIAL, ca: otherCa }, NO_MATERIAL]) {
    using other = new HttpClient({ credentials });
    await assertRejects(() => other.request(get(url)), Error, "give the CA");
  }
});

Deno.test("a SOCKS proxy receives the name, and its refusal is reported", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const received: number[][] = [];
  const proxy = (async () => {
    for (const status of [0, 5]) {
      using conn = await listener.accept();
      const buffer = new Uint8Array(512);
      const read = async () => buffer.slice(0, (await conn.read(buffer))!);
      received.push([...await read()]);
      await conn.write(Uint8Array.of(5, 0));
      received.push([...await read()]);
      await conn.write(Uint8Array.of(5, status, 0, 1, 127, 0, 0, 1, 0, 9));
      if (status !== 0) continue;
      await read();
      const text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
      await conn.write(new TextEncoder().encode(text));
    }
  })();
  const { port } = listener.addr;
  const url = "http://api.example:6443/";
  {
    using client = clientOf(`socks5://127.0.0.1:${port}`);
    assertEquals(await (await client.request(get(url))).text(), "hi");
  }
  using client = clientOf(`socks5://127.0.0.1:${port}`);
  await assertRejects(() => client.request(get(url)), Error, "refused: conn");
  await proxy;
  listener.close();
  const name = [...new TextEncoder().encode("api.example")];
  assertEquals(received.slice(0, 2), [
    [5, 1, 0],
    [5, 1, 0, 3, name.length, ...name, 6443 >> 8, 6443 & 0xff],
  ]);
});

Deno.test("an HTTP proxy is asked for a tunnel", async () => {
  await using proxy = new ScriptedServer((_, index) =>
    index === 0
      ? "HTTP/1.1 200 OK\r\n\r\n"
      : "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
  );
  using client = clientOf(`http://user:secret@${proxy.address}`);
  const response = await client.request(get("http://api.example/x"));
  assertEquals(await response.text(), "hi");
  assert(proxy.heads[0]!.startsWith("CONNECT api.example:80 HTTP/1.1"));
  assert(proxy.heads[0]!.includes("Proxy-Authorization: Basic "));
  assert(proxy.heads[1]!.startsWith("GET /x HTTP/1.1"));
});
