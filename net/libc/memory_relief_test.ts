import { assert, assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  HELD_INTERVAL_MS_MAX,
  MEMORY_LOOK_INTERVAL_MS,
  MemoryRelief,
  QUIET_CPU_PART,
  RELIEF_INTERVAL_MS,
  type ReliefDepth,
  REST_MS,
  SURGE_BYTES,
  WORTHWHILE_BYTES,
} from "./memory_relief.ts";

const MIB = 1024 * 1024;

/** A process whose memory falls to `floor` when it is relieved. */
class Machine {
  bytes = 70 * MIB;
  floor = 60 * MIB;
  /** Of it, what a trim returns. */
  free = 0;
  buffers = 0;
  cpu = 0;
  reliefs = 0;
  /** Of these, those of a process at rest. */
  deep = 0;
  trims = 0;
  limit = Infinity;
  /** Reliefs under load. */
  tight = 0;

  ownBytes(): number {
    return this.bytes;
  }

  bufferBytes(): number {
    return this.buffers;
  }

  cpuMs(): number {
    return this.cpu;
  }

  limitBytes(): number {
    return this.limit;
  }

  relieve(depth: ReliefDepth): void {
    if (depth === "load") this.tight++;
    else this.reliefs++;
    if (depth === "rest") this.deep++;
    this.bytes = this.floor;
  }

  trim(): void {
    this.trims++;
    this.bytes -= this.free;
    this.free = 0;
  }
}

function start(facts: Partial<Machine> = {}) {
  const timers = new FakeTimers();
  const machine = Object.assign(new Machine(), facts);
  const relief = new MemoryRelief(timers, machine);
  return { timers, machine, relief };
}

Deno.test("memory is returned once a burst of work is over, and only then", () => {
  const { timers, machine } = start();
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  assertEquals(machine.reliefs, 1); // What starting up has used.

  machine.bytes = 300 * MIB;
  for (let ms = 0; ms < RELIEF_INTERVAL_MS; ms += MEMORY_LOOK_INTERVAL_MS) {
    machine.cpu += MEMORY_LOOK_INTERVAL_MS * QUIET_CPU_PART;
    timers.advance(MEMORY_LOOK_INTERVAL_MS);
  }
  assertEquals(machine.reliefs, 1); // Busy.

  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  assertEquals([machine.reliefs, machine.bytes], [2, machine.floor]);
});

Deno.test("what makes the next burst fast goes after a minute of rest", () => {
  const { timers, machine } = start();
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  assertEquals([machine.reliefs, machine.deep], [1, 1]);
  machine.cpu += MEMORY_LOOK_INTERVAL_MS;
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  machine.bytes = 300 * MIB;
  timers.advance(RELIEF_INTERVAL_MS);
  assertEquals([machine.reliefs, machine.deep], [2, 1]);
  timers.advance(REST_MS);
  assertEquals([machine.reliefs, machine.deep], [3, 2]);
  timers.advance(REST_MS);
  assertEquals(machine.reliefs, 3);
});

Deno.test("a process that is never quiet returns what is free, when it has grown", () => {
  const { timers, machine } = start();
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  const before = machine.trims;
  const work = (ms: number) => {
    for (let passed = 0; passed < ms; passed += MEMORY_LOOK_INTERVAL_MS) {
      machine.cpu += MEMORY_LOOK_INTERVAL_MS * QUIET_CPU_PART;
      timers.advance(MEMORY_LOOK_INTERVAL_MS);
    }
  };
  machine.bytes = machine.floor + WORTHWHILE_BYTES - 1;
  work(RELIEF_INTERVAL_MS);
  assertEquals(machine.trims - before, 0);
  machine.bytes++;
  machine.free = 3 * MIB;
  work(RELIEF_INTERVAL_MS);
  assertEquals(machine.trims - before, 1);
  assertEquals(machine.bytes, machine.floor + WORTHWHILE_BYTES - 3 * MIB);
  // What is in use is not asked for again, before there is as much more.
  machine.bytes += WORTHWHILE_BYTES;
  work(RELIEF_INTERVAL_MS);
  assertEquals([machine.trims - before, machine.reliefs], [2, 1]);
  // The last trim does not keep the relief waiting.
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  assertEquals([machine.trims - before, machine.reliefs], [2, 2]);
});

Deno.test("pauses between bursts are not all taken for the end of them", () => {
  const { timers, machine } = start();
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  machine.bytes = machine.floor + SURGE_BYTES - 1;
  timers.advance(RELIEF_INTERVAL_MS - MEMORY_LOOK_INTERVAL_MS);
  assertEquals(machine.reliefs, 1);
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  assertEquals(machine.reliefs, 2);
  // Unless it is much.
  machine.bytes = machine.floor + SURGE_BYTES;
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  assertEquals(machine.reliefs, 3);
});

