/**
 * Waits for descriptors on a thread of the platform, when the kernel offers no
 * other way to wake the event loop's own thread ({@linkcode RingWakeup}). One
 * thread must wake the other, which makes a single small request slower.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { setImmediate } from "node:timers";
import type { LibC } from "../libc/libc.ts";
import type { Wakeup } from "./poller.ts";

/**
 * Turns in which this thread looks by itself before the other thread waits:
 * waking a thread costs more than some looks.
 */
const EMPTY_TURNS_MAX = 8;

const EPOLL_CTL_ADD = 1;
const EPOLLIN = 1;
const EFD_FLAGS = 0x80800; // EFD_CLOEXEC, EFD_NONBLOCK

/** `struct epoll_event`, of which only the first word matters here. */
const EVENT_BYTES = 16;

export class ThreadWakeup implements Wakeup {
  readonly kind = "thread";
  readonly #event = new Uint8Array(EVENT_BYTES);
  /** By this thread or the other, never by both at a time. */
  #isWaiting = false;
  #waiting: Promise<number> | undefined;
  #isClosed = false;
  #isBroken = false;

  /** @returns `undefined`: out of descriptors. */
  static open(
    library: LibC,
    epoll: number,
    onReady: () => void,
  ): ThreadWakeup | undefined {
    const bell = library.eventfd(0, EFD_FLAGS);
    const both = library.epoll_create1(0x80000);
    const watch = (descriptor: number) =>
      library.epoll_ctl(both, EPOLL_CTL_ADD, descriptor, READABLE) === 0;
    if (bell >= 0 && both >= 0 && watch(bell) && watch(epoll)) {
      return new ThreadWakeup(library, epoll, bell, both, onReady);
    }
    for (const one of [bell, both]) if (one >= 0) library.close(one);
    return undefined;
  }

  private constructor(
    private readonly library: LibC,
    private readonly epoll: number,
    /** Becomes readable when the other thread is to wait no longer. */
    private readonly bell: number,
    /** The descriptors that it waits for: the caller's epoll, and the bell. */
    private readonly both: number,
    private readonly onReady: () => void,
  ) {}

  wait(): boolean {
    if (this.#isBroken) return false;
    if (this.#isWaiting) return true;
    this.#isWaiting = true;
    let turns = 0;
    const turn = () => {
      if (this.#isClosed) return;
      if (this.#isReady()) return this.#ready();
      if (++turns < EMPTY_TURNS_MAX) setImmediate(turn);
      else unawaited("socket", this.#waitElsewhere(), () => this.#broken());
    };
    setImmediate(turn);
    return true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.library.eventfd_write(this.bell, 1n);
    await this.#waiting;
    this.library.close(this.both);
    this.library.close(this.bell);
  }

  #isReady(): boolean {
    return this.library.epoll_wait(this.both, this.#event, 1, 0) > 0;
  }

  async #waitElsewhere(): Promise<void> {
    this.#waiting = this.library.epoll_wait_elsewhere(
      this.both,
      this.#event,
      1,
      -1,
    );
    await this.#waiting;
    this.#waiting = undefined;
    if (!this.#isClosed) this.#ready();
  }

  /** The next `wait` reports that, and the poller uses another kind. */
  #broken(): void {
    this.#isBroken = true;
    this.#waiting = undefined;
    if (!this.#isClosed) this.#ready();
  }

  #ready(): void {
    this.#isWaiting = false;
    this.onReady();
  }
}

const READABLE = new Uint8Array(EVENT_BYTES);
READABLE[0] = EPOLLIN;
