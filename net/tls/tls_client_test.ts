import { assert, assertEquals, assertRejects } from "@std/assert";
import { certificates } from "../../tests/support/certificates/certificates.ts";
import { Prng } from "../../tests/support/memory/prng.ts";
import { Listener } from "../../tests/support/peers/sockets.ts";
import {
  dialedPair,
  testEachClient,
  testEachEngine,
  type TlsEngine,
} from "../../tests/support/rigs/tls_engines.ts";
import { TlsServer } from "../../tests/support/peers/tls_server.ts";
import { nextTurn } from "../../tests/support/watch/event_loop.ts";
import { TlsHandshakeError } from "./trust/tls_errors.ts";
import { conduitOf } from "../stream/stream_conduit.ts";
import { Socket } from "../stream/socket.ts";
import type { Stream } from "../stream/stream.ts";
import { tlsClient, type TlsClientOptions } from "./tls_client.ts";
import type { TlsAcceptorOptions } from "./tls_acceptor.ts";

const NEVER = new AbortController().signal;

interface Ends {
  readonly client: Socket;
  readonly server: Socket;
}

async function connect(
  engine: TlsEngine,
  port: number,
  options: Partial<TlsClientOptions> = {},
): Promise<Stream> {
  return await shake(engine, await engine.connect(port), options);
}

async function shake(
  engine: TlsEngine,
  stream: Stream,
  options: Partial<TlsClientOptions> = {},
): Promise<Stream> {
  const { ca, client } = await certificates();
  return await tlsClient(stream, {
    tls: engine.tls,
    credentials: { ...client, ca },
    serverName: "localhost",
    alpn: ["h2"],
    address: "127.0.0.1:8090",
    signal: NEVER,
    ...options,
  });
}

function refused(attempt: Promise<unknown>): Promise<TlsHandshakeError> {
  return assertRejects(() => attempt, TlsHandshakeError);
}

async function withEnds(
  engine: TlsEngine,
  check: (ends: Ends) => Promise<void>,
  options: Partial<TlsClientOptions> = {},
): Promise<void> {
  const accepted = Promise.withResolvers<Stream>();
  await using port = await TlsServer.open(engine, accepted.resolve);
  const client = await connect(engine, port.port, options);
  const server = await accepted.promise;
  await check({ client: new Socket(client), server: new Socket(server) });
  client.close();
  server.close();
}

testEachClient(
  "a client and a server know each other by their certificates",
  async (engine) => {
    await withEnds(engine, ({ client, server }) => {
      assertEquals(server.stream.identity.commonName, "node1");
      assertEquals(client.stream.identity.commonName, "tunnel-server");
      assertEquals([client.stream.alpn, server.stream.alpn], ["h2", "h2"]);
      assertEquals(client.stream.remoteAddress, server.stream.localAddress);
      return Promise.resolve();
    });
  },
);

testEachClient(
  "a client that offers no protocol is served without",
  async (engine) => {
    await withEnds(engine, ({ client, server }) => {
      assertEquals([client.stream.alpn, server.stream.alpn], ["", ""]);
      return Promise.resolve();
    }, { alpn: [] });
  },
);

testEachClient(
  "2 MiB go both ways between gated ends, and both are clean",
  async (engine) => {
    await withEnds(engine, async ({ client, server }) => {
      const bytes = new Prng(6).bytes(2 << 20);
      const ends = [client, server].map((socket) =>
        new Listener(conduitOf(socket.handOver()))
      );
      await Promise.all(ends.map(async (end) => {
        await end.send(bytes);
        end.conduit.end();
      }));
      for (const end of ends) {
        assertEquals(await end.closed(), { kind: "clean" });
        assertEquals(end.receivedBytes, bytes.length);
        assert(end.received.every((byte, index) => byte === bytes[index]));
      }
    });
  },
);

testEachClient("each half of a TLS connection ends alone", async (engine) => {
  await withEnds(engine, async ({ client, server }) => {
    const [ours, theirs] = [client, server].map((socket) =>
      new Listener(conduitOf(socket.handOver()))
    );
    await ours!.send(new Uint8Array(10));
    ours!.conduit.end();
    await theirs!.until(() => theirs!.ended);
    await theirs!.send(new Uint8Array(1 << 20));
    theirs!.conduit.end();
    assertEquals(await ours!.closed(), { kind: "clean" });
    assertEquals(ours!.receivedBytes, 1 << 20);
  });
});

