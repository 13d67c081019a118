// deno-lint-ignore-file no-console -- it tells its port on standard output.
/**
 * The smallest server on our HTTP/2 engine, for h2spec: plain TCP on loopback,
 * every request is read to its end and answered with 200 and a small body.
 *
 * Usage: `h2spec_server.ts [frontend|agent] [PORT]`; prints the port it has.
 *
 * @module
 */

import { driveHttp2 } from "../../net/http2/http2_driver.ts";
import { denoStream } from "../../net/stream/platform_stream.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { Connection } from "../../proto/streams/connection.ts";
import {
  LARGE_FRAME_SIZE,
  type LocalSettings,
} from "../../proto/streams/settings.ts";
import type { Stream, StreamEvents } from "../../proto/streams/stream.ts";

/** How the engine is set up where it takes the server role. */
const SETTINGS: Readonly<Record<string, Partial<LocalSettings>>> = {
  /** Towards unauthenticated peers, on the frontend and agent ports. */
  frontend: {},
  /** Towards our own server, on a link. */
  agent: { maxFrameSize: LARGE_FRAME_SIZE },
};

const BODY = new TextEncoder().encode("hello, whoever is asking\n");

/** Answers one request once it is complete. */
class Answer implements StreamEvents {
  #left: Uint8Array = BODY;

  constructor(private readonly stream: Stream) {}

  onHeaders(): void {}

  onData(chunk: Uint8Array): void {
    this.stream.consumed(chunk.length);
  }

  onTrailers(): void {}

  onEnd(): void {
    this.stream.sendHeaders([
      { name: ":status", value: "200" },
      { name: "content-length", value: `${BODY.length}` },
    ], false);
    this.onWritable();
  }

  onWritable(): void {
    this.#left = this.#left.subarray(this.stream.write(this.#left));
    if (this.#left.length === 0) this.stream.end();
  }

  onReset(): void {}
}

function serve(conn: Deno.Conn, settings: Partial<LocalSettings>): void {
  const connection = new Connection({
    role: "server",
    clock: systemTimers,
    settings,
    events: { onStream: (stream) => new Answer(stream), onClosed: () => {} },
  });
  connection.start();
  driveHttp2(denoStream(conn), connection, systemTimers);
}

if (import.meta.main) {
  const [role = "frontend", port = "0"] = Deno.args;
  const listener = Deno.listen({ hostname: "127.0.0.1", port: Number(port) });
  console.log(`${role}: ${(listener.addr as Deno.NetAddr).port}`);
  for await (const conn of listener) serve(conn, SETTINGS[role]!);
}
