import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  engineAndPeer,
  enginePair,
  openLogged,
} from "../../tests/support/memory/engine_pair.ts";
import { forAll, type Prng } from "../../tests/support/memory/prng.ts";
import {
  requestFields,
  StreamLog,
} from "../../tests/support/watch/stream_log.ts";
import { ErrorCode } from "../frames/wire_error.ts";
import { ReceiveWindow, SendWindow } from "./flow_window.ts";
import { OUTPUT_HIGH_WATER_BYTES } from "./sending_side.ts";
import { LARGE_FRAME_SIZE } from "./settings.ts";
import type { Stream } from "./stream.ts";
import {
  FAST_WINDOW_BYTES,
  GROWN_BYTES_MAX,
  PROBE_PAUSE_MS,
} from "./window_tuner.ts";

const MIB = 1024 * 1024;
const EMPTY = new Uint8Array(0);

Deno.test("a receive window never grants more than its size, and loses no byte", () =>
  forAll(100, (prng) => {
    const window = new ReceiveWindow(1000);
    let mayCome = 1000; // as the peer reckons
    for (let step = 0; step < 200; step++) {
      const bytes = prng.below(300);
      switch (prng.below(4)) {
        case 0:
        case 1:
          assertEquals(window.receive(bytes), bytes <= mayCome);
          if (bytes <= mayCome) mayCome -= bytes;
          break;
        case 2:
          window.release(Math.min(bytes, window.outstanding));
          break;
        case 3:
          if (prng.below(10) === 0) window.grow(window.size + bytes);
      }
      mayCome += window.takeUpdate();
      assertEquals(window.available, mayCome);
      assert(mayCome + window.outstanding <= window.size);
    }
    window.release(window.outstanding);
    mayCome += window.takeAll();
    assertEquals(mayCome, window.size);
    assertThrows(() => window.release(1), RangeError);
  }));

Deno.test("a send window may go negative, and never beyond 2^31-1", () => {
  const window = new SendWindow(10);
  window.spend(10);
  assert(window.adjust(-5));
  assertEquals(window.available, -5);
  assertThrows(() => window.spend(1), RangeError);
  assert(window.adjust(5 + 0x7fff_ffff));
  assert(!window.adjust(1));
});

Deno.test("10 MiB arrive whole through any cutting, while both ends dawdle", () =>
  forAll(3, (prng) => {
    const { client, server, pipe } = enginePair({ prng });
    const bytes = 10 * MIB;
    const sink = new PatternSink(prng);
    server.onStream = (log, stream) => sink.attach(log, stream);
    const source = new PatternSource(client.connection, bytes, prng);
    for (let turn = 0; !sink.log?.hasEnded; turn++) {
      assert(turn < 100_000, `stuck after ${sink.bytes} bytes`);
      if (!pipe.step() && !sink.dawdle(prng)) source.pump();
    }
    assertEquals([sink.bytes, source.sent], [bytes, bytes]);
    assertEquals(server.connection.openStreams, 1);
  }));

Deno.test("many streams that are read at random all arrive, and stalled ones stop nobody", () =>
  forAll(5, (prng) => {
    const { client, server, pipe } = enginePair({ prng });
    const sinks: PatternSink[] = [];
    server.onStream = (log, stream) => {
      const sink = new PatternSink(prng);
      sink.attach(log, stream);
      sink.isStalled = sinks.length < 3;
      sinks.push(sink);
    };
    const sources = Array.from(
      { length: 12 },
      () => new PatternSource(client.connection, 300_000, prng),
    );
    const run = (wanted: () => boolean) => {
      for (let turn = 0; !wanted(); turn++) {
        assert(turn < 100_000, "stuck");
        const moved = pipe.step();
        if (!moved) { for (const sink of sinks) sink.dawdle(prng); }
      }
    };
    for (const source of sources) source.pump();
    run(() =>
      sinks.length === 12 && sinks.slice(3).every(({ log }) => log?.hasEnded)
    );
    for (const sink of sinks.slice(0, 3)) {
      assertEquals(sink.bytes, 65_536); // The window, not a byte more.
      sink.isStalled = false;
    }
    run(() => sinks.every(({ log }) => log?.hasEnded));
    assert(sources.every(({ sent }) => sent === 300_000));
  }));

Deno.test("a peer that overruns a stream's window loses the stream", () => {
  const { engine, peer } = engineAndPeer("server");
  peer.headers(1, requestFields());
  engine.accepted[0]!.onPiece = () => {}; // Never consumed.
  for (let frame = 0; frame < 4; frame++) peer.data(1, 16_384);
  peer.wants();
  peer.data(1, 1);
  peer.wants(`RST_STREAM 1 ${ErrorCode.FLOW_CONTROL_ERROR}`);
});

Deno.test("a peer that overruns the connection's window loses the connection", () => {
  const { engine, peer } = engineAndPeer("server", {
    settings: { connectionWindow: 65_535, maxFrameSize: 70_000 },
  });
  peer.headers(1, requestFields());
  peer.data(1, 65_536);
  assertEquals(engine.ends[0]?.code, ErrorCode.FLOW_CONTROL_ERROR);
});

