import { assertEquals, assertThrows } from "@std/assert";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  RecordedFaults,
  slip,
} from "../../tests/support/watch/recorded_faults.ts";
import {
  CLEAN,
  joined,
  type JoinedConduits,
  pattern,
} from "../../tests/support/memory/joined_conduits.ts";
import { sameBytes } from "../bytes/byte_arrays.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { join, transfer } from "./transfer.ts";
import { forAll, type Prng } from "../../tests/support/memory/prng.ts";
import { BufferPool } from "../bytes/buffer_pool.ts";
import { PooledQueue } from "./pooled_queue.ts";

Deno.test("bytes go both ways, then both ends close in order", async () => {
  const { left, right, result } = joined();
  left.send("ping");
  await right.received(4);
  right.send("pong!");
  await left.received(5);
  left.finish();
  right.finish();
  assertEquals(await result, {
    end: CLEAN,
    endA: CLEAN,
    endB: CLEAN,
    bytesAToB: 4,
    bytesBToA: 5,
    droppedDatagrams: 0,
    durationMs: 0,
  });
  assertEquals([right.text, left.text], ["ping", "pong!"]);
});

for (const bytes of [1_024, 8 * 1024 * 1024]) {
  Deno.test(`writing ${bytes} bytes and ending at once delivers all`, async () => {
    const { left, right, result } = joined({ windowBytes: 100_000 });
    const sent = pattern(bytes);
    left.send(sent);
    left.finish();
    await right.ended;
    assertEquals(sameBytes(right.bytes, sent), true);
    right.finish();
    assertEquals((await result).end, CLEAN);
  });
}

Deno.test("that both are closed is told once, also after a reset", async () => {
  const [a, left] = MemoryConduit.pair();
  const [b] = MemoryConduit.pair();
  let times = 0;
  join(a, b, () => times++);
  new ConduitProbe(left).reset("enough");
  await settled();
  assertEquals(times, 1);
});

Deno.test("a half-close leaves the other direction open", async () => {
  const { left, right, result } = joined();
  left.finish();
  await right.ended;
  assertEquals(left.hasEnded, false);
  right.send("still here");
  await left.received(10);
  right.finish();
  await result;
  assertEquals(left.text, "still here");
});

Deno.test("an end waits behind what the other side has not taken", async () => {
  const { left, right } = joined({ windowBytes: 100 });
  right.stopReading();
  left.send(new Uint8Array(150));
  await left.finish();
  assertEquals([right.receivedBytes, right.hasEnded], [100, false]);
  right.startReading();
  await right.ended;
  assertEquals(right.receivedBytes, 150);
  right.reset("done");
});

Deno.test("a side that is closed still delivers what it sent", async () => {
  const { left, right, b, result } = joined({ windowBytes: 100 });
  right.finish();
  await left.ended;
  right.stopReading();
  left.send(new Uint8Array(150));
  left.finish();
  assertEquals(await left.closed, CLEAN);
  assertEquals(b.closed, undefined);
  right.startReading();
  await right.ended;
  assertEquals(right.receivedBytes, 150);
  assertEquals((await result).end, CLEAN);
});

Deno.test("a reader that stalls stalls its writer, and nobody's memory grows", async () => {
  const { left, right, a } = joined({ windowBytes: 1_000 });
  right.stopReading();
  await left.send(new Uint8Array(50_000));
  assertEquals(right.receivedBytes, 1_000);
  assertEquals(a.unconsumedBytes, 1_000);
  assertEquals(left.queuedBytes, 48_000);
  right.startReading();
  await right.received(50_000);
  assertEquals(a.unconsumedBytes, 0);
  left.reset("done");
});

Deno.test("a stall of one direction leaves the other one running", async () => {
  const { left, right } = joined({ windowBytes: 1_000 });
  right.stopReading();
  await left.send(new Uint8Array(50_000));
  right.send("alive");
  await left.received(5);
  assertEquals(left.text, "alive");
  left.reset("done");
});

Deno.test("the clock measures how long it took", async () => {
  const timers = new FakeTimers();
  const { left, result } = joined({}, { clock: timers });
  timers.advance(1_234);
  left.reset("enough");
  assertEquals((await result).durationMs, 1_234);
});

Deno.test("datagrams stay whole, empty ones too", async () => {
  const { left, right, result } = joined({
    datagrams: true,
    windowBytes: 1_000,
  });
  for (const bytes of [3, 0, 700, 1]) left.send(new Uint8Array(bytes));
  await right.received(704);
  assertEquals(right.chunks.map((chunk) => chunk.length), [3, 0, 700, 1]);
  left.reset("done");
  assertEquals((await result).bytesAToB, 704);
});

