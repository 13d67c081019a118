import { assert, assertEquals } from "@std/assert";
import { ReceiveWindow } from "./flow_window.ts";
import { PathRtt, PingPurpose } from "./liveness.ts";
import {
  FAST_WINDOW_BYTES,
  GROWN_BYTES_MAX,
  PROBE_PAUSE_MS,
  type TunedWindow,
  WindowTuner,
} from "./window_tuner.ts";
import { engineAndPeer } from "../../tests/support/memory/engine_pair.ts";
import { requestFields } from "../../tests/support/watch/stream_log.ts";
import { encodeFrame } from "../../tests/support/peers/encoded_frame.ts";
import { LOCAL_SETTINGS_DEFAULT } from "./settings.ts";

const START = 65_536;
const MAX = 16 * 1024 * 1024;

class Bench {
  readonly rtt = new PathRtt();
  probes = 0;
  nowMs = 0;
  /** What came in each round, for the connection's window. */
  readonly rounds: number[] = [];
  readonly tuner: WindowTuner = new WindowTuner({
    rtt: this.rtt,
    connection: {
      afterRound: (bytes) => {
        this.rounds.push(bytes);
        return false;
      },
    },
    streamWindowMax: MAX,
    sendProbe: () => this.probes++,
  });

  /** One round trip in which `stream` consumes `bytes`. */
  round(stream: TunedWindow, bytes: number, rttMs: number): void {
    this.nowMs += PROBE_PAUSE_MS;
    this.tuner.onHalfUsed(stream, this.nowMs);
    this.tuner.onConsumed(stream, bytes);
    this.nowMs += rttMs;
    this.rtt.sample(rttMs, this.nowMs);
    this.tuner.onProbeAnswer(this.nowMs);
  }
}

function tunedStream(size = START): TunedWindow {
  const receiveWindow = new ReceiveWindow(size);
  return {
    receiveWindow,
    round: 0,
    roundBytes: 0,
    hasUsedHalf: false,
    halfUsedMs: 0,
    growWindow: (bytes) => receiveWindow.grow(bytes),
  };
}

Deno.test("a window grows per round trip up to the fast mark, by use alone", () => {
  const bench = new Bench();
  const stream = tunedStream();
  for (let size = START; size < FAST_WINDOW_BYTES; size *= 4) {
    assertEquals(stream.receiveWindow.size, size);
    bench.round(stream, 10, 1);
  }
  bench.round(stream, 10, 1);
  assertEquals(stream.receiveWindow.size, FAST_WINDOW_BYTES);
});

Deno.test("beyond it a window follows what is consumed per round trip, to its end", () => {
  const bench = new Bench();
  const stream = tunedStream(FAST_WINDOW_BYTES);
  bench.round(stream, FAST_WINDOW_BYTES / 2, 100);
  assertEquals(stream.receiveWindow.size, FAST_WINDOW_BYTES);
  bench.round(stream, FAST_WINDOW_BYTES * 0.75, 100);
  assertEquals(stream.receiveWindow.size, FAST_WINDOW_BYTES * 3);
  for (let turn = 0; turn < 10; turn++) {
    bench.round(stream, stream.receiveWindow.size, 100);
  }
  assertEquals(stream.receiveWindow.size, MAX);
});

Deno.test("longer round trips stop growth, the jitter of loopback does not", () => {
  const bench = new Bench();
  const stream = tunedStream();
  bench.round(stream, START, 0.1);
  bench.round(stream, START * 4, 9);
  assertEquals(stream.receiveWindow.size, START * 16);
  for (let turn = 0; turn < 3; turn++) bench.round(stream, 0, 50);
  const { size } = stream.receiveWindow;
  bench.round(stream, size, 50);
  assertEquals(stream.receiveWindow.size, size);
  bench.round(stream, size, 0.1);
  assertEquals(stream.receiveWindow.size, Math.min(size * 4, MAX));
});

Deno.test("what waited in our own queue does not make a window grow", () => {
  const loopback = new Bench();
  const near = tunedStream(FAST_WINDOW_BYTES);
  loopback.round(near, 0, 0.2);
  loopback.round(near, FAST_WINDOW_BYTES, 3);
  assertEquals(near.receiveWindow.size, FAST_WINDOW_BYTES);

  const path = new Bench();
  const far = tunedStream(FAST_WINDOW_BYTES);
  path.round(far, 0, 50);
  path.round(far, FAST_WINDOW_BYTES, 55);
  assert(far.receiveWindow.size > FAST_WINDOW_BYTES * 3.5);
});

Deno.test("probes pause while nothing grows", () => {
  const bench = new Bench();
  const stream = tunedStream(MAX);
  bench.round(stream, MAX, 1);
  bench.tuner.onHalfUsed(stream, bench.nowMs + PROBE_PAUSE_MS - 1);
  assertEquals(bench.probes, 1);
  bench.tuner.onHalfUsed(stream, bench.nowMs + PROBE_PAUSE_MS);
  assertEquals(bench.probes, 2);
});