testEachClient(
  "what came before both ends is read after both ends",
  async (engine) => {
    await withEnds(engine, async ({ client, server }) => {
      const bytes = new Prng(8).bytes(1000);
      await server.write(bytes);
      await server.closeWrite();
      await idle(20);
      await client.closeWrite();
      await idle(20);
      const into = new Uint8Array(2000);
      assertEquals(await client.fill(bytes.length), true);
      assertEquals(client.bytes, bytes);
      client.drop(bytes.length);
      assertEquals(await client.read(into), null);
      assertEquals(await server.read(into), null);
    });
  },
);

testEachClient(
  "a stalled client stalls the server, and nothing is lost",
  async (engine) => {
    await withEnds(engine, async ({ client, server }) => {
      const stalled = new Listener(conduitOf(client.handOver()), {
        consume: false,
      });
      const sender = new Listener(conduitOf(server.handOver()));
      const bytes = new Uint8Array(24 << 20);
      const sending = sender.send(bytes).then(() => sender.conduit.end());
      await stalled.until(() => stalled.receivedBytes > 0);
      // More than any buffer on the way: had it not stalled, it would be through.
      const first = await Promise.race([sending.then(() => "through"), idle()]);
      assertEquals(first, "stalled");
      assert(stalled.receivedBytes <= 128 * 1024);
      let consumed = 0;
      while (!stalled.ended) {
        const due = stalled.receivedBytes - consumed;
        consumed += due;
        if (due > 0) stalled.conduit.consumed(due);
        await stalled.until(() =>
          stalled.ended || stalled.receivedBytes > consumed
        );
      }
      await sending;
      assertEquals(stalled.receivedBytes, bytes.length);
      stalled.conduit.end();
      assertEquals(await stalled.closed(), { kind: "clean" });
    });
  },
);

// A conduit is reset when its target takes nothing more.
testEachEngine(
  "who said goodbye and is gone makes a clean end",
  async (engine) => {
    for (const isFirstHeard of [true, false]) {
      await withEnds(engine, async ({ client, server }) => {
        const listener = new Listener(conduitOf(server.handOver()));
        await client.write(new Uint8Array(10));
        await listener.until(() => listener.receivedBytes === 10);
        await client.closeWrite();
        client.close();
        if (isFirstHeard) await listener.until(() => listener.ended);
        listener.conduit.end();
        assertEquals(await listener.closed(), { kind: "clean" });
      });
    }
  },
);

testEachClient(
  "a server of another CA, name or protocol is refused in words",
  async (engine) => {
    const all = await certificates();
    const cases: [Partial<TlsClientOptions>, string][] = [
      [
        { credentials: { ...all.client, ca: all.otherCa } },
        "untrusted-certificate",
      ],
      [{ serverName: "elsewhere" }, "wrong-name"],
      [{ serverName: "127.0.0.9" }, "wrong-name"],
      [{ credentials: { ...all.client, ca: "" } }, "untrusted-certificate"],
      [{ alpn: ["smtp"] }, "no-common-alpn"],
    ];
    for (const [options, failure] of cases) {
      await using port = await TlsServer.open(
        engine,
        (socket) => socket.close(),
      );
      const error = await refused(connect(engine, port.port, options));
      assertEquals(error.failure, failure);
      assert(error.message.startsWith("Cannot connect to 127.0.0.1:8090 "));
    }
  },
);

testEachClient(
  "any one of several names will do, and no certificate of another CA",
  async (engine) => {
    const { otherCa, client } = await certificates();
    const names = {
      serverName: "edge-1",
      otherNames: ["10.0.0.7", "localhost"],
    };
    await withEnds(engine, () => Promise.resolve(), names);
    await withEnds(engine, () => Promise.resolve(), {
      serverName: "10.0.0.7",
      otherNames: ["127.0.0.1"],
    });
    await using port = await TlsServer.open(engine, (socket) => socket.close());
    for (
      const [options, failure] of [
        [{ otherNames: ["edge-2"] }, "wrong-name"],
        [{ credentials: { ...client, ca: otherCa } }, "untrusted-certificate"],
      ] as const
    ) {
      const connecting = connect(engine, port.port, { ...names, ...options });
      assertEquals((await refused(connecting)).failure, failure);
    }
  },
);