Deno.test("refuses to join datagrams with a byte stream", () => {
  const [datagrams] = MemoryConduit.pair({ datagrams: true });
  const [stream] = MemoryConduit.pair();
  assertThrows(() => transfer(datagrams, stream), TypeError, "datagrams");
  assertThrows(() => transfer(stream, datagrams), TypeError, "datagrams");
  assertThrows(() => join(stream, datagrams), TypeError, "datagrams");
});

Deno.test("what nobody waits for is joined all the same", async () => {
  const [leftLine, a] = MemoryConduit.pair();
  const [b, rightLine] = MemoryConduit.pair();
  const left = new ConduitProbe(leftLine);
  const right = new ConduitProbe(rightLine);
  join(a, b);
  left.send("to the right");
  left.finish();
  await right.ended;
  right.finish();
  assertEquals([await left.closed, await right.closed], [CLEAN, CLEAN]);
  assertEquals(right.text, "to the right");
});

for (const entry of ["write", "end", "consumed"] as const) {
  Deno.test(`a conduit whose ${entry} throws is lost, and the other one with it`, async () => {
    using recorded = new RecordedFaults();
    const { left, a, b, result } = joined();
    const spoiled = entry === "consumed" ? a : b;
    spoiled[entry] = slip;
    left.send("bytes");
    left.finish();
    const { end } = await result;
    assertEquals(end, { kind: "lost", reason: "an internal error" });
    assertEquals(recorded.faults, ["conduit: a slip"]);
  });
}

Deno.test("who wants to know of the end and throws is only reported", async () => {
  using recorded = new RecordedFaults();
  const [a, left] = MemoryConduit.pair();
  const [b, right] = MemoryConduit.pair();
  const probes = [new ConduitProbe(left), new ConduitProbe(right)];
  join(a, b, slip);
  for (const probe of probes) probe.finish();
  for (const probe of probes) assertEquals(await probe.closed, CLEAN);
  await settled();
  assertEquals(recorded.faults, ["conduit: a slip"]);
});

Deno.test("any schedule: order kept, nothing lost, memory bounded", async () => {
  await forAll(100, async (prng) => {
    const schedule = new Schedule(prng);
    for (let step = 0; step < 60 && !schedule.isBroken; step++) {
      schedule.step();
      if (prng.below(3) > 0) await settled();
      schedule.checkOnTheWay();
    }
    await schedule.finish();
  });
});

type Side = "left" | "right";

/** Random things done to both ends, and what must hold all along. */
class Schedule {
  readonly #windowBytes: number;
  readonly #ends: JoinedConduits;
  readonly #sent = { left: 0, right: 0 };
  readonly #finished = { left: false, right: false };
  #broken: "reset" | "lost" | undefined;

