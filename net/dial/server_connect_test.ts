import { assert, assertEquals, assertRejects } from "@std/assert";
import { X509Certificate } from "node:crypto";
import { certificates } from "../../tests/support/certificates/certificates.ts";
import {
  ConnectError,
  connectTls,
  shownCertificates,
  type TlsConnectOptions,
} from "./server_connect.ts";
import {
  listenSecure,
  type SecureListenerOptions,
} from "../listen/secure_listener.ts";
import { TLS } from "../libc/choices.ts";
import { usualLimiter } from "../../tests/support/rigs/usual_limiter.ts";
import { Credentials } from "../tls/trust/credentials.ts";
import { TlsHandshakeError } from "../tls/trust/tls_errors.ts";
import { Socket } from "../stream/socket.ts";
import type { Stream } from "../stream/stream.ts";

const text = new TextEncoder();

/** Both engines keep the same promises to each other. */
for (
  const [engine, client, server] of [
    ["node:tls", { tls: "platform" }, "platform"],
    ["OpenSSL", { tls: "openssl" }, "openssl"],
    ["node:tls to OpenSSL", { tls: "platform" }, "openssl"],
    ["OpenSSL to node:tls", { tls: "openssl" }, "platform"],
  ] as const
) {
  Deno.test(`agent and server know each other and exchange bytes, ${engine}`, async () => {
    await withPort({ tls: server }, async (port) => {
      const agent = await connect(port, client);
      const seen = await port.connection();
      assertEquals(seen.stream.identity.commonName, "node1");
      assertEquals(seen.stream.alpn, "tunnel/1");
      assertEquals(agent.stream.alpn, "tunnel/1");
      assert(seen.stream.remoteAddress.startsWith("127.0.0.1:"));
      await agent.say(text.encode("hello"));
      assertEquals(await seen.received(5), "hello");
      await seen.say(text.encode("welcome"));
      assertEquals(await agent.received(7), "welcome");
      agent.stream.closeWrite();
      await seen.ended;
      await agent.ended;
      assertEquals(await agent.closed, undefined);
      assertEquals(await seen.closed, undefined);
    });
  });

  Deno.test(`TLS to a plain port and to no port are told apart, ${engine}`, async () => {
    using plain = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = plain.addr as Deno.NetAddr;
    const answering = plain.accept().then(async (conn) => {
      await conn.read(new Uint8Array(1024));
      await conn.write(text.encode("HTTP/1.1 400 Bad Request\r\n\r\n"));
      return conn;
    });
    const error = await assertRejects(
      () => connect({ port }, client),
      TlsHandshakeError,
      "does not speak TLS",
    );
    assertEquals(error.failure, "not-tls");
    (await answering).close();
    const refused = await assertRejects(
      () => connect({ port: 1 }, client),
      ConnectError,
      "connection refused",
    );
    assertEquals(refused.isRefused, true);
  });

  Deno.test(`a server that stays silent costs the timeout, no more, ${engine}`, async () => {
    using silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = silent.addr as Deno.NetAddr;
    const { isRefused } = await assertRejects(
      () => connect({ port }, { ...client, timeoutMs: 20 }),
      ConnectError,
      "no answer within 20 ms",
    );
    assertEquals(isRefused, false);
  });
}

for (const tls of TLS.words) {
  Deno.test(`the agent goes through the proxy that the environment names, ${tls}`, async () => {
    await withPort({}, async (port) => {
      const proxy = startProxy(port.port);
      const agent = await connect(port, {
        tls,
        host: "tunnel-server",
        proxyEnv: {
          httpsProxy: `http://user:se%20cret@127.0.0.1:${proxy.port}`,
        },
      });
      const server = await port.connection();
      assertEquals(
        await proxy.head,
        `CONNECT tunnel-server:${port.port} HTTP/1.1\r\n` +
          `Host: tunnel-server:${port.port}\r\n` +
          `Proxy-Authorization: Basic ${btoa("user:se cret")}\r\n\r\n`,
      );
      await agent.say(text.encode("hello"));
      assertEquals(await server.received(5), "hello");
      agent.stream.close();
      await server.closed;
      await proxy.close();
    });
  });

  Deno.test(`whoever answers can be looked at, and receives nothing, ${tls}`, async () => {
    const { server } = await certificates();
    await withPort({ clientCertificate: "optional" }, async (port) => {
      const proxy = startProxy(port.port);
      for (const httpsProxy of ["", `127.0.0.1:${proxy.port}`]) {
        const [leaf] = await shownCertificates({
          host: httpsProxy === "" ? "127.0.0.1" : "tunnel-server",
          port: port.port,
          tls,
          alpn: ["h2"],
          serverName: "tunnel-server",
          proxyEnv: { httpsProxy },
          timeoutMs: 10_000,
        });
        assertEquals(
          new X509Certificate(leaf!).fingerprint256,
          new X509Certificate(server.cert).fingerprint256,
        );
        const seen = await port.connection();
        await seen.ended;
        assertEquals(await seen.received(0), "");
        seen.stream.close();
      }
      await proxy.close();
    });
  });
}

