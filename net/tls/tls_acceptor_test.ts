import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  type Certificates,
  certificates,
} from "../../tests/support/certificates/certificates.ts";
import { Prng } from "../../tests/support/memory/prng.ts";
import {
  Listener,
  readToEnd,
  writeAll,
} from "../../tests/support/peers/sockets.ts";
import {
  acceptedPair,
  testEachEngine,
  type TlsEngine,
} from "../../tests/support/rigs/tls_engines.ts";
import { TlsHandshakeError } from "./trust/tls_errors.ts";
import { conduitOf } from "../stream/stream_conduit.ts";
import { denoStream } from "../stream/platform_stream.ts";
import { openLibc } from "../libc/libc.ts";
import { setSocketOption, SOL_SOCKET } from "../libc/socket_option.ts";
import type { Stream } from "../stream/stream.ts";
import { Socket } from "../stream/socket.ts";
import { TlsAcceptor } from "./tls_acceptor.ts";
import { nextTurn } from "../../tests/support/watch/event_loop.ts";

const text = new TextEncoder();

testEachEngine(
  "a client with a good certificate is known by it",
  async (engine) => {
    const { client, server } = await connect(engine, await certificates());
    assertEquals(server.identity.kind, "certificate");
    assertEquals(server.identity.commonName, "node1");
    assertEquals(server.identity.names, ["DNS:node1"]);
    assertEquals(server.identity.fingerprint.length, 64);
    assertEquals(server.alpn, "h2");
    client.close();
    server.close();
  },
);

testEachEngine(
  "what a client called us is known, when it named anybody",
  async (engine) => {
    const all = await certificates();
    for (const hostname of ["localhost", "127.0.0.1"]) {
      const { peer: client, stream } = await acceptedPair(engine);
      const [secured, ours] = await Promise.all([
        Deno.startTls(client, { hostname, caCerts: [all.ca] })
          .then(async (conn) => {
            await conn.handshake();
            return conn;
          }),
        new TlsAcceptor({
          ...options(engine, all),
          clientCertificate: "none",
        }).accept(stream),
      ]);
      const isName = hostname === "localhost";
      assertEquals(ours.serverName, isName ? hostname : "");
      secured.close();
      ours.close();
    }
  },
);

testEachEngine(
  "8 MiB go both ways and both ends are clean under TLS",
  async (engine) => {
    const { client, server } = await connect(engine, await certificates());
    const conduit = conduitOf(server);
    const listener = new Listener(conduit);
    const bytes = new Prng(5).bytes(8 << 20);
    const [echoed] = await Promise.all([
      readToEnd(client), // A missing close_notify would be an error here.
      writeAll(client, bytes).then(() => client.closeWrite()),
      listener.send(bytes).then(() => conduit.end()),
    ]);
    assertEquals(await listener.closed(), { kind: "clean" });
    assertEquals(echoed.length, bytes.length);
    assert(echoed.every((byte, index) => byte === bytes[index]));
    assert(listener.received.every((byte, index) => byte === bytes[index]));
    client.close();
  },
);

testEachEngine(
  "a TLS peer that vanishes without goodbye is no clean end",
  async (engine) => {
    const { client, server } = await connect(engine, await certificates());
    const listener = new Listener(conduitOf(server));
    denoStream(client).reset();
    const end = await listener.closed();
    assertEquals(end.kind, "reset");
    assertEquals(listener.ended, false);
  },
);

testEachEngine(
  "an end without TLS's goodbye is a loss, whatever came before",
  async (engine) => {
    const all = await certificates();
    using middle = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { peer, stream } = await acceptedPair(engine);
    const [client, relayed] = await Promise.all([
      Deno.connectTls({
        hostname: "127.0.0.1",
        port: (middle.addr as Deno.NetAddr).port,
        caCerts: [all.ca],
        ...all.client,
      }),
      middle.accept(),
    ]);
    const back = relay(peer, relayed);
    const there = relay(relayed, peer);
    const server = await new TlsAcceptor(options(engine, all)).accept(stream);
    const listener = new Listener(conduitOf(server));
    await writeAll(client, text.encode("half an answer"));
    await listener.until(() => listener.receivedBytes > 0);
    await peer.closeWrite(); // Somebody on the way cuts the stream.
    assertEquals(await listener.closed(), {
      kind: "lost",
      reason: "TLS connection was cut off without a goodbye",
    });
    assertEquals(listener.ended, false);
    client.close();
    await Promise.all([back, there]);
    peer.close();
    relayed.close();
  },
);

