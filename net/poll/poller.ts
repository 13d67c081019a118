/**
 * Reports which of thousands of descriptors are ready (epoll(7)).
 *
 * Sockets of the C library are read and written at once, when there is
 * something to read or room to write; one wait serves all of them. A socket of
 * the platform costs an operation, a promise and a buffer for each read
 * instead.
 *
 * A {@linkcode Wakeup} waits while this thread has nothing to do. As long as
 * there is much to do, there is no wait: the poller looks once per turn of the
 * event loop. While one request after another is all there is, a {@linkcode
 * ShortWait} waits.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import type { Timers } from "../../proto/sync/clock.ts";
import {
  guarded,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import { type LibC, openLibc } from "../libc/libc.ts";
import { RingWakeup } from "./ring_wakeup.ts";
import { ShortWait } from "./short_wait.ts";
import { SOCKETS } from "../libc/choices.ts";
import { ThreadWakeup } from "./thread_wakeup.ts";

/**
 * Descriptors that one look finds; those beyond come with the next one, and
 * timers have their turn in between: with 128 of them, all new links of a crowd,
 * a turn took 80 ms.
 */
const EVENTS_MAX = 32;

/**
 * After a look with this many events the next look follows in the next turn.
 * With fewer, the kernel is asked to wake this thread, which costs a system
 * call.
 */
const BUSY_EVENTS_MIN = 3;

/**
 * Bytes that all conduits together move before the event loop has its turn: a
 * few milliseconds. When many peers are faster than this process, reading and
 * writing would continue from microtask to microtask, and no timer, signal or
 * other connection would be served.
 */
export const BYTES_PER_TURN: number = 4 * 1024 * 1024;

/** `struct epoll_event` is packed on x86-64 only. */
const EVENT_WORDS = Deno.build.arch === "x86_64" ? 3 : 4;
const DATA_AT = Deno.build.arch === "x86_64" ? 1 : 2;

/**
 * An idle process looks this often for missed events. It should never find one;
 * but a lost wake-up of the kernel would block all connections for good. Long
 * timers share their moments (`systemTimers`), so a process that has nothing to
 * do wakes no more often.
 */
export const LOOK_ANYWAY_MS = 30_000;

const EPOLL_CLOEXEC = 0x80000;
const EPOLL_CTL_ADD = 1;
const EPOLL_CTL_DEL = 2;
const EPOLL_CTL_MOD = 3;

/** Bits of epoll_ctl(2): the awaited and the reported events. */
export const Ready = {
  /** There is something to read, or an end, or a failure. */
  READ: 0x1,
  /** Urgent data (MSG_OOB) is among what there is to read. */
  URGENT: 0x2,
  /** There is room to write. */
  WRITE: 0x4,
  ERROR: 0x8,
  /** Both directions are over. */
  HANGUP: 0x10,
  /** The peer has ended its side. */
  PEER_END: 0x2000,
  /** Reports each change once, instead of the state again and again. */
  EDGE: 0x80000000,
} as const;

/** What the poller waits for. */
export interface Pollable {
  /**
   * Called from the event loop and never from inside another call.
   *
   * @param ready Bits of {@linkcode Ready}. A hint: where a descriptor was
   *   closed and given out again in between, they are its predecessor's.
   */
  onReady(ready: number): void;
  /**
   * `onReady` threw an internal error, which is reported already: end its
   * object. The others are notified in any case.
   */
  onFault(): void;
}

/** Wakes this thread when there is something to do. */
export interface Wakeup {
  /** For operators. */
  readonly kind: "ring" | "thread" | "timer";
  /**
   * Calls back once, as soon as a descriptor of the epoll is ready. Harmless
   * while it waits already.
   *
   * @returns False: it does not, and never will again.
   */
  wait(): boolean;
  /** @returns Settles when its last part is closed. */
  close(): Promise<void>;
}

/** Opens a waiter; returns `undefined` when that is impossible. */
export type OpenWakeup = (
  library: LibC,
  epoll: number,
  onReady: () => void,
) => Wakeup | undefined;

