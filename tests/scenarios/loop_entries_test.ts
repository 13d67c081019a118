/**
 * A slip of ours at each entry of the event loop costs the one thing that the
 * entry was about. Without its guard each of these is an uncaught error, and
 * whoever is beside it receives nothing more.
 *
 * Entries above sockets have their tests beside their code: streams of HTTP/2
 * (`proto/streams/reentrancy_test.ts`), its driver (`net/http2/http2_driver_test.ts`),
 * methods (`proto/grpc/server_test.ts`), conduits of links
 * (`proto/link/carriers_test.ts`), transfers
 * (`proto/transfer/transfer_test.ts`), the poller (`poller_test.ts`).
 */

import { LiveConduits } from "../../platform/conduits/live_conduits.ts";
import { DialReports } from "../../platform/conduits/dial_reports.ts";
import { assert, assertEquals, assertMatch } from "@std/assert";
import tls from "node:tls";
import { TargetDialer } from "../../agent/dial/target_dialer.ts";
import { Catalog } from "../../services/catalog/catalog.ts";
import { FileSource } from "../../services/catalog/sources/file.ts";
import { ConnectSession } from "../../net/http1/connect_session.ts";
import { listenSecure } from "../../net/listen/secure_listener.ts";
import { acceptLoop } from "../../net/bind/accept_loop.ts";
import { HttpPort } from "../../net/admin/http_port.ts";
import { listenTcp } from "../../net/listen/listeners.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { conduitOf } from "../../net/stream/stream_conduit.ts";
import { openDatagramSocket } from "../../net/datagram/datagram_socket.ts";
import { DenoDatagramSocket } from "../../net/datagram/deno_datagram_socket.ts";
import { denoStream } from "../../net/stream/platform_stream.ts";
import { Credentials } from "../../net/tls/trust/credentials.ts";
import type { CertificatePair } from "../support/certificates/throwaway_ca.ts";
import { WOULD_BLOCK } from "../../net/stream/stream.ts";
import type { DialError } from "../../proto/peer/dial_error.ts";
import type { ConduitEvents } from "../../proto/transfer/conduit.ts";
import { certificates } from "../support/certificates/certificates.ts";
import { FakeTimers } from "../support/memory/fake_timers.ts";
import { slip } from "../support/watch/recorded_faults.ts";
import {
  FrontendPort,
  type FrontendPortOptions,
} from "../../server/frontends/frontend_port.ts";
import { settled } from "../support/memory/conduit_probe.ts";
import { RecordedErrors } from "../support/watch/recorded_errors.ts";
import { RecordedLog } from "../support/watch/recorded_log.ts";
import { RecordedSink } from "../support/watch/recorded_sink.ts";
import { ScriptedSource, serviceOf } from "../support/watch/scripted_source.ts";
import { testEachKind } from "../support/memory/socket_kinds.ts";
import { readToEnd, tcpPair } from "../support/peers/sockets.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";
import { usualLimiter } from "../support/rigs/usual_limiter.ts";
import { TLS_ENGINES } from "../support/rigs/tls_engines.ts";

const LOOPBACK = { hostname: "127.0.0.1", port: 0 };
const BYTES = new TextEncoder().encode("bytes");

/** A test that provokes exactly one internal error, in `where`. */
function entry(
  name: string,
  where: string,
  provoke: () => Promise<void>,
): void {
  Deno.test(`loop entry: ${name}`, async () => {
    using recorded = new RecordedErrors();
    await provoke();
    assertEquals(recorded.errors, [{ where, message: "a slip" }] as never);
  });
}

// Sockets --------------------------------------------------------------------

entry("a connection that is accepted", "accept", async () => {
  const served = Promise.withResolvers<void>();
  let count = 0;
  const listener = listenTcp(LOOPBACK, {
    onConnection(conn) {
      if (count++ === 0) slip();
      conn.close();
      served.resolve();
    },
    onProblem: slip,
  });
  const { port } = listener;
  using first = await Deno.connect({ ...LOOPBACK, port });
  assertEquals(await first.read(new Uint8Array(1)), null);
  (await Deno.connect({ ...LOOPBACK, port })).close();
  await served.promise;
  listener.close();
  await listener.finished;
});

entry("a connection that the platform accepts", "accept", async () => {
  const conns = [new Closable(), new Closable()];
  let accepts = 0;
  const listener = {
    accept: () =>
      accepts < conns.length
        ? Promise.resolve(conns[accepts++]!)
        : Promise.reject(new Deno.errors.BadResource()),
  };
  const recorded: Closable[] = [];
  await acceptLoop(listener, "a port", {
    onConnection: (conn) => recorded.push(conn) === 1 && slip(),
    onProblem: slip,
  });
  assertEquals(recorded, conns);
  assertEquals(conns.map(({ isClosed }) => isClosed), [true, false]);
});

class Closable {
  isClosed = false;
  close(): void {
    this.isClosed = true;
  }
}

const SILENT: ConduitEvents = {
  onData() {},
  onWritable() {},
  onEnd() {},
  onClose() {},
};