Deno.test("a proxy's refusal is reported", async () => {
  for (
    const [answer, words] of [
      ["HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "user and passwo"],
      ["HTTP/1.1 403 Forbidden\r\n\r\n", "refused with 403 Forbidden"],
      ["SSH-2.0-x\r\n\r\n", "which is no HTTP/1.1"],
      ["", "closed the connection"],
    ] as const
  ) {
    const proxy = startProxy(undefined, answer);
    await assertRejects(
      () =>
        connect({ port: 1 }, {
          host: "tunnel-server",
          proxyEnv: { httpsProxy: `127.0.0.1:${proxy.port}` },
        }),
      ConnectError,
      words,
    );
    await proxy.close();
  }
});

Deno.test("a proxy that is not there is told from the server", async () => {
  await assertRejects(
    () =>
      connect({ port: 1 }, {
        host: "tunnel-server",
        proxyEnv: { httpsProxy: "127.0.0.1:1" },
      }),
    ConnectError,
    "Cannot connect to 127.0.0.1:1 (the proxy that HTTPS_PROXY names): ",
  );
});

/** A stream with what it has heard; it ends when its peer does. */
class Ear {
  readonly ended: Promise<void>;
  readonly closed: Promise<Error | undefined>;
  readonly #socket: Socket;
  #bytes = 0;
  #text = "";
  #waiters: { bytes: number; resolve: (text: string) => void }[] = [];

  constructor(readonly stream: Stream) {
    const ended = Promise.withResolvers<void>();
    this.ended = ended.promise;
    this.#socket = new Socket(stream);
    this.closed = this.#listen(ended.resolve).then(
      () => undefined,
      (error) => error,
    ).finally(() => this.#socket.close());
  }

  async #listen(ended: () => void): Promise<void> {
    while (await this.#socket.fill()) {
      const { bytes } = this.#socket;
      this.#bytes += bytes.length;
      if (this.#text.length < 1024) {
        this.#text += new TextDecoder().decode(bytes);
      }
      this.#socket.drop(bytes.length);
      for (const waiter of this.#waiters) {
        if (waiter.bytes <= this.#bytes) waiter.resolve(this.#text);
      }
    }
    ended();
    await this.#socket.closeWrite();
  }

  say(bytes: Uint8Array): Promise<void> {
    return this.#socket.writeAll(bytes);
  }

  received(bytes: number): Promise<string> {
    if (this.#bytes >= bytes) return Promise.resolve(this.#text);
    return new Promise((resolve) => this.#waiters.push({ bytes, resolve }));
  }
}

/** Hands values from a callback to awaiting tests, in order. */
class Mailbox<Value> {
  readonly #values: Value[] = [];
  #waiters: ((value: Value) => void)[] = [];

  put(value: Value): void {
    const waiter = this.#waiters.shift();
    if (waiter) waiter(value);
    else this.#values.push(value);
  }

  take(): Promise<Value> {
    if (this.#values.length > 0) return Promise.resolve(this.#values.shift()!);
    return new Promise((resolve) => this.#waiters.push(resolve));
  }
}

interface TestPort {
  readonly port: number;
  connection(): Promise<Ear>;
}

async function withPort(
  options: Partial<SecureListenerOptions>,
  use: (port: TestPort) => Promise<void>,
): Promise<void> {
  const all = await certificates();
  const folder = await Deno.makeTempDir();
  const files = {
    cert: `${folder}/cert`,
    key: `${folder}/key`,
    ca: `${folder}/ca`,
  };
  Deno.writeTextFileSync(files.cert, all.server.cert);
  Deno.writeTextFileSync(files.key, all.server.key);
  Deno.writeTextFileSync(files.ca, all.ca);
  const credentials = Credentials.load(files);
  const connections = new Mailbox<Ear>();
  const listener = await listenSecure({
    hostname: "127.0.0.1",
    port: 0,
    credentials,
    clientCertificate: "required",
    alpn: ["tunnel/1", "h2"],
    minVersion: "TLSv1.2",
    limiter: usualLimiter(),
    ...options,
  }, {
    onConnection: (transport, admitted) => {
      admitted.known();
      connections.put(new Ear(transport));
    },
    onRefused: (error) => {
      throw error;
    },
    onProblem: (line) => {
      throw new Error(line);
    },
  });
  await use({
    port: listener.port,
    connection: () => connections.take(),
  });
  listener.close();
  await Deno.remove(folder, { recursive: true });
}

async function connect(
  to: { port: number },
  options: Partial<TlsConnectOptions>,
): Promise<Ear> {
  const all = await certificates();
  return await connectTls({
    host: "127.0.0.1",
    port: to.port,
    credentials: { ...all.client, ca: all.ca },
    alpn: ["tunnel/1", "h2"],
    serverName: "tunnel-server",
    proxyEnv: {},
    timeoutMs: 10_000,
    ...options,
  }).then((stream) => new Ear(stream));
}

/** A proxy that relays to `port`, or gives `answer` and closes. */
function startProxy(port: number | undefined, answer = "") {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const head = Promise.withResolvers<string>();
  const serving = (async () => {
    const conn = await listener.accept();
    const buffer = new Uint8Array(4096);
    const count = await conn.read(buffer);
    head.resolve(new TextDecoder().decode(buffer.subarray(0, count ?? 0)));
    if (port === undefined) {
      await conn.write(text.encode(answer));
      conn.close();
      return;
    }
    const target = await Deno.connect({ hostname: "127.0.0.1", port });
    await conn.write(text.encode("HTTP/1.1 200 OK\r\nX: y\r\n\r\n"));
    const quiet = () => {};
    await Promise.all([
      conn.readable.pipeTo(target.writable).catch(quiet),
      target.readable.pipeTo(conn.writable).catch(quiet),
    ]);
  })();
  return {
    port: (listener.addr as Deno.NetAddr).port,
    head: head.promise,
    close: async () => {
      await serving;
      listener.close();
    },
  };
}
