/**
 * A gRPC frontend in this process, on a unix socket, whose dials a test
 * answers.
 *
 * @module
 */

import { openServerConnection } from "../../../net/http2/server_connection.ts";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { GrpcRouter } from "../../../proto/grpc/server.ts";
import type { DialHandler } from "../../../proto/link/dial_handler.ts";
import { proxyService } from "../../../proto/link/proxy_service.ts";
import type { Connection } from "../../../proto/streams/connection.ts";
import type { LocalSettings } from "../../../proto/streams/settings.ts";
import { arrivals } from "./sockets.ts";
import { PROXY_PATH } from "../../../proto/link/capabilities.ts";

/** See the module description. */
export class ProxyFrontend implements AsyncDisposable {
  readonly path: string;
  /** All connections that were ever accepted. */
  readonly connections: Connection[] = [];
  readonly #directory: string;
  readonly #listener: Deno.Listener;
  readonly #accepting: Promise<void>;
  readonly #closing: Promise<void>[] = [];

  /**
   * @param onDial Answers dials.
   * @param settings What each connection announces.
   * @param admit Called for each call; may throw how it is turned away.
   */
  constructor(
    onDial: DialHandler,
    settings: Partial<LocalSettings> = {},
    admit: () => void = () => {},
  ) {
    this.#directory = Deno.makeTempDirSync();
    this.path = `${this.#directory}/front.sock`;
    this.#listener = Deno.listen({ transport: "unix", path: this.path });
    const method = proxyService({ onDial, timers: systemTimers });
    const router = new GrpcRouter({
      methods: {
        [PROXY_PATH]: (call) => {
          admit();
          return method(call);
        },
      },
      timers: systemTimers,
    });
    this.#accepting = this.#accept(router, settings);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#accepting;
    for (const one of this.connections) one.abort(0, "the test is over");
    await Promise.all(this.#closing);
    await Deno.remove(this.#directory, { recursive: true });
  }

  async #accept(
    router: GrpcRouter,
    settings: Partial<LocalSettings>,
  ): Promise<void> {
    for await (const conn of arrivals(this.#listener)) {
      const closed = Promise.withResolvers<void>();
      this.connections.push(openServerConnection(denoStream(conn), {
        serves: router,
        timers: systemTimers,
        settings,
        events: { onClosed: () => closed.resolve() },
      }));
      this.#closing.push(closed.promise);
    }
  }
}