testEachEngine(
  "a client that leaves during the handshake is noticed at once",
  async (engine) => {
    const { peer, stream } = await acceptedPair(engine);
    const accepting = new TlsAcceptor(options(engine, await certificates()))
      .accept(stream);
    peer.close();
    const error = await assertRejects(() => accepting, TlsHandshakeError);
    assertEquals(error.failure, "closed");
  },
);

testEachEngine("our reset is seen by the TLS peer", async (engine) => {
  const { client, server } = await connect(engine, await certificates());
  const listener = new Listener(conduitOf(server));
  listener.conduit.reset("target was reset");
  await assertRejects(() => client.read(new Uint8Array(1)));
  assertEquals((await listener.closed()).kind, "reset");
  client.close();
});

const REFUSALS: readonly [
  name: string,
  pick: (all: Certificates) => { cert: string; key: string } | undefined,
  failure: string,
  words: string,
][] = [
  ["no", () => undefined, "no-certificate", "showed no client certificate"],
  ["another CA's", (all) => all.otherClient, "untrusted-certificate", "node1"],
  ["an expired", (all) => all.expiredClient, "expired-certificate", "expired"],
  ["a future", (all) => all.futureClient, "not-yet-valid-certificate", "yet"],
  ["a server's", (all) => all.serverOnly, "wrong-usage-certificate", "usage"],
];

for (const [name, pick, failure, words] of REFUSALS) {
  testEachEngine(
    `${name} certificate is refused with its reason`,
    async (engine) => {
      const all = await certificates();
      const [client, stream] = await tlsPair(engine, all, pick(all));
      const error = await assertRejects(
        () => new TlsAcceptor(options(engine, all)).accept(stream),
        TlsHandshakeError,
        words,
      );
      assertEquals(error.failure, failure);
      assert(error.message.startsWith("Cannot accept TLS from 127.0.0.1:"));
      await assertRejects(async () => {
        if (await client.read(new Uint8Array(1)) === null) {
          throw new Error("end");
        }
      });
      client.close();
    },
  );
}

testEachEngine(
  "an absent certificate is fine where it is optional, a bad one is not",
  async (engine) => {
    const all = await certificates();
    const rule = {
      ...options(engine, all),
      clientCertificate: "optional",
    } as const;
    const [client, stream] = await tlsPair(engine, all, undefined);
    const server = await new TlsAcceptor(rule).accept(stream);
    assertEquals(server.identity.kind, "anonymous");
    client.close();
    server.close();
    const [bad, badSocket] = await tlsPair(engine, all, all.otherClient);
    await assertRejects(
      () => new TlsAcceptor(rule).accept(badSocket),
      TlsHandshakeError,
      "not signed by a CA",
    );
    bad.close();
  },
);

testEachEngine(
  "bytes that are not TLS are refused in words",
  async (engine) => {
    const all = await certificates();
    for (
      const bytes of [
        "GET / HTTP/1.1\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "\xaa".repeat(200),
      ]
    ) {
      const { peer, stream } = await acceptedPair(engine);
      const accepting = new TlsAcceptor(options(engine, all)).accept(stream);
      await writeAll(peer, text.encode(bytes));
      const error = await assertRejects(
        () => accepting,
        TlsHandshakeError,
        "does not speak TLS",
      );
      assertEquals(error.failure, "not-tls");
      await left(peer);
    }
  },
);

testEachEngine(
  "a client that stays silent is dropped after the handshake timeout",
  async (engine) => {
    const { peer, stream } = await acceptedPair(engine);
    const error = await assertRejects(
      async () =>
        await new TlsAcceptor({
          ...options(engine, await certificates()),
          handshakeTimeoutMs: 20,
        }).accept(stream),
      TlsHandshakeError,
    );
    assertEquals(error.failure, "timeout");
    await left(peer);
  },
);

