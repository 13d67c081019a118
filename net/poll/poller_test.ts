import { assert, assertEquals } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedErrors } from "../../tests/support/watch/recorded_errors.ts";
import { WAKEUPS } from "../../tests/support/memory/socket_kinds.ts";
import { type LibC, openLibc } from "../libc/libc.ts";
import {
  BYTES_PER_TURN,
  LOOK_ANYWAY_MS,
  type OpenWakeup,
  type Pollable,
  Poller,
  Ready,
  type Wakeup,
} from "./poller.ts";

const library = openLibc()!;

const EFD_FLAGS = 0x80800; // EFD_CLOEXEC, EFD_NONBLOCK

/** A descriptor that becomes readable when the test says so. */
class Bell implements Pollable {
  readonly descriptor = library.eventfd(0, EFD_FLAGS);
  rings = 0;
  faults = 0;
  #heard = Promise.withResolvers<void>();
  act = () => {};

  onReady(): void {
    this.rings++;
    this.act();
    this.#heard.resolve();
    this.#heard = Promise.withResolvers();
  }

  onFault(): void {
    this.faults++;
  }

  ring(): void {
    library.eventfd_write(this.descriptor, 1n);
  }

  async heard(rings: number): Promise<void> {
    while (this.rings < rings) await this.#heard.promise;
  }

  addTo(poller: Poller): this {
    assert(poller.add(this.descriptor, Ready.READ | Ready.EDGE, this));
    return this;
  }
}

/** A waiter that calls back when the test says so. */
class ScriptedWaiter implements Wakeup {
  readonly kind = "thread";
  waits = 0;
  works = true;
  isClosed = false;
  onReady = () => {};

  readonly open: OpenWakeup = (_library, _epoll, onReady) => {
    this.onReady = onReady;
    return this;
  };

  wait(): boolean {
    this.waits++;
    return this.works;
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }
}

for (const [name, open] of Object.entries(WAKEUPS)) {
  const test = (what: string, check: (poller: Poller) => Promise<void>) =>
    Deno.test(`poller (${name}): ${what}`, async () => {
      const poller = new Poller(library, [open]);
      await check(poller);
      assertEquals(poller.wakeupKind, undefined, "somebody still waits");
    });

  test("each is notified of what is its own, however many", async (poller) => {
    const bells = Array.from({ length: 500 }, () => new Bell().addTo(poller));
    for (let round = 1; round <= 3; round++) {
      for (const bell of bells) bell.ring();
      await Promise.all(bells.map((bell) => bell.heard(round)));
    }
    bells[7]!.ring();
    await bells[7]!.heard(4);
    assertEquals(bells.filter(({ rings }) => rings === 3).length, 499);
    await Promise.all(bells.map((bell) => poller.close(bell.descriptor)));
  });

  test("what is ready before it is waited for is reported", async (poller) => {
    const bell = new Bell();
    bell.ring();
    await bell.addTo(poller).heard(1);
    await poller.close(bell.descriptor);
  });

  test("what one closes in a look, that look reports no more", async (poller) => {
    const [one, other] = [new Bell().addTo(poller), new Bell().addTo(poller)];
    one.act = () => void poller.close(other.descriptor);
    other.act = () => void poller.close(one.descriptor);
    one.ring();
    other.ring();
    await Promise.race([one.heard(1), other.heard(1)]);
    await settled();
    assertEquals(one.rings + other.rings, 1);
    await poller.close(one.rings === 1 ? one.descriptor : other.descriptor);
  });

  test("one that throws is ended, and the others are notified", async (poller) => {
    using heard = new RecordedErrors();
    const bells = Array.from({ length: 9 }, () => new Bell().addTo(poller));
    const bad = bells[4]!;
    bad.act = () => {
      throw new Error("a slip");
    };
    for (let round = 1; round <= 3; round++) {
      for (const bell of bells) bell.ring();
      const others = bells.filter((bell) => bell !== bad);
      await Promise.all(others.map((bell) => bell.heard(round)));
    }
    // Those who wait for their turn are told in another place.
    poller.goOn(bad);
    poller.goOn(bells[5]!);
    await bells[5]!.heard(4);
    assertEquals(bad.faults, 4);
    assertEquals(heard.errors[3], { where: "socket", message: "a slip" });
    await Promise.all(bells.map((bell) => poller.close(bell.descriptor)));
  });

  test("a descriptor that is given out again is waited for anew", async (poller) => {
    let [last, rounds] = [new Bell().addTo(poller), 0];
    const done = Promise.withResolvers<void>();
    const next = () => {
      void poller.close(last.descriptor);
      if (++rounds === 100) return done.resolve();
      const bell = new Bell().addTo(poller);
      bell.act = next;
      bell.ring();
      last = bell;
    };
    next();
    await done.promise;
  });

  test("who has more to do goes on, others in between", async (poller) => {
    const order: string[] = [];
    const [busy, other] = [new Bell().addTo(poller), new Bell().addTo(poller)];
    busy.act = () => {
      order.push("busy");
      if (order.length < 5) poller.goOn(busy);
    };
    other.act = () => order.push("other");
    busy.ring();
    await busy.heard(1);
    other.ring();
    await Promise.all([other.heard(1), busy.heard(4)]);
    assertEquals(order.slice(0, 3).includes("other"), true, `${order}`);
    await poller.close(busy.descriptor);
    await poller.close(other.descriptor);
  });

  test("what goes on elsewhere is not reported", async (poller) => {
    const [gone, here] = [new Bell().addTo(poller), new Bell().addTo(poller)];
    poller.release(gone.descriptor);
    gone.ring();
    here.ring();
    await here.heard(1);
    assertEquals(gone.rings, 0);
    library.close(gone.descriptor);
    await poller.close(here.descriptor);
  });

  test("it opens and closes as often as there is something", async (poller) => {
    for (let round = 0; round < 30; round++) {
      const bell = new Bell().addTo(poller);
      if (round % 3 === 0) bell.ring();
      if (round % 3 === 1) await settled();
      const closed = poller.close(bell.descriptor);
      if (round % 2 === 0) await closed;
    }
    const bell = new Bell().addTo(poller);
    bell.ring();
    await bell.heard(1);
    await poller.close(bell.descriptor);
  });
}