Deno.test("all streams together have a limit, which closed ones give back", () => {
  const bench = new Bench();
  const streams = Array.from({ length: 10 }, () => tunedStream());
  for (const stream of streams) {
    for (let turn = 0; turn < 12; turn++) {
      bench.round(stream, stream.receiveWindow.size, 1);
    }
  }
  assertEquals(bench.tuner.grownBytes, GROWN_BYTES_MAX);
  assertEquals(streams.at(-1)!.receiveWindow.size, START);
  bench.tuner.onClosed(streams[0]!);
  bench.round(streams.at(-1)!, START, 1);
  assert(streams.at(-1)!.receiveWindow.size > START);
});

Deno.test("who uses half of a window in less than a round trip need not wait for its end", () => {
  const bench = new Bench();
  const stream = tunedStream();
  bench.rtt.sample(100, 0);
  bench.tuner.onHalfUsed(stream, 1_000);
  assertEquals(stream.receiveWindow.size, START);
  bench.tuner.onHalfUsed(stream, 1_050);
  assertEquals(stream.receiveWindow.size, START * 2);
  bench.tuner.onHalfUsed(stream, 1_200); // slower than a round trip
  assertEquals(stream.receiveWindow.size, START * 2);
  for (let nowMs = 1_210; nowMs < 1_400; nowMs += 10) {
    bench.tuner.onHalfUsed(stream, nowMs);
  }
  assertEquals(stream.receiveWindow.size, FAST_WINDOW_BYTES);
  assertEquals(bench.tuner.grownBytes, FAST_WINDOW_BYTES - START);
});

Deno.test("the connection is given what came in each round, whoever began it", () => {
  const bench = new Bench();
  const stream = tunedStream();
  bench.tuner.onReceived(7); // before the round
  bench.tuner.onConnectionUsed(100);
  bench.tuner.onReceived(10);
  bench.tuner.onHalfUsed(stream, 101);
  bench.tuner.onReceived(20);
  bench.tuner.onProbeAnswer(150);
  assertEquals([bench.rounds, bench.probes], [[30], 1]);
});

Deno.test("a connection's window that does not grow does not slow its streams", () => {
  const bench = new Bench();
  bench.tuner.onConnectionUsed(100);
  bench.tuner.onProbeAnswer(110);
  bench.tuner.onConnectionUsed(111);
  assertEquals(bench.probes, 1);
  bench.tuner.onHalfUsed(tunedStream(), 111);
  assertEquals(bench.probes, 2);
});

Deno.test("a stream that ends inside a round grows no more", () => {
  const bench = new Bench();
  const stream = tunedStream();
  bench.tuner.onHalfUsed(stream, 0);
  bench.tuner.onClosed(stream);
  bench.tuner.onProbeAnswer(1);
  assertEquals(bench.tuner.grownBytes, 0);
  assertEquals(stream.receiveWindow.size, START);
});

const FRAME_BYTES = 16_384;
const MIB = 1024 * 1024;

/**
 * A peer that sends whatever the connection's window admits, on a stream whose
 * own window never stops it, and answers PINGs after `rttMs`.
 *
 * @returns What it may have in flight in the end.
 */
function windowAfter(rounds: number, rttMs: (round: number) => number): number {
  const { engine, peer } = engineAndPeer("server", {
    settings: { initialWindowSize: 0x4000_0000 },
  });
  const { connectionWindow } = LOCAL_SETTINGS_DEFAULT;
  let mayCome = connectionWindow;
  let pings = 0;
  const listen = () => {
    peer.listen();
    let asked = 0;
    for (const line of peer.received.splice(0)) {
      const [type, id, bytes] = line.split(" ");
      if (type === "PING") asked++;
      if (type === "WINDOW_UPDATE" && id === "0") mayCome += Number(bytes);
    }
    return asked;
  };
  const frame = encodeFrame({
    type: "DATA",
    streamId: 1,
    endStream: false,
    data: new Uint8Array(FRAME_BYTES),
    isFirst: true,
    flowBytes: FRAME_BYTES,
    paddingBytes: 0,
  });
  peer.headers(1, requestFields());
  for (let round = 0; round < rounds; round++) {
    engine.clock.advance(PROBE_PAUSE_MS);
    let asked = 0;
    // A round begins with half of the window; what its credit admits within a
    // round trip is a window's worth more.
    let left = mayCome * 1.5;
    for (; left > 0 && mayCome >= FRAME_BYTES; left -= FRAME_BYTES) {
      peer.sendBytes(frame);
      mayCome -= FRAME_BYTES;
      asked += listen();
    }
    engine.accepted[0]!.events.length = 0;
    engine.clock.advance(rttMs(round));
    for (; asked > 0; asked--) {
      const opaque = new Uint8Array(8);
      opaque[3] = PingPurpose.probe;
      opaque[7] = ++pings;
      peer.send({ type: "PING", ack: true, opaque });
    }
    listen();
    assertEquals(engine.ends, []);
  }
  return mayCome;
}

Deno.test("the connection's window starts small and follows what a round trip moves", () => {
  const { connectionWindow, connectionWindowMax } = LOCAL_SETTINGS_DEFAULT;
  assertEquals(connectionWindow, MIB);
  assert(windowAfter(2, () => 50) > connectionWindow);
  const grown = windowAfter(12, () => 50);
  assert(grown > connectionWindowMax / 2, `${grown}`);
  assert(grown <= connectionWindowMax, `${grown}`);
});

Deno.test("it stops where round trips get longer", () => {
  const grown = windowAfter(12, (round) => round < 2 ? 50 : 100);
  assert(grown <= 4 * MIB, `${grown}`);
});
