import { assert, assertEquals } from "@std/assert";
import { openLibc } from "../libc/libc.ts";
import { ShortWait } from "./short_wait.ts";

const library = openLibc()!;
const IN = 1;

/** An epoll that waits for one bell. */
function withBell(
  check: (epoll: number, ring: () => void, wait: ShortWait) => void,
): void {
  const epoll = library.epoll_create1(0);
  const bell = library.eventfd(0, 0);
  const event = new Uint8Array(16);
  event[0] = IN;
  library.epoll_ctl(epoll, 1, bell, event);
  const ring = () => void library.eventfd_write(bell, 1n);
  try {
    check(epoll, ring, new ShortWait(library));
  } finally {
    library.close(bell);
    library.close(epoll);
  }
}

const events = () => new Uint8Array(16 * 4);

function exchange(wait: ShortWait, ...descriptors: number[]): void {
  for (const descriptor of descriptors) wait.saw(descriptor);
}

/** A sleep that ends at once. */
function shortSleep(wait: ShortWait): void {
  wait.sleeps();
  wait.woke();
}

Deno.test("a short wait pays for one exchange whose answers come soon", () => {
  const wait = new ShortWait(library);
  exchange(wait, 7, 8, 7, 8, 7, 8);
  assert(!wait.isWorthIt, "nothing has come soon yet");
  shortSleep(wait);
  assert(wait.isWorthIt);
});

Deno.test("a short wait does not pay for several exchanges", () => {
  const wait = new ShortWait(library);
  shortSleep(wait);
  exchange(wait, 7, 8, 7, 8, 7, 8);
  assert(wait.isWorthIt);
  exchange(wait, 9);
  assert(!wait.isWorthIt);
  exchange(wait, 7, 8, 9, 7, 8, 9, 7, 8, 9);
  assert(!wait.isWorthIt);
});

Deno.test("a short wait does not pay for bulk", () => {
  const wait = new ShortWait(library);
  shortSleep(wait);
  exchange(wait, 7, 8, 7, 8, 7, 8);
  wait.moved(4096);
  assert(wait.isWorthIt);
  wait.moved(100_000);
  assert(!wait.isWorthIt);
});

Deno.test("a short wait gives what is ready, and nothing after it was in vain", () => {
  withBell((epoll, ring, wait) => {
    shortSleep(wait);
    exchange(wait, 7, 8, 7, 8, 7, 8);
    ring();
    const found = events();
    assertEquals(wait.wait(epoll, found, 4), 1);
    assertEquals(found[0], IN);
  });
});

Deno.test("waits in vain end, until an answer comes soon again", () => {
  withBell((epoll, ring, wait) => {
    shortSleep(wait);
    exchange(wait, 7, 8, 7, 8, 7, 8);
    let waits = 0;
    for (; wait.isWorthIt; waits++) {
      assertEquals(wait.wait(epoll, events(), 4), 0);
    }
    assertEquals(waits, 4);
    shortSleep(wait);
    assert(wait.isWorthIt);
    wait.wait(epoll, events(), 4);
    ring();
    assertEquals(wait.wait(epoll, events(), 4), 1);
    for (let more = 0; more < 3; more++) {
      assert(wait.isWorthIt);
      wait.wait(epoll, events(), 4);
    }
  });
});

Deno.test("a kernel without short waits is asked once", () => {
  const wait = new ShortWait(library);
  shortSleep(wait);
  exchange(wait, 7, 8, 7, 8, 7, 8);
  assert(wait.isWorthIt);
  // As a call that fails: there is no such descriptor.
  assertEquals(wait.wait(-1, events(), 4), 0);
  shortSleep(wait);
  exchange(wait, 4, 5, 4, 5, 4, 5);
  assert(!wait.isWorthIt);
});

/** Some hundred times as many as there are between two turns. */
const WITHOUT_A_TURN_MAX = 1_000_000;

Deno.test("a short wait begins after the microtasks, and the loop has its turns", async () => {
  const wait = new ShortWait(library);
  const order: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  let turns = 0;
  const isOver = { now: false };
  const turn = () => {
    turns++;
    if (!isOver.now) setTimeout(turn, 0);
  };
  setTimeout(turn, 0);
  const again = () => {
    order.push("wait");
    if (turns >= 2 || order.length > WITHOUT_A_TURN_MAX) return resolve();
    queueMicrotask(() =>
      queueMicrotask(() => {
        order.push("written");
      })
    );
    wait.afterMicrotasks(again);
  };
  again();
  await promise;
  isOver.now = true;
  // Each wait comes after what the one before had written.
  assert(
    order.every((what, at) => what === (at % 2 === 0 ? "wait" : "written")),
  );
  assert(turns >= 2, `${turns} turns`);
});
