import { assert } from "@std/assert";
import { Prng } from "../../tests/support/memory/prng.ts";
import { PathRtt } from "./path_rtt.ts";
import {
  CONNECTION_WINDOW_BYTES_MIN,
  ConnectionWindowSize,
} from "./connection_window_size.ts";

const MIB = 1024 * 1024;
const MAX = 16 * MIB;

/** A path: what it carries, how long it is, and who else queues there. */
interface Path {
  bytesPerMs: number;
  lengthMs: number;
  /** How long others' bytes wait in the queue in front of ours. */
  othersMs: number;
  /** What the sender has to say per round trip. */
  offeredBytes: number;
}

/** A sender who always fills the window, over `path`. */
class Sender {
  readonly rtt = new PathRtt();
  readonly window = new ConnectionWindowSize(this.rtt, MIB, MAX);
  nowMs = 0;
  lastMs = 0;

  run(path: Path, rounds: number): void {
    for (let round = 0; round < rounds; round++) {
      const granted = Math.min(this.window.bytes, path.offeredBytes);
      const emptyMs = path.lengthMs + path.othersMs;
      this.lastMs = Math.max(emptyMs, granted / path.bytesPerMs);
      this.nowMs += this.lastMs;
      this.rtt.sample(this.lastMs, this.nowMs);
      this.window.onRound(granted, this.lastMs, this.nowMs);
    }
  }
}

function path(given: Partial<Path> = {}): Path {
  return {
    bytesPerMs: 12_500,
    lengthMs: 50,
    othersMs: 0,
    offeredBytes: Infinity,
    ...given,
  };
}

Deno.test("whatever the path, it gets full, and its queue does not", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const prng = new Prng(seed);
    const lengthMs = 1 + prng.below(150);
    const bytesPerMs = 1_000 + prng.below(60_000);
    const onPath = bytesPerMs * lengthMs;
    if (onPath > MAX / 2) continue;
    const sender = new Sender();
    // A first packet goes alone: that is where the length is learned.
    sender.run(path({ bytesPerMs, lengthMs, offeredBytes: 1000 }), 1);
    sender.run(path({ bytesPerMs, lengthMs }), 60);
    const { bytes } = sender.window;
    const about = `seed ${seed}: ${bytes} of ${onPath}`;
    assert(bytes >= Math.min(onPath, MAX) || sender.window.isDraining, about);
    const most = bytesPerMs * (lengthMs + 10) * 2;
    assert(bytes <= Math.max(MIB, most), about);
  }
});

Deno.test("a window that is too large for a slow path becomes smaller", () => {
  const slow = path({ bytesPerMs: 1_250 }); // 10 Mbit/s: 1 MiB are 0.8 s
  const sender = new Sender();
  sender.run({ ...slow, offeredBytes: 1000 }, 1);
  sender.run(slow, 20);
  assert(sender.window.bytes < 160 * 1024, `${sender.window.bytes}`);
  assert(sender.window.bytes >= CONNECTION_WINDOW_BYTES_MIN);
});

Deno.test("a queue of others' is taken for the path after a while, ours never", () => {
  const sender = new Sender();
  sender.run(path({ offeredBytes: 1000 }), 1);
  sender.run(path({ othersMs: 100 }), 400);
  const needed = 12_500 * 150;
  assert(sender.window.bytes >= needed * 0.9, `${sender.window.bytes}`);
  sender.run(path(), 3_000); // minutes with nobody but us
  assert(sender.lastMs <= 50 * 1.5 + 20, `${sender.lastMs}`);
});

Deno.test("who has little to say keeps his window", () => {
  const sender = new Sender();
  sender.run(path({ othersMs: 500, offeredBytes: 1000 }), 100);
  assert(sender.window.bytes === MIB);
});