function polled(name: string, fn: () => void | Promise<void>): void {
  Deno.test({ name, ignore: openLibc() === undefined, fn });
}

/** A test of one that is told when to look. */
function scripted(
  name: string,
  fn: (poller: Poller, waiter: ScriptedWaiter) => Promise<void>,
): void {
  polled(name, () => {
    const waiter = new ScriptedWaiter();
    return fn(new Poller(library, [waiter.open]), waiter);
  });
}

scripted(
  "who is always ready has one turn in each look, and not more and more",
  async (poller, waiter) => {
    const bell = new Bell();
    let [looks, most] = [0, 0];
    let inThisLook = 0;
    bell.act = () => {
      most = Math.max(most, ++inThisLook);
      // As a socket whose peer sends as fast as it is read.
      bell.ring();
      poller.goOn(bell);
    };
    bell.addTo(poller).ring();
    waiter.onReady();
    for (; looks < 50; looks++) {
      inThisLook = 0;
      await settled();
    }
    assert(bell.rings >= 40, `${bell.rings} turns`);
    assertEquals(most, 1, "turns in one of the event loop");
    await poller.close(bell.descriptor);
  },
);

scripted(
  "those who wait for their turn have it first, unless they are closed before",
  async (poller) => {
    const order: string[] = [];
    const bell = (name: string, act: () => void = () => {}) => {
      const bell = new Bell().addTo(poller);
      bell.act = () => {
        order.push(name);
        act();
      };
      bell.ring();
      return bell;
    };
    const late = bell("late");
    const gone = bell("gone");
    const waits = bell("waits", () => void poller.close(gone.descriptor));
    poller.goOn(waits);
    poller.goOn(gone);
    await settled();
    assertEquals(order, ["waits", "late"]);
    await poller.close(late.descriptor);
    await poller.close(waits.descriptor);
  },
);

scripted(
  "a turn is over for all when all together have moved enough",
  async (poller) => {
    const bell = new Bell().addTo(poller);
    poller.moved(BYTES_PER_TURN - 1);
    assertEquals(poller.isOver, false);
    poller.moved(1);
    assertEquals(poller.isOver, true);
    await settled();
    assertEquals(poller.isOver, false, "the next one has begun by itself");
    await poller.close(bell.descriptor);
  },
);

scripted("nobody is made to wait twice at a time", async (poller, waiter) => {
  const bell = new Bell().addTo(poller);
  assertEquals(waiter.waits, 1);
  for (let turn = 0; turn < 10; turn++) {
    poller.goOn(bell);
    await settled();
  }
  assertEquals([bell.rings, waiter.waits], [10, 1]);
  waiter.onReady();
  assertEquals(waiter.waits, 2);
  await poller.close(bell.descriptor);
  waiter.onReady(); // Too late, and harmless.
  assertEquals([waiter.waits, waiter.isClosed], [2, true]);
});

polled(
  "when nobody can wait any more, the next one does, or it is looked by the clock",
  async () => {
    const [first, second] = [new ScriptedWaiter(), new ScriptedWaiter()];
    const poller = new Poller(library, [first.open, second.open]);
    const bell = new Bell().addTo(poller);
    first.works = false;
    first.onReady();
    assertEquals([first.isClosed, second.waits], [true, 1]);
    bell.ring();
    second.onReady();
    assertEquals(bell.rings, 1);
    second.works = false;
    second.onReady();
    assertEquals(poller.wakeupKind, "timer");
    bell.ring();
    await bell.heard(2);
    bell.ring();
    await bell.heard(3);
    await poller.close(bell.descriptor);
    assertEquals(poller.wakeupKind, undefined);
  },
);

polled(
  "a wake-up that is lost is made up for in a process that is held",
  async () => {
    const [waiter, timers] = [new ScriptedWaiter(), new FakeTimers()];
    const poller = new Poller(library, [waiter.open]);
    const release = poller.hold(timers);
    const bell = new Bell().addTo(poller);
    timers.advance(LOOK_ANYWAY_MS);
    assertEquals([bell.rings, waiter.waits], [0, 1], "nothing was lost");
    bell.ring();
    timers.advance(LOOK_ANYWAY_MS);
    assertEquals([bell.rings, waiter.waits], [1, 2]);
    await poller.close(bell.descriptor);
    assertEquals(waiter.isClosed, false, "it is held");
    release();
    release();
    assertEquals([waiter.isClosed, timers.pendingCount], [true, 0]);
  },
);

/** A kernel that refuses one thing. */
function refusing(name: keyof LibC): LibC {
  return { ...library, [name]: () => -1 };
}

polled(
  "without a descriptor or memory to wait with it says so, and leaves nothing",
  () => {
    const waiter = new ScriptedWaiter();
    const bell = new Bell();
    const isAdded = (poller: Poller) =>
      poller.add(bell.descriptor, Ready.READ, bell);
    assertEquals(isAdded(new Poller(library, [])), false);
    const open = waiter.open;
    assertEquals(isAdded(new Poller(refusing("epoll_create1"), [open])), false);
    assertEquals(waiter.waits, 0);
    assertEquals(isAdded(new Poller(refusing("epoll_ctl"), [open])), false);
    assertEquals([waiter.waits, waiter.isClosed], [1, true]);
    library.close(bell.descriptor);
  },
);
