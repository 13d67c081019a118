/** What wakes the event loop: `RingWakeup` and `ThreadWakeup` alike, then each. */

import { assert, assertEquals } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { WAKEUPS } from "../../tests/support/memory/socket_kinds.ts";
import { type LibC, openLibc } from "../libc/libc.ts";
import type { OpenWakeup, Wakeup } from "./poller.ts";
import { RingWakeup } from "./ring_wakeup.ts";
import { ThreadWakeup } from "./thread_wakeup.ts";

const library = openLibc()!;
const EFD_FLAGS = 0x80800; // EFD_CLOEXEC, EFD_NONBLOCK
const EPOLL_CLOEXEC = 0x80000;

/** An epoll with one descriptor, and a waiter for it. */
class Rig {
  readonly #epoll = library.epoll_create1(EPOLL_CLOEXEC);
  readonly #bell = library.eventfd(0, EFD_FLAGS);
  readonly waiter: Wakeup;
  calls = 0;
  #called = Promise.withResolvers<void>();

  constructor(open: OpenWakeup, over: Partial<LibC> = {}) {
    const event = new Uint8Array(16);
    event[0] = 1; // EPOLLIN, for as long as it is.
    library.epoll_ctl(this.#epoll, 1, this.#bell, event);
    this.waiter = open({ ...library, ...over }, this.#epoll, () => {
      this.calls++;
      this.#called.resolve();
      this.#called = Promise.withResolvers();
    })!;
  }

