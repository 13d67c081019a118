import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  type Certificates,
  certificates,
} from "../../../tests/support/certificates.ts";
import { Prng } from "../../../tests/support/prng.ts";
import {
  Listener,
  readToEnd,
  tcpPair,
  writeAll,
} from "../../../tests/support/sockets.ts";
import { TlsHandshakeError } from "../../tls/tls_errors.ts";
import { denoSocket } from "../deno_socket.ts";
import { gatedTlsSocket } from "./gated_tls_socket.ts";
import type { OctetSocket } from "../octet_socket.ts";
import { SocketConduit } from "../socket_conduit.ts";

const text = new TextEncoder();

Deno.test("a client with a good certificate is known by it", async () => {
  const { client, server } = await connect(await certificates());
  assertEquals(server.identity.kind, "certificate");
  assertEquals(server.identity.commonName, "node1");
  assertEquals(server.identity.names, ["DNS:node1"]);
  assertEquals(server.identity.fingerprint.length, 64);
  assertEquals(server.alpn, "h2");
  client.close();
  server.close();
});

Deno.test("what a client called us is known, when it named anybody", async () => {
  const all = await certificates();
  for (const hostname of ["localhost", "127.0.0.1"]) {
    const [client, server] = await tcpPair();
    const [secured, ours] = await Promise.all([
      Deno.startTls(client, { hostname, caCerts: [all.ca] })
        .then(async (conn) => {
          await conn.handshake();
          return conn;
        }),
      gatedTlsSocket(denoSocket(server), {
        ...options(all),
        clientCertificate: "none",
      }),
    ]);
    const isName = hostname === "localhost";
    assertEquals(ours.serverName, isName ? hostname : "");
    secured.close();
    ours.close();
  }
});

Deno.test("8 MiB go both ways and both ends are clean under TLS", async () => {
  const { client, server } = await connect(await certificates());
  const conduit = new SocketConduit(server);
  const listener = new Listener(conduit);
  const octets = new Prng(5).octets(8 << 20);
  const [echoed] = await Promise.all([
    readToEnd(client), // A missing close_notify would be an error here.
    writeAll(client, octets).then(() => client.closeWrite()),
    listener.send(octets).then(() => conduit.end()),
  ]);
  assertEquals(await listener.closed(), { kind: "clean" });
  assertEquals(echoed.length, octets.length);
  assert(echoed.every((octet, index) => octet === octets[index]));
  assert(listener.received.every((octet, index) => octet === octets[index]));
  client.close();
});

Deno.test("our half of TLS can end while the peer's goes on", async () => {
  const { client, server } = await connect(await certificates());
  const conduit = new SocketConduit(server);
  const listener = new Listener(conduit);
  conduit.write(text.encode("answer"));
  conduit.end();
  assertEquals(await readToEnd(client), text.encode("answer"));
  await writeAll(client, text.encode("afterwards"));
  await client.closeWrite();
  assertEquals(await listener.closed(), { kind: "clean" });
  assertEquals(listener.received, text.encode("afterwards"));
  client.close();
});

Deno.test("the peer's half of TLS can end while ours goes on", async () => {
  const { client, server } = await connect(await certificates());
  const listener = new Listener(new SocketConduit(server));
  await writeAll(client, text.encode("question"));
  await client.closeWrite();
  await listener.until(() => listener.ended);
  await listener.send(new Uint8Array(1 << 20));
  listener.conduit.end();
  assertEquals((await readToEnd(client)).length, 1 << 20);
  assertEquals(await listener.closed(), { kind: "clean" });
  client.close();
});

Deno.test("a stalled reader of TLS stalls the peer, and nothing is lost", async () => {
  const { client, server } = await connect(await certificates());
  const listener = new Listener(new SocketConduit(server), { consume: false });
  const octets = new Uint8Array(1 << 20).fill(7);
  // Send until the client's socket takes no more for a while.
  let sent = 0;
  let pending: Promise<void>;
  for (;;) {
    pending = writeAll(client, octets);
    if (!await settles(pending)) break;
    sent += octets.length;
    assert(sent < 64 << 20, "the peer was never stalled");
  }
  assert(listener.receivedOctets <= 128 * 1024);
  // Now consume: everything arrives, the end as well.
  let answered = 0;
  const finished = pending.then(() => client.closeWrite());
  while (!listener.ended) {
    const due = listener.receivedOctets - answered;
    answered += due;
    if (due > 0) listener.conduit.consumed(due);
    else {
      const seen = listener.receivedOctets;
      await listener.until(() =>
        listener.ended || listener.receivedOctets > seen
      );
    }
  }
  await finished;
  assertEquals(listener.receivedOctets, sent + octets.length);
  listener.conduit.end();
  assertEquals(await listener.closed(), { kind: "clean" });
  client.close();
});

Deno.test("a stalled TLS peer bounds what is taken", async () => {
  const { client, server } = await connect(await certificates());
  const listener = new Listener(new SocketConduit(server));
  const chunk = new Uint8Array(64 * 1024);
  let taken = 0;
  for (;;) {
    const seen = listener.writableCalls;
    const count = listener.conduit.write(chunk);
    taken += count;
    if (count === chunk.length) continue;
    const room = listener.until(() => listener.writableCalls > seen);
    if (!await settles(room)) break;
    assert(taken < 64 << 20, "never stalled");
  }
  listener.conduit.end();
  assertEquals((await readToEnd(client)).length, taken);
  client.close();
  await listener.closed();
});

