import { assertEquals } from "@std/assert";
import type { HeaderField } from "../../proto/hpack/header_field.ts";
import { Connection } from "../../proto/streams/connection.ts";
import type { Stream, StreamEvents } from "../../proto/streams/stream.ts";
import { usualLimiter } from "../../tests/support/rigs/usual_limiter.ts";
import { certificates } from "../../tests/support/certificates/certificates.ts";
import { connectTls } from "../dial/server_connect.ts";
import { driveHttp2 } from "./http2_driver.ts";
import { listenSecure } from "../listen/secure_listener.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { Credentials } from "../tls/trust/credentials.ts";

const BODY_BYTES = 4 << 20;

Deno.test("HTTP/2 rides on mutual TLS, from preface to GOAWAY", async () => {
  const all = await certificates();
  const folder = await Deno.makeTempDir();
  const files = { cert: `${folder}/c`, key: `${folder}/k`, ca: `${folder}/a` };
  Deno.writeTextFileSync(files.cert, all.server.cert);
  Deno.writeTextFileSync(files.key, all.server.key);
  Deno.writeTextFileSync(files.ca, all.ca);
  const serverClosed = Promise.withResolvers<string>();
  const listener = await listenSecure({
    hostname: "127.0.0.1",
    port: 0,
    credentials: Credentials.load(files),
    clientCertificate: "required",
    alpn: ["h2"],
    minVersion: "TLSv1.3",
    handshakeTimeoutMs: 10_000,
    limiter: usualLimiter(),
  }, {
    onConnection: (transport) => {
      const connection = new Connection({
        role: "server",
        clock: systemTimers,
        events: {
          onStream: echo,
          onClosed: (end) => serverClosed.resolve(end.by),
        },
      });
      connection.start();
      driveHttp2(transport, connection, systemTimers);
    },
    onRefused: (error) => serverClosed.reject(error),
    onProblem: (line) => serverClosed.reject(new Error(line)),
  });
  const closed = Promise.withResolvers<string>();
  const connection = await connectTls({
    host: "127.0.0.1",
    port: listener.port,
    serverName: "tunnel-server",
    credentials: { ...all.client, ca: all.ca },
    alpn: ["h2"],
    proxyEnv: {},
    timeoutMs: 10_000,
  }).then((transport) => {
    const connection = new Connection({
      role: "client",
      clock: systemTimers,
      events: {
        onStream: () => {
          throw new TypeError("a client accepts no streams");
        },
        onClosed: (end) => closed.resolve(end.by),
      },
    });
    connection.start();
    driveHttp2(transport, connection, systemTimers);
    return connection;
  });
  assertEquals(await upload(connection), BODY_BYTES);
  connection.shutdown("done");
  await closed.promise;
  await serverClosed.promise;
  listener.close();
  await Deno.remove(folder, { recursive: true });
});

/** Sends the body and counts what comes back. */
function upload(connection: Connection): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const chunk = new Uint8Array(64 * 1024);
  let left = BODY_BYTES;
  let received = 0;
  const send = () => {
    while (left > 0) {
      const offered = Math.min(left, chunk.length);
      const taken = stream.write(chunk.subarray(0, offered));
      left -= taken;
      if (taken < offered) return;
    }
    stream.end();
  };
  const stream = connection.openStream(
    [
      field(":method", "POST"),
      field(":scheme", "https"),
      field(":path", "/echo"),
      field(":authority", "tunnel-server"),
    ],
    false,
    {
      onHeaders() {},
      onData(piece) {
        received += piece.length;
        stream.consumed(piece.length);
      },
      onTrailers() {},
      onEnd: () => resolve(received),
      onWritable: send,
      onReset: (reset) => reject(new Error(reset.reason)),
    },
  );
  send();
  return promise;
}

/** Sends back what it gets, as fast as it is taken. */
function echo(stream: Stream): StreamEvents {
  const waiting: Uint8Array[] = [];
  let ended = false;
  const flush = () => {
    while (waiting.length > 0) {
      const piece = waiting[0]!;
      const taken = stream.write(piece);
      stream.consumed(taken);
      if (taken < piece.length) {
        waiting[0] = piece.subarray(taken);
        return;
      }
      waiting.shift();
    }
    if (ended) stream.end();
  };
  return {
    onHeaders: () => stream.sendHeaders([field(":status", "200")], false),
    onData(piece) {
      waiting.push(new Uint8Array(piece));
      flush();
    },
    onTrailers() {},
    onEnd() {
      ended = true;
      flush();
    },
    onWritable: flush,
    onReset() {},
  };
}

function field(name: string, value: string): HeaderField {
  return { name, value };
}