Deno.test("memory that is in use is not asked for again and again", () => {
  const { timers, machine } = start();
  machine.floor = 200 * MIB;
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  timers.advance(10 * RELIEF_INTERVAL_MS);
  machine.bytes += WORTHWHILE_BYTES - 1;
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  assertEquals(machine.reliefs, 1);
  machine.bytes++;
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  assertEquals(machine.reliefs, 2);
});

Deno.test("what was held through a relief is returned once it is let go of", () => {
  const { timers, machine } = start();
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  machine.bytes = machine.floor = 300 * MIB;
  machine.buffers = 200 * MIB;
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  assertEquals([machine.reliefs, machine.trims], [2, 2]);

  // The C library keeps it, so the process is as large as before.
  machine.buffers = 200 * MIB - SURGE_BYTES;
  machine.free = 15 * MIB;
  machine.floor = 60 * MIB;
  machine.cpu += MEMORY_LOOK_INTERVAL_MS * QUIET_CPU_PART;
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  assertEquals([machine.reliefs, machine.trims], [2, 3]); // Busy.
  assertEquals(machine.bytes, 285 * MIB);
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  assertEquals([machine.reliefs, machine.bytes], [3, machine.floor]);
});

Deno.test("what is held is looked for again, ever more seldom, for no growth tells of garbage", () => {
  const { timers, machine } = start();
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  machine.buffers = SURGE_BYTES;
  machine.bytes += SURGE_BYTES;
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  const { reliefs } = machine;
  const looksIn = (ms: number) => {
    const before = machine.reliefs;
    timers.advance(ms);
    return machine.reliefs - before;
  };
  assertEquals(reliefs, 2);
  assertEquals(looksIn(HELD_INTERVAL_MS_MAX), 5); // 10 s, 20 s, … 160 s
  assertEquals(looksIn(6 * HELD_INTERVAL_MS_MAX), 6);
  machine.buffers = 0;
  timers.advance(HELD_INTERVAL_MS_MAX);
  assertEquals(looksIn(6 * HELD_INTERVAL_MS_MAX), 0);
});

Deno.test("memory that fell by itself is the new measure", () => {
  const { timers, machine } = start();
  machine.floor = 200 * MIB;
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  machine.bytes = 80 * MIB;
  timers.advance(RELIEF_INTERVAL_MS);
  machine.bytes = 80 * MIB + WORTHWHILE_BYTES;
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  assertEquals(machine.reliefs, 2);
});

Deno.test("a relief that was stopped looks no more", () => {
  const { timers, machine, relief } = start();
  relief.stop();
  timers.advance(MEMORY_LOOK_INTERVAL_MS);
  assertEquals(machine.reliefs, 0);
});

/** A second of a busy process, in short steps. */
function busySecond(timers: FakeTimers, machine: Machine, grownMib: number) {
  for (let step = 0; step < 10; step++) {
    machine.bytes += grownMib * MIB / 10;
    machine.cpu += MEMORY_LOOK_INTERVAL_MS / 10;
    timers.advance(MEMORY_LOOK_INTERVAL_MS / 10);
  }
}

Deno.test("near its limit a busy process is relieved, before it is killed", () => {
  const limit = 96 * MIB;
  const { timers, machine } = start({ limit });
  let most = 0;
  for (let second = 0; second < 60; second++) {
    busySecond(timers, machine, 10);
    most = Math.max(most, machine.bytes);
  }
  assert(most < 0.85 * limit, `${most / MIB} MiB`);
  assert(machine.tight > 20, `${machine.tight} reliefs`);
  assertEquals(machine.reliefs, 0);
});

Deno.test("near the limit, too, memory that fell by itself is the new measure", () => {
  const limit = 96 * MIB;
  const { timers, machine } = start({ limit, bytes: 92 * MIB });
  machine.floor = 92 * MIB;
  busySecond(timers, machine, 0);
  assertEquals(machine.tight, 1);
  machine.bytes = machine.floor = 60 * MIB;
  let most = 0;
  for (let second = 0; second < 60; second++) {
    busySecond(timers, machine, 10);
    most = Math.max(most, machine.bytes);
  }
  assert(most < 0.85 * limit, `${most / MIB} MiB`);
  assertEquals(machine.reliefs, 0);
});

Deno.test("what is in use near the limit is not collected for in vain", () => {
  const { timers, machine } = start({ limit: 64 * MIB, floor: 60 * MIB });
  for (let second = 0; second < 60; second++) busySecond(timers, machine, 0);
  assertEquals(machine.tight, 1);
});

Deno.test("far from its limit, and without one, a busy process is left alone", () => {
  for (const limit of [1024 * MIB, Infinity]) {
    const { timers, machine } = start({ limit });
    for (let second = 0; second < 30; second++) busySecond(timers, machine, 10);
    assertEquals([machine.tight, machine.reliefs], [0, 0]);
  }
});