testEachEngine(
  "who is closed while it shakes hands is given up, and leaves",
  async (engine) => {
    const { peer, stream } = await acceptedPair(engine);
    let closed = 0;
    const accepting = new TlsAcceptor(options(engine, await certificates()))
      .accept(stream, () => closed++);
    const refused = assertRejects(() => accepting, TlsHandshakeError);
    stream.close();
    await refused;
    assert(closed > 0);
    await left(peer);
  },
);

testEachEngine(
  "who is refused leaves, and who is served when it is closed",
  async (engine) => {
    const all = await certificates();
    for (const [pair, calls] of [[all.otherClient, 1], [all.client, 0]]) {
      let closed = 0;
      const [client, stream] = await tlsPair(
        engine,
        all,
        pair as Certificates["client"],
      );
      const server = await new TlsAcceptor(options(engine, all))
        .accept(stream, () => closed++).catch(() => undefined);
      assertEquals(Math.min(closed, 1), calls);
      server?.close();
      assertEquals(closed > 0, true);
      client.close();
    }
  },
);

testEachEngine(
  "what was written and our goodbye leave before a close",
  async (engine) => {
    const all = await certificates();
    const chunk = new Prng(9).bytes(64 * 1024);
    // With one of them the kernel has no room at the end.
    for (let chunks = 1; chunks <= 12; chunks++) {
      const { client, server: stream } = await connect(
        engine,
        all,
        sendLittle,
      );
      const server = new Socket(stream);
      const sent = (async () => {
        for (let count = 0; count < chunks; count++) {
          await server.writeAll(chunk);
        }
        await server.closeWrite();
        server.close();
      })();
      await settles(sent, 5);
      // A missing close_notify would be an error here.
      assertEquals((await readToEnd(client)).length, chunks * chunk.length);
      await sent;
      client.close();
    }
  },
);

const SO_SNDBUF = 7;

/** The kernel takes little at once from a socket of the C library. */
function sendLittle({ descriptor }: Stream): void {
  if (descriptor === undefined) return;
  setSocketOption(openLibc()!, descriptor, SOL_SOCKET, SO_SNDBUF, 8_192);
}

async function left(peer: Deno.Conn): Promise<void> {
  await readToEnd(peer).catch(() => {});
  peer.close();
}

/** Carries bytes one way until either end gives up. */
async function relay(from: Deno.Conn, to: Deno.Conn): Promise<void> {
  const buffer = new Uint8Array(64 * 1024);
  try {
    for (;;) {
      const count = await from.read(buffer);
      if (count === null) return;
      await writeAll(to, buffer.slice(0, count));
    }
  } catch {
    // The cut that the test makes.
  }
}

function options({ tls }: TlsEngine, all: Certificates) {
  return {
    credentials: { current: { ...all.server, ca: all.ca } },
    clientCertificate: "required",
    alpn: ["h2", "http/1.1"],
    minVersion: "TLSv1.2",
    tls,
    onProblem: (line: string) => {
      throw new Error(line);
    },
  } as const;
}

async function connect(
  engine: TlsEngine,
  all: Certificates,
  tune: (stream: Stream) => void = () => {},
): Promise<{ client: Deno.TlsConn; server: Stream }> {
  const [client, stream] = await tlsPair(engine, all, all.client);
  tune(stream);
  return {
    client,
    server: await new TlsAcceptor(options(engine, all)).accept(stream),
  };
}

/** A TLS client whose handshake waits for the accepted side to begin. */
async function tlsPair(
  engine: TlsEngine,
  all: Certificates,
  pair: { cert: string; key: string } | undefined,
): Promise<[Deno.TlsConn, Stream]> {
  const listener = engine.listen();
  try {
    return await Promise.all([
      Deno.connectTls({
        hostname: "127.0.0.1",
        port: listener.address.port,
        caCerts: [all.ca],
        alpnProtocols: ["h2"],
        ...pair,
      }),
      listener.accept(),
    ]);
  } finally {
    listener.close();
  }
}

/** Whether `promise` settles within some turns of the event loop. */
async function settles(
  promise: Promise<unknown>,
  turns = 100,
): Promise<boolean> {
  let settled = false;
  promise.finally(() => settled = true);
  for (let turn = 0; turn < turns && !settled; turn++) {
    await nextTurn();
  }
  return settled;
}