for (const event of ["onData", "onEnd", "onWritable", "onClose"] as const) {
  testEachKind(`an ${event} that throws costs its conduit`, async (pair) => {
    using recorded = new RecordedErrors();
    const { peer, stream } = pair;
    const conduit = conduitOf(stream);
    const closed = Promise.withResolvers<unknown>();
    conduit.attach({
      ...SILENT,
      onClose: closed.resolve,
      [event]: () => {
        if (event === "onClose") closed.resolve(undefined);
        slip();
      },
    });
    if (event === "onData") await peer.write(BYTES);
    if (event === "onEnd") await peer.closeWrite();
    if (event === "onClose") conduit.reset("done");
    if (event === "onWritable") {
      while (conduit.write(new Uint8Array(1 << 20)) > 0);
      const sink = new Uint8Array(1 << 20);
      while (recorded.errors.length === 0) {
        // A reset is what it may hear of it.
        await peer.read(sink).catch(() => {});
      }
    }
    const end = await closed.promise;
    if (event !== "onClose") {
      assertEquals(end, { kind: "lost", reason: "an internal error" });
    }
    assertEquals(recorded.messages, ["a slip"]);
    peer.close();
  });
}

testEachKind(
  "a user of a stream that throws costs it",
  async ({ peer, stream }) => {
    using recorded = new RecordedErrors();
    const faulty = Promise.withResolvers<void>();
    stream.notify({ onReady: slip, onFault: faulty.resolve });
    assertEquals(stream.read(new Uint8Array(1)), WOULD_BLOCK);
    await peer.write(BYTES);
    await faulty.promise;
    stream.close();
    await settled();
    assert(recorded.messages.every((message) => message === "a slip"));
    peer.close();
  },
);

for (
  const [kind, open] of Object.entries({
    deno: () => DenoDatagramSocket.open(LOOPBACK),
    libc: () => openDatagramSocket(LOOPBACK),
  })
) {
  entry(`a datagram (${kind})`, "datagram", async () => {
    const [socket, peer] = await Promise.all([open(), open()]);
    const recorded = Promise.withResolvers<void>();
    let count = 0;
    socket.listen({
      onDatagram() {
        if (count++ === 0) slip();
        recorded.resolve();
      },
      onError: recorded.reject,
    });
    peer.listen({ onDatagram() {}, onError() {} });
    for (let sent = 0; sent < 2; sent++) peer.send(BYTES, socket.address);
    await recorded.promise;
    for (const one of [socket, peer]) {
      await new Promise<void>((resolve) => one.close(resolve));
    }
  });
}

for (const engine of TLS_ENGINES) {
  for (const event of ["onConnection", "onRefused", "a name"] as const) {
    entry(
      `an agent's handshake: ${event} (${engine.name})`,
      "handshake",
      async () => {
        const { ca, otherClient, client, server } = await certificates();
        const connected = Promise.withResolvers<void>();
        let isSpoiled = true;
        const spoil = () => {
          if (isSpoiled) {
            isSpoiled = false;
            slip();
          }
        };
        await using files = await AgentPortFiles.write({ ...server, ca });
        let isOpen = false;
        const named = {
          name: "spoiled.test",
          credentials: Object.create(files.credentials, {
            current: {
              get() {
                if (isOpen && event === "a name") spoil();
                return files.credentials.current;
              },
            },
          }) as Credentials,
        };
        const listener = await listenSecure({
          ...LOOPBACK,
          credentials: files.credentials,
          clientCertificate: "required",
          alpn: ["h2"],
          minVersion: "TLSv1.2",
          tls: engine.tls,
          named,
          limiter: usualLimiter(),
        }, {
          onConnection(stream) {
            if (event === "onConnection") spoil();
            stream.close();
            connected.resolve();
          },
          onRefused() {
            if (event === "onRefused") spoil();
          },
          onProblem: slip,
        });
        isOpen = true;
        const first = event === "onRefused" ? otherClient : client;
        for (const pair of [first, client]) {
          await hungUpOn(listener.port, pair, named.name);
        }
        await connected.promise;
        listener.close();
      },
    );
  }
}

/** Comes as an agent, and waits until it is hung up on. */
function hungUpOn(
  port: number,
  { cert, key }: CertificatePair,
  servername: string,
): Promise<void> {
  return new Promise((resolve) => {
    const socket = tls.connect({
      port,
      host: "127.0.0.1",
      servername,
      cert,
      key,
      rejectUnauthorized: false,
      ca: [],
      ALPNProtocols: ["h2"],
    } as tls.ConnectionOptions);
    socket.on("error", () => {});
    socket.on("close", () => resolve());
    socket.on("end", () => socket.end());
    socket.resume();
  });
}

/** What an agent port reads from files. */
class AgentPortFiles implements AsyncDisposable {
  readonly credentials: Credentials;

  private constructor(private readonly folder: string) {
    this.credentials = Credentials.load({
      cert: `${folder}/cert`,
      key: `${folder}/key`,
      ca: `${folder}/ca`,
    });
  }