/** In order of preference. */
const WAKEUPS: readonly OpenWakeup[] = [RingWakeup.open, ThreadWakeup.open];

/** It is the `Turn` of its streams, too. */
export class Poller {
  /**
   * By descriptor; the kernel gives out the lowest free one. A `Map` with
   * constant additions and removals is rebuilt all the time, and V8 keeps what
   * the old tables held.
   */
  readonly #polled: (Pollable | undefined)[] = [];
  #size = 0;
  readonly #events = new Uint32Array(EVENTS_MAX * EVENT_WORDS);
  readonly #eventBytes = new Uint8Array(this.#events.buffer);
  readonly #one = new Uint32Array(EVENT_WORDS);
  readonly #oneBytes = new Uint8Array(this.#one.buffer);
  #epoll = -1;
  #waiter: Wakeup | undefined;
  /** Those that were not tried yet for this epoll. */
  #untried: readonly OpenWakeup[] = [];
  /** The waiter will call back. */
  #isAwaited = false;
  /** A look follows without a wake-up: in the next turn, or before it. */
  #lookIsDue = false;
  /** Somebody's task has its turn soon. */
  #othersAreDue = false;
  readonly #shortWait: ShortWait;
  #isLooking = false;
  /** Moved in this turn. */
  #bytes = 0;
  /** Those with more to do than one turn allows, in this order. */
  #unfinished = new Map<Pollable, number>();
  /** Those of them that go on in this look, and their new events. */
  #due: Map<Pollable, number> = NOBODY;
  #holders = 0;
  #closing: Promise<unknown> = Promise.resolve();

  /** @param waiters The first that is possible waits. */
  constructor(
    private readonly library: LibC,
    private readonly waiters: readonly OpenWakeup[] = WAKEUPS,
  ) {
    this.#shortWait = new ShortWait(library);
  }

  /** The active kind of waiter; `undefined` while nothing is waited for. */
  get wakeupKind(): Wakeup["kind"] | undefined {
    return this.#waiter?.kind;
  }

