/**
 * Two conduits over one connection in any order of what can be done with them:
 * bytes arrive as they were sent, ends are told for what they are, and it is
 * always over at last.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { conduitOf } from "../../../net/stream/stream_conduit.ts";
import type { Stream } from "../../../net/stream/stream.ts";
import { ConduitProbe, settled } from "./conduit_probe.ts";
import { Prng } from "./prng.ts";

const STEPS = 14;

/** From a crumb to what neither batch nor kernel takes at once. */
const SIZES = [1, 7, 1_000, 65_535, 131_072, 400_000];

/** What is sent, by everybody, from the beginning. */
const script = new Prng(42).bytes(STEPS * SIZES.at(-1)!);

/** What one end has done, and what must come of it. */
class End {
  readonly probe: ConduitProbe;
  sentBytes = 0;
  hasEnded = false;
  hasReset = false;

  constructor(stream: Stream) {
    this.probe = new ConduitProbe(conduitOf(stream));
  }

  get isDone(): boolean {
    return this.hasEnded || this.hasReset || this.probe.end !== undefined;
  }

  step(prng: Prng, mayReset: boolean): void {
    switch (prng.below(mayReset ? 12 : 11)) {
      case 0:
        return this.end();
      case 1:
      case 2:
        return this.probe.stopReading();
      case 3:
      case 4:
      case 5:
        return void this.probe.startReading();
      case 11:
        return this.reset();
      default:
        return this.send(prng.pick(SIZES));
    }
  }

  send(bytes: number): void {
    if (this.isDone) return;
    const from = this.sentBytes;
    this.sentBytes += bytes;
    this.probe.send(script.subarray(from, this.sentBytes));
  }

  end(): void {
    if (this.isDone) return;
    this.hasEnded = true;
    this.probe.finish();
  }

  reset(): void {
    if (this.probe.end !== undefined) return;
    this.hasReset = true;
    this.probe.reset("enough");
  }
}

/**
 * @param isTcp A reset is one for the peer, too.
 * @param make Both ends, for each run.
 */
export async function inAnyOrder(
  runs: number,
  isTcp: boolean,
  make: () => Promise<readonly [Stream, Stream]>,
): Promise<void> {
  const seeds = Prng.fromEnvironment();
  for (let run = 0; run < runs; run++) {
    const prng = new Prng(seeds.below(2 ** 32));
    const streams = await make();
    try {
      await check(streams, prng, isTcp);
    } catch (cause) {
      throw new Error(`seed ${seeds.seed}, run ${run}`, { cause });
    }
  }
}

async function check(
  streams: readonly [Stream, Stream],
  prng: Prng,
  isTcp: boolean,
): Promise<void> {
  const ends = [new End(streams[0]), new End(streams[1])] as const;
  const mayReset = prng.below(3) === 0;
  for (let step = 0; step < STEPS; step++) {
    prng.pick(ends).step(prng, mayReset);
    for (let turns = prng.below(4); turns > 0; turns--) await settled();
  }
  for (const end of ends) {
    end.probe.startReading();
    end.end();
  }
  await Promise.all(ends.map(({ probe }) => probe.closed));
  compare(ends[0], ends[1], isTcp);
  compare(ends[1], ends[0], isTcp);
}

/** What `to` heard of `from`. */
function compare(from: End, to: End, isTcp: boolean): void {
  const { bytes, end } = to.probe;
  assert(bytes.length <= from.sentBytes);
  const sent = script.subarray(0, bytes.length);
  assert(bytes.every((byte, at) => byte === sent[at]), "other bytes");
  if (!from.hasReset && !to.hasReset) {
    assertEquals(bytes.length, from.sentBytes, "bytes are missing");
    assertEquals(end, { kind: "clean" });
  } else if (to.hasReset) {
    assertEquals(end, { kind: "reset", reason: "enough" });
  } else if (isTcp && !from.hasEnded) {
    assertEquals(end!.kind, "reset");
  }
}
