import { assertEquals } from "@std/assert";
import { certificates } from "../../tests/support/certificates/certificates.ts";
import { Trouble } from "../../tests/support/memory/trouble.ts";
import { connectTls } from "../dial/server_connect.ts";
import type { AdmittedConnection } from "../admission/connection_limiter.ts";
import { TLS_ENGINES } from "../../tests/support/rigs/tls_engines.ts";
import { usualLimiter } from "../../tests/support/rigs/usual_limiter.ts";
import {
  ALL_LIMITS_DEFAULT,
  SOURCE_LIMITS_DEFAULT,
} from "../admission/connection_limits.ts";
import { Credentials } from "../tls/trust/credentials.ts";
import { Socket } from "../stream/socket.ts";
import type { Stream } from "../stream/stream.ts";
import { listenSecure } from "./secure_listener.ts";

/** A connection as either end learns of it. */
class Received {
  readonly closed: Promise<void>;

  constructor(readonly stream: Stream) {
    const socket = new Socket(stream);
    this.closed = socket.fill()
      .then(() => socket.close(), () => socket.close());
  }
}

for (const { tls } of TLS_ENGINES) {
  Deno.test(`who makes room unauthenticated is closed, and its server is told, ${tls}`, async () => {
    const all = await certificates();
    const folder = await Deno.makeTempDir();
    const files = {
      cert: `${folder}/c`,
      key: `${folder}/k`,
      ca: `${folder}/a`,
    };
    Deno.writeTextFileSync(files.cert, all.server.cert);
    Deno.writeTextFileSync(files.key, all.server.key);
    Deno.writeTextFileSync(files.ca, all.ca);
    const source = { ...SOURCE_LIMITS_DEFAULT, unauthenticated: 1 };
    const limiter = usualLimiter({ plan: { all: ALL_LIMITS_DEFAULT, source } });
    const connected: PromiseWithResolvers<[Received, AdmittedConnection]>[] = [
      Promise.withResolvers(),
      Promise.withResolvers(),
    ];
    let count = 0;
    const trouble = new Trouble();
    const listener = await listenSecure({
      hostname: "127.0.0.1",
      port: 0,
      credentials: Credentials.load(files),
      clientCertificate: "required",
      alpn: ["h2"],
      minVersion: "TLSv1.2",
      tls,
      limiter,
    }, {
      onConnection: (transport, admitted) =>
        connected[count++]!.resolve([new Received(transport), admitted]),
      onRefused: trouble.report,
      onProblem: trouble.report,
    });
    const connect = () =>
      connectTls({
        host: "127.0.0.1",
        port: listener.port,
        serverName: "tunnel-server",
        credentials: { ...all.client, ca: all.ca },
        alpn: ["h2"],
        proxyEnv: {},
        timeoutMs: 10_000,
        tls,
      }).then((transport) => new Received(transport));
    const one = await trouble.instead(connect());
    const [seen] = await trouble.instead(connected[0]!.promise);
    const other = await trouble.instead(connect());
    await trouble.instead(seen.closed);
    await trouble.instead(one.closed);
    const [, admitted] = await trouble.instead(connected[1]!.promise);
    assertEquals([limiter.connections, admitted.isUnauthenticated], [1, true]);
    other.stream.close();
    await trouble.instead(other.closed);
    const [last] = await trouble.instead(connected[1]!.promise);
    await trouble.instead(last.closed);
    assertEquals([limiter.connections, limiter.sources], [0, 0]);
    listener.close();
    await Deno.remove(folder, { recursive: true });
  });
}