Deno.test("the connection's credit comes back on receipt, a stream's on consumption", () => {
  const { engine, peer } = engineAndPeer("server", {
    settings: { connectionWindow: 65_536 * 2 },
  });
  peer.headers(1, requestFields());
  const log = engine.accepted[0]!;
  log.onPiece = () => {};
  for (let frame = 0; frame < 4; frame++) peer.data(1, 16_384);
  peer.wants("WINDOW_UPDATE 0 65536", "PING");
  log.stream!.consumed(32_767);
  peer.wants();
  log.stream!.consumed(1);
  peer.wants("WINDOW_UPDATE 1 32768");
});

Deno.test("padding is given back at once, for nobody will consume it", () => {
  const { engine, peer } = engineAndPeer("server", {
    settings: { initialWindowSize: 400 },
  });
  peer.headers(1, requestFields());
  engine.accepted[0]!.onPiece = () => {};
  const padded = Uint8Array.of(0, 0, 202, 0, 8, 0, 0, 0, 1, 200, 7);
  peer.sendBytes(new Uint8Array([...padded, ...new Uint8Array(200)]));
  assertEquals(engine.accepted[0]!.events, ["headers request", "data 1"]);
  peer.wants("WINDOW_UPDATE 1 201", "PING");
});

Deno.test("room obeys both windows, the frame size and the peer's changes of them", () => {
  const { engine, peer, connection } = engineAndPeer("client");
  const log = openLogged(connection);
  const { stream } = log;
  assertEquals(stream.room, 16_384);
  stream.sendFrame(EMPTY, new Uint8Array(16_384));
  // 16,384 are spent: the smaller window is 84 bytes below zero.
  peer.settings({ id: 4, value: 16_300 }, { id: 5, value: 20_000 });
  assertEquals(stream.room, 0);
  assertEquals(stream.write(new Uint8Array(10)), 0);
  peer.windowUpdate(1, 84);
  assertEquals([stream.room, log.events.length], [0, 0]);
  peer.windowUpdate(1, 5);
  assertEquals([stream.room, log.events], [5, ["writable"]]);
  assertThrows(
    () => stream.sendFrame(EMPTY, new Uint8Array(6)),
    RangeError,
  );
  peer.windowUpdate(1, 100_000);
  assertEquals(stream.room, 20_000);
  stream.write(new Uint8Array(100_000));
  assertEquals(stream.room, 0); // The connection's 65,535 are used up.
  peer.windowUpdate(0, 7);
  assertEquals(stream.room, 7);
  assertEquals(engine.ends, []);
});

Deno.test("a peer that does not read stops DATA at the high water, never control", () => {
  const { peer, connection } = engineAndPeer("client");
  peer.settings({ id: 4, value: 10 * MIB }, { id: 5, value: 0xff_ffff });
  peer.windowUpdate(0, 10 * MIB);
  peer.listen();
  const log = openLogged(connection);
  const { stream } = log;
  assertEquals(stream.room, LARGE_FRAME_SIZE);
  const taken = stream.write(new Uint8Array(MIB));
  assert(taken >= OUTPUT_HIGH_WATER_BYTES - 1000, `${taken}`);
  assert(taken <= OUTPUT_HIGH_WATER_BYTES + 65_536, `${taken}`);
  assertEquals(connection.takeOutput()!.length <= 131_072, true);
  stream.end();
  connection.outputWritten();
  assertEquals(log.events, []); // It has ended: no more turns.
});

Deno.test("streams that wait take turns of one frame, small senders first", () => {
  const { peer, connection } = engineAndPeer("client");
  peer.doHandshake([{ id: 4, value: 10 * MIB }]);
  const sent: string[] = [];
  const opened = ["a", "b", "c", "small"].map((name) => {
    const log = openLogged(connection);
    const { stream } = log;
    let turnsLeft = 3;
    log.onRoom = () => {
      sent.push(name);
      stream.write(new Uint8Array(name === "small" ? 10 : 100_000));
      if (name === "small" && --turnsLeft > 0) stream.awaitRoom();
    };
    stream.write(new Uint8Array(name === "small" ? 10 : 16_384));
    return stream;
  });
  opened[0]!.write(new Uint8Array(100_000)); // Uses the connection's window up.
  for (const stream of opened) stream.awaitRoom();
  assertEquals(sent, []);
  peer.windowUpdate(0, 16_384 * 6 + 30);
  assertEquals(sent.join(" "), "small small small a b c a b c");
});

Deno.test("a stream that is read in bulk soon has a window of 1 MiB, an idle one never", () => {
  const { client, server, pipe } = enginePair({
    server: { settings: { maxFrameSize: LARGE_FRAME_SIZE } },
  });
  let granted: Stream | undefined;
  server.onStream = (_, stream) => granted ??= stream;
  const log = openLogged(client.connection);
  const { stream } = log;
  let left = 8 * MIB;
  const pump = () => {
    left -= stream.write(new Uint8Array(Math.min(left, MIB)));
  };
  log.onRoom = pump;
  pump();
  pipe.settle();
  assertEquals(left, 0);
  server.accepted[0]!.onPiece = () => {}; // From here on it stalls.
  left = 100 * MIB;
  pump();
  pipe.settle();
  const stalled = server.accepted[0]!.bodyBytes - 8 * MIB;
  assert(stalled >= FAST_WINDOW_BYTES / 2, `${stalled}`);
  assert(stalled <= 16 * MIB, `${stalled}`);
  assert(granted !== undefined);
});

