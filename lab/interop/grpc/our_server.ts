// deno-lint-ignore-file no-console -- prints its port for whoever started it.
/**
 * Our gRPC layer as a server of the test service, over plain TCP (h2c with
 * prior knowledge). Prints `listening PORT`.
 *
 * Usage: `deno run --allow-net lab/interop/grpc/our_server.ts`
 *
 * @module
 */

import { driveHttp2 } from "../../../net/http2/http2_driver.ts";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { HealthService } from "../../../proto/grpc/health.ts";
import { GrpcRouter } from "../../../proto/grpc/server.ts";
import { Connection } from "../../../proto/streams/connection.ts";
import { echoMethods } from "./echo_service.ts";

const health = new HealthService();
health.setStatus("", "SERVING");
health.setStatus("interop.Echo", "SERVING");

function serve(socket: Deno.TcpConn): void {
  const methods = {
    ...echoMethods(() => connection.shutdown("asked to by a test")),
    ...health.methods,
  };
  const router = new GrpcRouter({ methods, timers: systemTimers });
  const connection = new Connection({
    role: "server",
    clock: systemTimers,
    events: {
      onStream: (stream) => router.accept(stream),
      onClosed() {},
    },
    // Clients of these tests start 200 calls at once.
    settings: { maxConcurrentStreams: 1_000 },
  });
  connection.start();
  driveHttp2(denoStream(socket), connection, systemTimers);
}

const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
console.log(`listening ${listener.addr.port}`);
for await (const socket of listener) serve(socket);