  ring(): void {
    library.eventfd_write(this.#bell, 1n);
  }

  hush(): void {
    library.eventfd_read(this.#bell, new Uint8Array(8));
  }

  /** Settles at the next call. */
  get called(): Promise<void> {
    return this.#called.promise;
  }

  async close(): Promise<void> {
    await this.waiter.close();
    library.close(this.#epoll);
    library.close(this.#bell);
  }
}

/** Long enough for whoever would call to have called. */
async function quiet(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await settled();
}

for (const [name, open] of Object.entries(WAKEUPS)) {
  Deno.test(`${name} waiter: calls once for each wait, whenever it becomes ready`, async () => {
    const rig = new Rig(open);
    for (let round = 1; round <= 50; round++) {
      const isLate = round % 2 === 0;
      const { called } = rig;
      if (!isLate) rig.ring();
      assert(rig.waiter.wait());
      if (isLate) {
        // Also behind the time in which it looks by itself.
        if (round % 10 === 0) await quiet();
        rig.ring();
      }
      await called;
      assertEquals(rig.calls, round);
      rig.hush();
    }
    await quiet();
    assertEquals(rig.calls, 50);
    await rig.close();
  });

  Deno.test(`${name} waiter: waits on top of each other are no calls on top of each other`, async () => {
    const rig = new Rig(open);
    for (let round = 0; round < 20; round++) {
      const [before, { called }] = [rig.calls, rig];
      for (let wait = 0; wait < 3; wait++) assert(rig.waiter.wait());
      rig.ring();
      await called;
      rig.hush();
      await quiet();
      assert(rig.calls - before <= 1, `${rig.calls - before} calls`);
    }
    await rig.close();
  });

  Deno.test(`${name} waiter: closed while it waits, it calls nobody`, async () => {
    for (const isDeep of [false, true]) {
      const rig = new Rig(open);
      assert(rig.waiter.wait());
      if (isDeep) await quiet();
      const closed = rig.waiter.close();
      rig.ring();
      await closed;
      await quiet();
      assertEquals(rig.calls, 0);
    }
  });

  Deno.test(`${name} waiter: opened and closed often, it leaves no descriptor`, async () => {
    const kernel = new Descriptors();
    for (let round = 0; round < 50; round++) {
      const rig = new Rig(open, kernel.calls);
      if (round % 2 === 0) rig.waiter.wait();
      await rig.close();
    }
    assertEquals(kernel.left, []);
  });
}

function test(
  kind: "ring" | "thread",
  name: string,
  fn: () => void | Promise<void>,
): void {
  Deno.test({ name, ignore: WAKEUPS[kind] === undefined, fn });
}

/** Counts what is opened and closed by the calls that waiters make. */
class Descriptors {
  readonly #open = new Set<number>();
  /** Opened by such a call, closed by the platform. */
  readonly #given = new Set<number>();
  readonly calls: Partial<LibC> = {
    epoll_create1: (flags) => this.#opened(library.epoll_create1(flags)),
    eventfd: (count, flags) => this.#opened(library.eventfd(count, flags)),
    io_uring_setup: (...given) => {
      const ring = library.io_uring_setup(...given);
      this.#opened(Number(ring));
      return ring;
    },
    pipe2: (ends, flags) => {
      const failed = library.pipe2(ends, flags);
      const [readEnd, writeEnd] = new Int32Array(
        (ends as Uint8Array<ArrayBuffer>).buffer,
      );
      this.#given.add(readEnd!);
      this.#opened(writeEnd!);
      return failed;
    },
    close: (descriptor) => {
      this.#open.delete(descriptor);
      return library.close(descriptor);
    },
  };

  get left(): readonly number[] {
    return [...this.#open];
  }

  #opened(descriptor: number): number {
    if (descriptor >= 0) this.#open.add(descriptor);
    return descriptor;
  }
}

/** Whether one opens where the kernel answers so. */
function opens(open: OpenWakeup, over: Partial<LibC>): boolean {
  const kernel = new Descriptors();
  const waiter = open({ ...library, ...kernel.calls, ...over }, 0, () => {});
  void waiter?.close();
  assertEquals(kernel.left, []);
  return waiter !== undefined;
}

test(
  "ring",
  "a ring is none where the kernel refuses a part of it, and nothing is left",
  () => {
    const refused: Partial<LibC>[] = [
      { io_uring_setup: () => -1n },
      { pipe2: () => -1 },
      { mmap: () => null },
      { mmap: () => Deno.UnsafePointer.create(2n ** 64n - 1n) },
    ];
    for (const over of refused) {
      assertEquals(opens(RingWakeup.open, over), false);
    }
  },
);

test("ring", "a kernel that is too old to wake anybody gives no ring", () => {
  const kernel = new Descriptors();
  const io_uring_setup: LibC["io_uring_setup"] = (...given) => {
    const ring = kernel.calls.io_uring_setup!(...given);
    const { buffer } = given[2] as Uint8Array<ArrayBuffer>;
    new Uint32Array(buffer)[5] = 0b111111; // Linux 5.7: `features`.
    return ring;
  };
  const over = { ...library, ...kernel.calls, io_uring_setup };
  assertEquals(RingWakeup.open(over, 0, () => {}), undefined);
  assertEquals(kernel.left, []);
});

test(
  "ring",
  "a ring that takes no orders, or fails at one, says that it waits no more",
  async () => {
    const enters: LibC["io_uring_enter"][] = [
      () => -1n,
      () => 1n,
      () => 0n,
    ];
    for (const io_uring_enter of enters) {
      const rig = new Rig(RingWakeup.open, { io_uring_enter });
      assertEquals(rig.waiter.wait(), false);
      assertEquals(rig.waiter.wait(), false, "and never again");
      await rig.close();
    }
    // An epoll that is none: the first order fails, the second never begins.
    const waiter = RingWakeup.open(library, 1 << 20, () => {})!;
    assertEquals(waiter.wait(), false);
    await waiter.close();
  },
);

test(
  "thread",
  "a thread is none where a descriptor is missing, and nothing is left",
  () => {
    const refused: Partial<LibC>[] = [
      { eventfd: () => -1 },
      { epoll_create1: () => -1 },
      { epoll_ctl: () => -1 },
    ];
    for (const over of refused) {
      assertEquals(opens(ThreadWakeup.open, over), false);
    }
  },
);
