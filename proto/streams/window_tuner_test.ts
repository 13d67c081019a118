import { assert, assertEquals } from "@std/assert";
import { ReceiveWindow } from "./flow_window.ts";
import { PathRtt } from "./path_rtt.ts";
import {
  FAST_CONNECTION_WINDOW_OCTETS,
  FAST_WINDOW_OCTETS,
  GROWN_OCTETS_MAX,
  PROBE_PAUSE_MS,
  type TunedWindow,
  type WindowGrowth,
  WindowTuner,
} from "./window_tuner.ts";

const START = 65_536;
const MAX = 16 * 1024 * 1024;

class Bench {
  readonly rtt = new PathRtt();
  probes = 0;
  nowMs = 0;
  readonly tuner: WindowTuner = new WindowTuner(
    this.rtt,
    () => this.probes++,
  );

  /** One round trip in which `stream` consumes `octets`. */
  round(stream: TunedWindow, octets: number, rttMs: number): void {
    this.nowMs += PROBE_PAUSE_MS;
    this.tuner.onHalfUsed(stream, this.nowMs);
    this.tuner.onConsumed(stream, octets);
    this.nowMs += rttMs;
    this.rtt.sample(rttMs, this.nowMs);
    this.tuner.onProbeAnswer(this.nowMs);
  }
}

const STREAM: WindowGrowth = {
  fastOctets: FAST_WINDOW_OCTETS,
  windowMax: MAX,
  isPinning: true,
};

function tunedStream(size = START, growth = STREAM): TunedWindow {
  const receiveWindow = new ReceiveWindow(size);
  return {
    receiveWindow,
    growth,
    round: 0,
    roundOctets: 0,
    hasUsedHalf: false,
    growWindow: (octets) => receiveWindow.grow(octets),
  };
}

Deno.test("a window doubles per round trip up to the fast mark, by use alone", () => {
  const bench = new Bench();
  const stream = tunedStream();
  for (let size = START; size < FAST_WINDOW_OCTETS; size *= 2) {
    assertEquals(stream.receiveWindow.size, size);
    bench.round(stream, 10, 1);
  }
  bench.round(stream, 10, 1);
  assertEquals(stream.receiveWindow.size, FAST_WINDOW_OCTETS);
});

Deno.test("beyond it a window follows what is consumed per round trip, to its end", () => {
  const bench = new Bench();
  const stream = tunedStream(FAST_WINDOW_OCTETS);
  bench.round(stream, FAST_WINDOW_OCTETS / 2, 100);
  assertEquals(stream.receiveWindow.size, FAST_WINDOW_OCTETS);
  bench.round(stream, FAST_WINDOW_OCTETS * 0.75, 100);
  assertEquals(stream.receiveWindow.size, FAST_WINDOW_OCTETS * 1.5);
  for (let turn = 0; turn < 10; turn++) {
    bench.round(stream, stream.receiveWindow.size, 100);
  }
  assertEquals(stream.receiveWindow.size, MAX);
});

Deno.test("longer round trips stop growth, the jitter of loopback does not", () => {
  const bench = new Bench();
  const stream = tunedStream();
  bench.round(stream, START, 0.1);
  bench.round(stream, START, 9);
  assertEquals(stream.receiveWindow.size, START * 4);
  bench.round(stream, START, 50);
  assertEquals(stream.receiveWindow.size, START * 4);
  bench.round(stream, START, 1);
  assertEquals(stream.receiveWindow.size, START * 8);
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
  assertEquals(bench.tuner.grownOctets, GROWN_OCTETS_MAX);
  assertEquals(streams.at(-1)!.receiveWindow.size, START);
  bench.tuner.onClosed(streams[0]!);
  bench.round(streams.at(-1)!, START, 1);
  assert(streams.at(-1)!.receiveWindow.size > START);
});

const CONNECTION: WindowGrowth = {
  fastOctets: FAST_CONNECTION_WINDOW_OCTETS,
  windowMax: MAX,
  isPinning: false,
};

Deno.test("the connection's window grows by the same rule, and pins nothing", () => {
  const bench = new Bench();
  const window = tunedStream(START, CONNECTION);
  while (window.receiveWindow.size < FAST_CONNECTION_WINDOW_OCTETS) {
    bench.round(window, 10, 1);
  }
  bench.round(window, FAST_CONNECTION_WINDOW_OCTETS / 2, 1);
  assertEquals(window.receiveWindow.size, FAST_CONNECTION_WINDOW_OCTETS);
  for (let turn = 0; turn < 4; turn++) {
    bench.round(window, window.receiveWindow.size, 100);
  }
  const braked = window.receiveWindow.size;
  assert(braked < MAX);
  for (let turn = 0; turn < 4; turn++) {
    bench.round(window, window.receiveWindow.size, 1);
  }
  assertEquals(window.receiveWindow.size, MAX);
  assertEquals(bench.tuner.grownOctets, 0);
});

Deno.test("a connection's window that has grown up does not slow its streams", () => {
  const bench = new Bench();
  const window = tunedStream(MAX, CONNECTION);
  const stream = tunedStream();
  bench.round(window, MAX, 1);
  bench.tuner.onHalfUsed(stream, bench.nowMs);
  assertEquals(bench.probes, 2);
});

Deno.test("a stream that ends inside a round grows no more", () => {
  const bench = new Bench();
  const stream = tunedStream();
  bench.tuner.onHalfUsed(stream, 0);
  bench.tuner.onClosed(stream);
  bench.tuner.onProbeAnswer(1);
  assertEquals(bench.tuner.grownOctets, 0);
  assertEquals(stream.receiveWindow.size, START);
});