Deno.test("a TLS peer that vanishes without goodbye is no clean end", async () => {
  const { client, server } = await connect(await certificates());
  const listener = new Listener(new SocketConduit(server));
  denoSocket(client).reset();
  const end = await listener.closed();
  assertEquals(end.kind, "reset");
  assertEquals(listener.ended, false);
});

Deno.test("an end without TLS's goodbye is a loss, whatever came before", async () => {
  const all = await certificates();
  using middle = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const [peer, conn] = await tcpPair();
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
  const server = await gatedTlsSocket(denoSocket(conn), options(all));
  const listener = new Listener(new SocketConduit(server));
  await writeAll(client, text.encode("half an answer"));
  await listener.until(() => listener.receivedOctets > 0);
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
});

Deno.test("a client that leaves during the handshake is noticed at once", async () => {
  const [peer, conn] = await tcpPair();
  const accepting = gatedTlsSocket(
    denoSocket(conn),
    options(await certificates()),
  );
  peer.close();
  const error = await assertRejects(() => accepting, TlsHandshakeError);
  assertEquals(error.failure, "closed");
});

Deno.test("our reset is seen by the TLS peer", async () => {
  const { client, server } = await connect(await certificates());
  const listener = new Listener(new SocketConduit(server));
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
  Deno.test(`${name} certificate is refused with its reason`, async () => {
    const all = await certificates();
    const [client, conn] = await tlsPair(all, pick(all));
    const error = await assertRejects(
      () => gatedTlsSocket(denoSocket(conn), options(all)),
      TlsHandshakeError,
      words,
    );
    assertEquals(error.failure, failure);
    assert(error.message.startsWith("Cannot accept TLS from 127.0.0.1:"));
    await assertRejects(async () => {
      if (await client.read(new Uint8Array(1)) === null) throw new Error("end");
    });
    client.close();
  });
}

Deno.test("an absent certificate is fine where it is optional, a bad one is not", async () => {
  const all = await certificates();
  const rule = { ...options(all), clientCertificate: "optional" } as const;
  const [client, conn] = await tlsPair(all, undefined);
  const server = await gatedTlsSocket(denoSocket(conn), rule);
  assertEquals(server.identity.kind, "anonymous");
  client.close();
  server.close();
  const [bad, badConn] = await tlsPair(all, all.otherClient);
  await assertRejects(
    () => gatedTlsSocket(denoSocket(badConn), rule),
    TlsHandshakeError,
    "not signed by a CA",
  );
  bad.close();
});

Deno.test("octets that are not TLS are refused in words", async () => {
  const all = await certificates();
  for (const octets of ["GET / HTTP/1.1\r\n\r\n", "\xaa".repeat(200)]) {
    const [peer, conn] = await tcpPair();
    const accepting = gatedTlsSocket(denoSocket(conn), options(all));
    await writeAll(peer, text.encode(octets));
    const error = await assertRejects(
      () => accepting,
      TlsHandshakeError,
      "does not speak TLS",
    );
    assertEquals(error.failure, "not-tls");
    await readToEnd(peer).catch(() => {});
    peer.close();
  }
});

Deno.test("a client that stays silent is dropped after the handshake timeout", async () => {
  const [peer, conn] = await tcpPair();
  const error = await assertRejects(
    async () =>
      await gatedTlsSocket(denoSocket(conn), {
        ...options(await certificates()),
        handshakeTimeoutMs: 20,
      }),
    TlsHandshakeError,
  );
  assertEquals(error.failure, "timeout");
  await readToEnd(peer).catch(() => {});
  peer.close();
});

/** Carries octets one way until either end gives up. */
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

function options(all: Certificates) {
  return {
    credentials: { ...all.server, ca: all.ca },
    clientCertificate: "required",
    alpn: ["h2", "http/1.1"],
    handshakeTimeoutMs: 10_000,
  } as const;
}

async function connect(
  all: Certificates,
): Promise<{ client: Deno.TlsConn; server: OctetSocket }> {
  const [client, conn] = await tlsPair(all, all.client);
  return {
    client,
    server: await gatedTlsSocket(denoSocket(conn), options(all)),
  };
}

/** A TLS client whose handshake waits for the accepted side to begin. */
async function tlsPair(
  all: Certificates,
  pair: { cert: string; key: string } | undefined,
): Promise<[Deno.TlsConn, Deno.Conn]> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return await Promise.all([
    Deno.connectTls({
      hostname: "127.0.0.1",
      port: (listener.addr as Deno.NetAddr).port,
      caCerts: [all.ca],
      alpnProtocols: ["h2"],
      ...pair,
    }),
    listener.accept(),
  ]);
}

/** Whether `promise` settles within some turns of the event loop. */
async function settles(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  promise.finally(() => settled = true);
  for (let turn = 0; turn < 50 && !settled; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return settled;
}