  static async write(texts: Record<string, string>): Promise<AgentPortFiles> {
    const folder = await Deno.makeTempDir();
    for (const [name, text] of Object.entries(texts)) {
      await Deno.writeTextFile(`${folder}/${name}`, text);
    }
    return new AgentPortFiles(folder);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}

// Time -----------------------------------------------------------------------

for (const delayMs of [0, 5]) {
  entry(`a timer of ${delayMs} ms`, "timer", async () => {
    systemTimers.after(delayMs, slip);
    await new Promise<void>((resolve) => systemTimers.after(delayMs, resolve));
  });
}

// Requests -------------------------------------------------------------------

entry("a request of health or administration", "http", async () => {
  let count = 0;
  const port = new HttpPort(() => count++ === 0 ? slip() : new Response("ok"));
  const ask = async () => {
    const [client, accepted] = await tcpPair();
    const served = port.accept(denoStream(accepted));
    await client.write(new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n"));
    const answer = new TextDecoder().decode(await readToEnd(client));
    client.close();
    await served;
    return answer;
  };
  assertMatch(await ask(), /^HTTP\/1\.1 500 .*an internal error\n$/s);
  assertMatch(await ask(), /^HTTP\/1\.1 200 /);
});

entry("a caller's first bytes", "socket", async () => {
  const [client, accepted] = await tcpPair();
  const port = new FrontendPort({
    mode: "auto",
    timers: systemTimers,
    counted: slip,
  } as unknown as FrontendPortOptions);
  port.accept(denoStream(accepted));
  await client.write(new TextEncoder().encode("CONNECT a:1 HTTP/1.1\r\n"));
  // Hung up on, in order or with a reset.
  await client.read(new Uint8Array(1)).catch(() => null);
  client.close();
});

entry("a dial", "dial", async () => {
  const failed = Promise.withResolvers<DialError>();
  const conduits = new LiveConduits(systemTimers);
  const dialer = new TargetDialer({
    connect: () => Promise.reject(new Error("a slip")),
    clock: systemTimers,
    reports: new DialReports(conduits),
  });
  dialer.dial({ protocol: "tcp", address: "a:1" }, {
    connected: () => failed.reject(new Error("connected")),
    failed: failed.resolve,
  });
  const { message, reason } = await failed.promise;
  assertEquals([message, reason], [
    "Cannot dial: an internal error",
    "endpoint",
  ]);
  assertEquals(conduits.dials.size, 0);
});

entry("a dial that has connected", "dial", async () => {
  const [client, accepted] = await tcpPair();
  const failed = Promise.withResolvers<DialError>();
  const conduits = new LiveConduits(systemTimers);
  const dialer = new TargetDialer({
    connect: () => Promise.resolve(conduitOf(denoStream(accepted))),
    clock: systemTimers,
    reports: new DialReports(conduits),
  });
  dialer.dial({ protocol: "tcp", address: "a:1" }, {
    connected: slip,
    failed: failed.resolve,
  });
  const { message } = await failed.promise;
  assertEquals(message, "Cannot dial: an internal error");
  // The target is let go of, and counts no more.
  await client.read(new Uint8Array(1)).catch(() => null);
  client.close();
  await eventually("nothing is dialed", () => conduits.size === 0);
});

entry("a CONNECT", "dial", async () => {
  const [client, accepted] = await tcpPair();
  new ConnectSession(conduitOf(denoStream(accepted)), undefined, {
    timers: systemTimers,
    dial: slip,
    join() {},
    refused() {},
  });
  const head = "CONNECT a:1 HTTP/1.1\r\n\r\n";
  await client.write(new TextEncoder().encode(head));
  const answer = new TextDecoder().decode(await readToEnd(client));
  assertMatch(answer, /^HTTP\/1\.1 5\d\d .*an internal error/s);
  client.close();
});

// Catalog --------------------------------------------------------------------

entry("a change of the catalog", "catalog", () => {
  const source = new ScriptedSource("one");
  const catalog = new Catalog({
    sources: [source],
    log: new RecordedLog(),
    timers: new FakeTimers(),
    random: () => 0.5,
  });
  catalog.start();
  let reported = 0;
  catalog.follow(slip);
  catalog.follow(() => void reported++);
  source.sink.set({ services: [serviceOf("db", 5432)] });
  assertEquals(reported, 1);
  return Promise.resolve();
});

entry("a catalog file that is read", "catalog", async () => {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/catalog.yaml`;
  await Deno.writeTextFile(path, "services: []\n");
  const sink = new RecordedSink();
  const source = new FileSource({ path, timers: systemTimers });
  const failed = Promise.withResolvers<void>();
  const { set } = sink;
  sink.set = () => {
    sink.set = set;
    failed.resolve();
    slip();
  };
  source.start(sink);
  await failed.promise;
  // The next turn is not kept waiting for the one that failed.
  await source.reconcile();
  assert(sink.calls.length > 0);
  await source.stop();
  await Deno.remove(folder, { recursive: true });
});