Deno.test("windows stop growing at their own limit and at the connection's", () => {
  const { client, server, pipe } = enginePair({
    server: { settings: { streamWindowMax: 32 * MIB } },
  });
  const outstanding: number[] = [];
  server.onStream = (log) => {
    const index = outstanding.push(0) - 1;
    let seen = 0;
    log.onPiece = (chunk) => {
      log.events.length = 0;
      seen += chunk.length;
      if (seen < 40 * MIB) log.stream!.consumed(chunk.length);
      else outstanding[index]! += chunk.length;
    };
  };
  const buffer = new Uint8Array(MIB);
  for (let index = 0; index < 4; index++) {
    const log = openLogged(client.connection);
    const { stream } = log;
    log.onRoom = () => {
      log.events.length = 0;
      stream.write(buffer);
    };
    stream.awaitRoom();
  }
  pipe.settle();
  const pinned = outstanding.reduce((sum, bytes) => sum + bytes, 0);
  assert(pinned <= GROWN_BYTES_MAX + 4 * 65_536, `${pinned}`);
  assert(pinned > 4 * FAST_WINDOW_BYTES / 2, `${pinned}`);
});

Deno.test("what closed streams had grown to is free for new ones", () => {
  const { client, server, pipe } = enginePair();
  const buffer = new Uint8Array(2 * MIB);
  for (let index = 0; index < 80; index++) {
    // 80 windows of 1 MiB together are above the limit.
    const log = openLogged(client.connection);
    const { stream } = log;
    server.clock.advance(PROBE_PAUSE_MS);
    let left = buffer.length;
    log.onRoom = () => {
      left -= stream.write(buffer.subarray(0, left));
    };
    log.onRoom();
    pipe.settle();
    assertEquals(left, 0);
    const sink = server.accepted.at(-1)!;
    sink.onPiece = () => {};
    const before = sink.bodyBytes;
    left = buffer.length;
    log.onRoom();
    pipe.settle();
    assert(sink.bodyBytes - before >= FAST_WINDOW_BYTES / 2, `${index}`);
    stream.reset(ErrorCode.CANCEL);
    pipe.settle();
  }
});

/** Sends bytes that tell their own position, as fast as it may. */
class PatternSource {
  sent = 0;
  readonly #stream: Stream;
  #hasEnded = false;

  constructor(
    connection: { openStream: Parameters<typeof open>[0]["openStream"] },
    private readonly bytes: number,
    private readonly prng: Prng,
  ) {
    const log = new StreamLog();
    log.onRoom = () => this.pump();
    this.#stream = open(connection, log);
  }

  pump(): void {
    while (this.sent < this.bytes) {
      const most = Math.min(this.bytes - this.sent, 100_000);
      const chunk = pattern(this.sent, 1 + this.prng.below(most));
      const taken = this.#stream.write(chunk);
      this.sent += taken;
      if (taken < chunk.length) return;
    }
    if (!this.#hasEnded) this.#stream.end();
    this.#hasEnded = true;
  }
}

/** Checks what comes and consumes it sooner or later. */
class PatternSink {
  bytes = 0;
  isStalled = false;
  log: StreamLog | undefined;
  #unconsumed = 0;
  #stream: Stream | undefined;

  constructor(private readonly prng: Prng) {}

  attach(log: StreamLog, stream: Stream): void {
    this.log = log;
    this.#stream = stream;
    log.onPiece = (chunk) => {
      for (let index = 0; index < chunk.length; index += 97) {
        if (chunk[index] !== at(this.bytes + index)) {
          throw new Error(`byte ${this.bytes + index} is wrong`);
        }
      }
      this.bytes += chunk.length;
      this.#unconsumed += chunk.length;
      if (this.prng.below(3) === 0) this.dawdle(this.prng);
    };
  }

  /** Consumes some; `false` if there was nothing. */
  dawdle(prng: Prng): boolean {
    if (this.isStalled || this.#unconsumed === 0) return false;
    const bytes = 1 + prng.below(this.#unconsumed);
    this.#unconsumed -= bytes;
    this.#stream!.consumed(bytes);
    return true;
  }
}

function open(
  connection: {
    openStream(
      fields: ReturnType<typeof requestFields>,
      endStream: boolean,
      log: StreamLog,
    ): Stream;
  },
  log: StreamLog,
): Stream {
  return log.stream = connection.openStream(requestFields(), false, log);
}

function at(position: number): number {
  return (position * 31 + (position >> 8)) & 0xff;
}

function pattern(start: number, bytes: number): Uint8Array {
  const chunk = new Uint8Array(bytes);
  for (let index = 0; index < bytes; index++) chunk[index] = at(start + index);
  return chunk;
}