  constructor(private readonly prng: Prng) {
    this.#windowBytes = 1 + prng.below(3_000);
    this.#ends = joined({
      windowBytes: this.#windowBytes,
      cut: (bytes) => 1 + prng.below(bytes),
    });
  }

  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  step(): void {
    const side: Side = this.prng.pick(["left", "right"] as const);
    const { left, right, leftLine, rightLine, a, b } = this.#ends;
    const probe = side === "left" ? left : right;
    const paths = [leftLine, rightLine, a, b];
    switch (this.prng.below(9)) {
      case 0:
        return probe.stopReading();
      case 1:
        return void probe.startReading();
      case 2:
        return this.prng.pick(paths).stall();
      case 3:
        return paths.forEach((path) => path.resume());
      case 4:
        if (this.prng.below(5) === 0) this.#finishSide(side);
        return;
      case 5:
        if (this.prng.below(25) === 0) this.#break(side);
        return;
      default:
        this.#send(side);
    }
  }

  checkOnTheWay(): void {
    const { left, right, a, b } = this.#ends;
    for (const conduit of [a, b]) {
      assertEquals(conduit.unconsumedBytes <= this.#windowBytes, true);
    }
    assertEquals(right.receivedBytes <= this.#sent.left, true);
    assertEquals(left.receivedBytes <= this.#sent.right, true);
    if (right.hasEnded) assertEquals(right.receivedBytes, this.#sent.left);
    if (left.hasEnded) assertEquals(left.receivedBytes, this.#sent.right);
  }

  /** Lets everything go and checks the outcome. */
  async finish(): Promise<void> {
    const { left, right, leftLine, rightLine, a, b } = this.#ends;
    for (const path of [leftLine, rightLine, a, b]) path.resume();
    for (const side of ["left", "right"] as const) {
      this.#ends[side].startReading();
      if (!this.isBroken) this.#finishSide(side);
    }
    const { end, bytesAToB, bytesBToA } = await this.#ends.result;
    if (!this.isBroken || end.kind === "clean") {
      assertEquals([left.end, right.end, end], [CLEAN, CLEAN, CLEAN]);
      assertEquals([bytesAToB, bytesBToA], [
        this.#sent.left,
        this.#sent.right,
      ]);
      assertEquals(right.receivedBytes, bytesAToB);
      assertEquals(left.receivedBytes, bytesBToA);
    } else {
      assertEquals(end, { kind: this.#broken, reason: "broken" });
    }
    for (const { bytes } of [left, right]) {
      assertEquals(sameBytes(bytes, pattern(bytes.length)), true);
    }
  }

  #send(side: Side): void {
    if (this.#finished[side]) return;
    const bytes = this.prng.below(5_000);
    this.#ends[side].send(pattern(bytes, this.#sent[side]));
    this.#sent[side] += bytes;
  }

  #finishSide(side: Side): void {
    if (this.#finished[side]) return;
    this.#finished[side] = true;
    this.#ends[side].finish();
  }

  #break(side: Side): void {
    this.#broken = this.prng.pick(["reset", "lost"] as const);
    if (this.#broken === "reset") this.#ends[side].reset("broken");
    else if (side === "left") this.#ends.leftLine.lose("broken");
    else this.#ends.rightLine.lose("broken");
  }
}

Deno.test("bytes leave in the order in which they came", async () => {
  await forAll(30, (prng) => {
    // Two queues on one pool: a block that one still reads must not be lent to
    // the other.
    const pool = new BufferPool();
    const queues = [new PooledQueue(pool), new PooledQueue(pool)];
    const models = ["", ""]; // in hex
    for (let step = 0; step < 200; step++) {
      const which = prng.below(2);
      const queue = queues[which]!;
      const bytes = models[which]!.length / 2;
      if (prng.below(2) === 0) {
        const chunk = prng.bytes(prng.below(prng.pick([10, 3_000, 20_000])));
        queue.push(chunk);
        models[which] += chunk.toHex();
      } else {
        const run = queue.peek();
        assertEquals(run.length > 0, bytes > 0);
        assertEquals(models[which]!.startsWith(run.toHex()), true);
        const count = prng.below(prng.pick([run.length, bytes]) + 1);
        queue.drop(count);
        models[which] = models[which]!.slice(2 * count);
      }
      assertEquals(queue.bytes, models[which]!.length / 2);
    }
  });
});

Deno.test("a pushed chunk may be written to afterwards", () => {
  const queue = new PooledQueue();
  const chunk = Uint8Array.of(1, 2, 3);
  queue.push(chunk);
  chunk.fill(9);
  assertEquals(Array.from(queue.peek()), [1, 2, 3]);
  queue.clear();
});

Deno.test("every block is given back, and an empty queue owns none", () => {
  const pool = new CountingPool();
  const queue = new PooledQueue(pool);
  for (const empty of [() => queue.clear(), () => queue.drop(queue.bytes)]) {
    for (const bytes of [1, 700, 5_000, 300_000]) {
      queue.push(new Uint8Array(bytes));
    }
    queue.drop(200_000);
    empty();
    assertEquals([queue.bytes, queue.peek().length, pool.lent], [0, 0, 0]);
  }
});

Deno.test("a queue that stays half full needs no more blocks for it", () => {
  const pool = new CountingPool();
  const queue = new PooledQueue(pool);
  const chunk = new Uint8Array(1_000);
  queue.push(chunk);
  for (let i = 0; i < 1_000; i++) {
    queue.push(chunk);
    queue.drop(1_000);
    assertEquals(pool.lent <= 2, true);
  }
});

Deno.test("a long queue of small chunks is made of large blocks", () => {
  const pool = new CountingPool();
  const queue = new PooledQueue(pool);
  const chunk = new Uint8Array(100);
  for (let i = 0; i < 10_000; i++) queue.push(chunk);
  assertEquals(pool.lent < 15, true);
  queue.clear();
});

Deno.test("refuses to drop what is not there", () => {
  const queue = new PooledQueue();
  assertThrows(() => queue.drop(1), RangeError, "0 are queued");
});

/** Counts the buffers that are out. */
class CountingPool extends BufferPool {
  lent = 0;

  override acquire(bytesMin: number): Uint8Array<ArrayBuffer> {
    this.lent++;
    return super.acquire(bytesMin);
  }

  override release(buffer: Uint8Array<ArrayBuffer>): void {
    this.lent--;
    super.release(buffer);
  }
}