  /**
   * Waits for a descriptor, or notifies another `polled` of its events from now
   * on.
   *
   * @param interest Bits of {@linkcode Ready}; errors and hang-ups always count.
   * @returns Whether it is waited for from now on.
   */
  add(descriptor: number, interest: number, polled: Pollable): boolean {
    if (this.#polled[descriptor] !== undefined) {
      this.#polled[descriptor] = polled;
      return true;
    }
    if (this.#epoll < 0 && !this.#open()) return false;
    if (!this.#control(EPOLL_CTL_ADD, descriptor, interest)) {
      this.#closeWhenUnused();
      return false;
    }
    this.#polled[descriptor] = polled;
    this.#size++;
    return true;
  }

  /**
   * Waits for other events of a descriptor from now on. What is so already is
   * reported.
   *
   * @returns Whether it is waited for.
   */
  change(descriptor: number, interest: number): boolean {
    return this.#control(EPOLL_CTL_MOD, descriptor, interest);
  }

  #control(operation: number, descriptor: number, interest: number): boolean {
    const one = this.#one;
    one.fill(0);
    one[0] = interest;
    one[DATA_AT] = descriptor;
    const { epoll_ctl } = this.library;
    return epoll_ctl(this.#epoll, operation, descriptor, this.#oneBytes) === 0;
  }

  /** `polled` goes on in the next turn: others have theirs first. */
  goOn(polled: Pollable): void {
    this.#unfinished.set(polled, 0);
    if (!this.#isLooking) this.#lookSoon();
  }

  /** Counts bytes that were read or written. */
  moved(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Runs `task`, which guards itself, in the next turn. */
  later(task: () => void): void {
    this.#othersAreDue = true;
    setImmediate(task);
  }

  /** Whether the rest should wait for the next turn. */
  get isOver(): boolean {
    if (this.#bytes < BYTES_PER_TURN) return false;
    // Which begins with a look.
    if (!this.#isLooking) this.#lookSoon();
    return true;
  }

  /**
   * Waits no longer for a descriptor that goes on elsewhere.
   *
   * @returns As {@linkcode close}.
   */
  release(descriptor: number): Promise<unknown> {
    if (!this.#forget(descriptor)) return this.#closing;
    const { epoll_ctl } = this.library;
    epoll_ctl(this.#epoll, EPOLL_CTL_DEL, descriptor, this.#oneBytes);
    this.#closeWhenUnused();
    return this.#closing;
  }

  /**
   * Closes the descriptor, which ends the wait.
   *
   * @returns Settles when its last use is over.
   */
  close(descriptor: number): Promise<unknown> {
    this.#forget(descriptor);
    this.library.close(descriptor);
    this.#closeWhenUnused();
    return this.#closing;
  }

  /**
   * Keeps the wakeup alive while nothing is waited for: creating it takes some
   * hundred microseconds, too long for a process with one connection after
   * another. Meanwhile it sometimes looks for missed events, see {@linkcode
   * LOOK_ANYWAY_MS}.
   *
   * @returns A function that ends this.
   */
  hold(timers: Timers): () => void {
    this.#holders++;
    const look = () => {
      this.#lookAnyway();
      timer = timers.after(LOOK_ANYWAY_MS, look);
    };
    let timer = timers.after(LOOK_ANYWAY_MS, look);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      timer.cancel();
      this.#holders--;
      this.#closeWhenUnused();
    };
  }

  /** @returns Whether it was waited for. */
  #forget(descriptor: number): boolean {
    const polled = this.#polled[descriptor];
    if (polled === undefined) return false;
    if (this.#due.size > 0) this.#due.delete(polled);
    this.#polled[descriptor] = undefined;
    this.#size--;
    return true;
  }

  #open(): boolean {
    const epoll = this.library.epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) return false;
    this.#untried = this.waiters;
    this.#waiter = this.#openWaiter(epoll);
    if (this.#waiter === undefined) {
      this.library.close(epoll);
      return false;
    }
    this.#epoll = epoll;
    this.#await();
    return true;
  }

  #openWaiter(epoll: number): Wakeup | undefined {
    while (this.#untried.length > 0) {
      const [open, ...others] = this.#untried;
      this.#untried = others;
      const waiter = open!(this.library, epoll, () => {
        if (this.#waiter !== waiter) return; // It is closed already.
        this.#isAwaited = false;
        this.#shortWait.woke();
        if (!this.#lookIsDue) this.#look();
      });
      if (waiter !== undefined) return waiter;
    }
    return undefined;
  }

  #closeWhenUnused(): void {
    if (this.#size > 0 || this.#holders > 0 || this.#epoll < 0) return;
    const [epoll, waiter] = [this.#epoll, this.#waiter!];
    this.#epoll = -1;
    this.#waiter = undefined;
    this.#isAwaited = false;
    this.#unfinished.clear();
    const closing = waiter.close().then(() => {
      this.library.close(epoll);
    });
    this.#closing = Promise.all([this.#closing, closing]);
  }

  /** Makes the wakeup wait for events. */
  #await(): void {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    this.#shortWait.sleeps();
    while (!this.#waiter!.wait()) this.#replaceWaiter();
  }

  /** Uses the next kind that works here; the last kind always works. */
  #replaceWaiter(): void {
    this.#closing = Promise.all([this.#closing, this.#waiter!.close()]);
    this.#waiter = this.#openWaiter(this.#epoll);
    if (this.#waiter !== undefined) return;
    this.#untried = [BY_TIMER];
    this.#waiter = this.#openWaiter(this.#epoll);
  }

  #lookSoon(): void {
    if (this.#lookIsDue) return;
    this.#lookIsDue = true;
    setImmediate(this.#lookNow);
  }

  readonly #lookNow = () => {
    this.#lookIsDue = false;
    this.#look();
  };

  readonly #waitNow = () => {
    this.#lookIsDue = false;
    if (this.#hasWork) return this.#lookSoon();
    this.#beginTurn();
    this.#take(this.#shortWait.wait(this.#epoll, this.#eventBytes, EVENTS_MAX));
  };

  /** What would wait for nothing. */
  get #hasWork(): boolean {
    return this.#epoll < 0 || this.#othersAreDue ||
      this.#unfinished.size > 0 || this.#bytes >= BYTES_PER_TURN;
  }

  /** Looks without a wake-up. What it finds was not reported, or not yet. */
  #lookAnyway(): void {
    if (this.#lookIsDue || this.#look() === 0 || this.#epoll < 0) return;
    this.#isAwaited = false;
    this.#await();
  }

  /** @returns How many have something to do. */
  #look(): number {
    this.#beginTurn();
    if (this.#epoll < 0) return 0;
    const { epoll_wait } = this.library;
    const count = epoll_wait(this.#epoll, this.#eventBytes, EVENTS_MAX, 0);
    this.#take(count);
    return count;
  }

  #beginTurn(): void {
    this.#shortWait.moved(this.#bytes);
    this.#bytes = 0;
    this.#othersAreDue = false;
  }

  /** Notifies those that have something to do, and goes on when that is done. */
  #take(count: number): void {
    this.#isLooking = true;
    if (this.#unfinished.size > 0) this.#notifyUnfinished(count);
    else this.#notifyAll(count);
    this.#isLooking = false;
    // All of them may be closed meanwhile, and others opened.
    if (this.#epoll < 0) return;
    if (count >= BUSY_EVENTS_MIN || this.#unfinished.size > 0) this.#lookSoon();
    else if (count > 0 && this.#shortWait.isWorthIt) this.#waitSoon();
    else this.#await();
  }

  #waitSoon(): void {
    // It is woken, or looks, in any case.
    if (this.#isAwaited || this.#lookIsDue) return;
    this.#lookIsDue = true;
    this.#shortWait.afterMicrotasks(this.#waitNow);
  }

  #notifyAll(count: number): void {
    for (let index = 0; index < count; index++) {
      const at = index * EVENT_WORDS;
      const descriptor = this.#events[at + DATA_AT]!;
      this.#shortWait.saw(descriptor);
      const polled = this.#polled[descriptor];
      if (polled !== undefined) notify(polled, this.#events[at]!);
    }
  }

  /**
   * Streams that wait for their turn go first, and only one of them: otherwise
   * a stream that is ready in each look would take theirs each time.
   */
  #notifyUnfinished(count: number): void {
    const due = this.#due = this.#unfinished;
    this.#unfinished = new Map();
    for (let index = 0; index < count; index++) {
      const at = index * EVENT_WORDS;
      const polled = this.#polled[this.#events[at + DATA_AT]!];
      if (polled === undefined) continue;
      due.set(polled, (due.get(polled) ?? 0) | this.#events[at]!);
    }
    due.forEach(notifyDue);
    this.#due = NOBODY;
  }
}

/**
 * Events come once (`EDGE`), so a fault of one must not keep others from
 * theirs.
 */
function notify(polled: Pollable, ready: number): void {
  try {
    polled.onReady(ready);
  } catch (error) {
    reportInternalError("socket", error);
    guarded("socket", () => polled.onFault());
  }
}

function notifyDue(ready: number, polled: Pollable): void {
  notify(polled, ready);
}

/** Nothing is ever put into it. */
const NOBODY = new Map<Pollable, number>();

/**
 * Looks by the clock where nothing wakes us any more, as when no thread can be
 * made: that is slower, and better than connections that wait without end.
 */
const BY_TIMER: OpenWakeup = (_library, _epoll, onReady) => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return {
    kind: "timer",
    wait: () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        onReady();
      }, TIMER_LOOK_MS);
      return true;
    },
    close: () => Promise.resolve(clearTimeout(timer)),
  };
};

/** How long a byte may wait then; usually a look finds nothing. */
const TIMER_LOOK_MS = 10;

let shared: Poller | undefined;

/**
 * The poller of this process; `undefined` without a C library, or when the
 * platform's sockets were chosen.
 */
export function sharedPoller(): Poller | undefined {
  if (shared !== undefined) return shared;
  const [library, choice] = [openLibc(), SOCKETS.word];
  if (library === undefined || choice === "platform") return undefined;
  return shared = new Poller(
    library,
    choice === "thread" ? [ThreadWakeup.open] : WAKEUPS,
  );
}