testEachClient("who asks for no verification gets none", async (engine) => {
  const { otherCa, client } = await certificates();
  await withEnds(engine, () => Promise.resolve(), {
    credentials: { ...client, ca: otherCa },
    serverName: "edge-1",
    isUnverified: true,
  });
});

testEachEngine(
  "a client that does not trust the server tells it",
  async (engine) => {
    const { client, otherCa } = await certificates();
    await using port = await TlsServer.open(engine, () => {});
    await assertRejects(
      () =>
        connect(engine, port.port, {
          credentials: { ...client, ca: otherCa },
        }),
      TlsHandshakeError,
      "not signed by a CA that is trusted here",
    );
    const { failure } = await port.refused;
    assertEquals(failure, "refused-by-peer");
  },
);

testEachClient(
  "a server that does not trust us says so at the first read",
  async (engine) => {
    const all = await certificates();
    const distrusting: TlsAcceptorOptions["credentials"] = {
      current: { ...all.server, ca: all.otherCa },
    };
    const cases = [
      { credentials: { ...all.otherClient, ca: all.ca } },
      { credentials: { ...all.expiredClient, ca: all.ca } },
      { credentials: { cert: "", key: "", ca: all.ca } },
      { credentials: { ...all.client, ca: all.ca }, server: distrusting },
    ];
    // The platform does not pass on what OpenSSL does.
    const failures = engine.tls === "platform"
      ? cases.map(() => "closed")
      : ["refused-by-peer", "refused-by-peer", "no-certificate"];
    for (const [index, { server, ...options }] of cases.entries()) {
      await using port = await TlsServer.open(
        engine,
        () => {},
        server === undefined ? {} : { credentials: server },
      );
      const client = new Socket(await connect(engine, port.port, options));
      const error = await refused(client.read(new Uint8Array(1)));
      assertEquals(error.failure, failures[index] ?? "refused-by-peer");
      assert(error.message.startsWith("Cannot connect to 127.0.0.1:8090 "));
      assert(/our certificate|client certificate/.test(error.message));
      assertEquals(port.refusals.length, 1);
      client.close();
    }
  },
);

testEachClient(
  "a conduit over TLS ends with the server's refusal",
  async (engine) => {
    const { otherClient, ca } = await certificates();
    await using port = await TlsServer.open(engine, () => {});
    const client = await connect(engine, port.port, {
      credentials: { ...otherClient, ca },
    });
    const end = await new Listener(conduitOf(client)).closed();
    assert(end.kind === "lost");
    assert(/trust our certificate|accept our certificate/.test(end.reason));
  },
);

testEachClient(
  "a server that ends before it said anything has refused us",
  async (engine) => {
    await using port = await TlsServer.open(engine, (stream) => {
      const socket = new Socket(stream);
      socket.closeWrite().then(() => socket.read(new Uint8Array(1)))
        .finally(() => socket.close());
    });
    const client = new Socket(await connect(engine, port.port));
    const { failure } = await refused(client.read(new Uint8Array(1)));
    assertEquals(failure, "closed");
    await client.closeWrite();
    client.close();
  },
);

testEachClient(
  "a server that is silent or gone does not hold a client",
  async (engine) => {
    const { peer: theirs, stream: ours } = await dialedPair(engine);
    const abort = new AbortController();
    const shaking = shake(engine, ours, { signal: abort.signal });
    abort.abort(new Error("enough"));
    await assertRejects(() => shaking, Error, "enough");
    // Our end is closed: theirs sees the end behind the client's hello.
    const buffer = new Uint8Array(65_536);
    while (await theirs.read(buffer).catch(() => null) !== null);
    theirs.close();
  },
);

testEachClient(
  "what does not speak TLS is told from what does",
  async (engine) => {
    const cases: [string, string][] = [
      ["HTTP/1.1 400 Bad Request\r\n\r\n", "not-tls"],
      ["", "closed"],
    ];
    for (const [said, failure] of cases) {
      const { peer: theirs, stream: ours } = await dialedPair(engine);
      await theirs.write(new TextEncoder().encode(said));
      await theirs.closeWrite();
      assertEquals((await refused(shake(engine, ours))).failure, failure);
      theirs.close();
    }
  },
);

/** A turn in which everything that was ready has happened, many times over. */
async function idle(turns = 200): Promise<"stalled"> {
  for (let turn = 0; turn < turns; turn++) {
    await nextTurn();
  }
  return "stalled";
}
