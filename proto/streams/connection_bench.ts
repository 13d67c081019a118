import { MemoryPipe } from "../../tests/support/memory/memory_pipe.ts";
import {
  requestFields,
  responseFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";
import { Connection } from "./connection.ts";
import type { Role } from "./connection_events.ts";
import { LARGE_FRAME_SIZE, type LocalSettings } from "./settings.ts";
import type { Stream, StreamEvents } from "./stream.ts";

const BULK_BYTES = 64 * 1024 * 1024;
const EMPTY = new Uint8Array(0);
const PAYLOAD = new Uint8Array(LARGE_FRAME_SIZE);
const clock = { now: () => performance.now() };

/** Consumes everything and answers requests at their end. */
class Sink implements StreamEvents {
  constructor(private readonly stream: Stream) {}
  onHeaders(): void {}
  onTrailers(): void {}
  onWritable(): void {}
  onReset(): void {}
  onData(chunk: Uint8Array): void {
    this.stream.consumed(chunk.length);
  }
  onEnd(): void {
    this.stream.sendHeaders(responseFields(), true);
  }
}

function connection(role: Role, settings: Partial<LocalSettings>): Connection {
  const made = new Connection({
    role,
    clock,
    settings,
    events: { onStream: (stream) => new Sink(stream), onClosed: () => {} },
  });
  made.start();
  return made;
}

function joined(
  settings: Partial<LocalSettings>,
): { client: Connection; pipe: MemoryPipe } {
  const client = connection("client", settings);
  const pipe = new MemoryPipe(client, connection("server", settings));
  pipe.settle();
  return { client, pipe };
}

for (const maxFrameSize of [16_384, LARGE_FRAME_SIZE]) {
  const { client, pipe } = joined({ maxFrameSize });
  Deno.bench(`64 MiB through one stream, frames of ${maxFrameSize}`, () => {
    const log = new StreamLog();
    const stream = client.openStream(requestFields(), false, log);
    let left = BULK_BYTES;
    log.onRoom = () => {
      log.events.length = 0;
      for (let room; left > 0 && (room = stream.room) > 0;) {
        const bytes = Math.min(room, left);
        stream.sendFrame(EMPTY, PAYLOAD.subarray(0, bytes));
        left -= bytes;
      }
      if (left > 0) stream.awaitRoom();
      else stream.end();
    };
    stream.awaitRoom();
    pipe.settle();
    if (!log.hasEnded) throw new Error("the stream has not ended");
  });
}

{
  const { client, pipe } = joined({});
  Deno.bench("one request and its answer", () => {
    client.openStream(requestFields(), true, new StreamLog());
    pipe.settle();
  });
}

{
  const { client, pipe } = joined({});
  const log = new StreamLog();
  const stream = client.openStream(requestFields(), false, log);
  const message = new Uint8Array(64);
  Deno.bench("one message of 64 bytes on an open stream", () => {
    stream.sendFrame(EMPTY, message);
    pipe.settle();
  });
}
