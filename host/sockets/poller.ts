/**
 * Waits for thousands of descriptors at once (epoll(7)), where each socket of
 * the platform would cost several kilobytes to be waited for.
 *
 * A thread of the platform waits, because the platform's own loop takes no
 * descriptors of others. As long as there is something to do, this thread looks
 * once per turn instead: to wake another one costs more than a datagram does.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import type { LibC } from "./libc.ts";

/** Descriptors that one look finds. */
const EVENTS_MAX = 64;

/** Turns without anything to do, until the other thread waits. */
const EMPTY_TURNS_MAX = 8;

/** `struct epoll_event` is packed on x86-64 only. */
const EVENT_WORDS = Deno.build.arch === "x86_64" ? 3 : 4;
const DATA_AT = Deno.build.arch === "x86_64" ? 1 : 2;

const EPOLL_CLOEXEC = 0x80000;
const EPOLL_CTL_ADD = 1;
const EPOLLIN = 1;
const EFD_NONBLOCK = 0x800;

/** Who is waited for. */
export interface Polled {
  /** There is something to read, or to know. */
  onReady(): void;
}

/** See the module description. */
export class Poller {
  readonly #library: LibC;
  readonly #polled = new Map<number, Polled>();
  readonly #events = new Uint32Array(EVENTS_MAX * EVENT_WORDS);
  readonly #eventOctets = new Uint8Array(this.#events.buffer);
  readonly #one = new Uint32Array(EVENT_WORDS);
  readonly #oneOctets = new Uint8Array(this.#one.buffer);
  readonly #count = new Uint8Array(8);
  #epoll = -1;
  /** Becomes readable when the other thread is to wait no longer. */
  #bell = -1;
  #running: Promise<void> | undefined;

  constructor(library: LibC) {
    this.#library = library;
  }

  /** @returns Whether it is waited for from now on. */
  add(descriptor: number, polled: Polled): boolean {
    if (this.#epoll < 0 && !this.#open()) return false;
    if (!this.#watch(descriptor)) return false;
    this.#polled.set(descriptor, polled);
    this.#running ??= this.#run();
    return true;
  }

  /**
   * Closes the descriptor, which ends the wait.
   *
   * @returns Settles when nothing of it is left, as far as it is the last one.
   */
  close(descriptor: number): Promise<void> {
    this.#polled.delete(descriptor);
    this.#library.close(descriptor);
    if (this.#polled.size > 0) return Promise.resolve();
    this.#library.eventfd_write(this.#bell, 1n);
    return this.#running ?? Promise.resolve();
  }

  #open(): boolean {
    this.#epoll = this.#library.epoll_create1(EPOLL_CLOEXEC);
    this.#bell = this.#library.eventfd(0, EPOLL_CLOEXEC | EFD_NONBLOCK);
    if (this.#epoll >= 0 && this.#bell >= 0 && this.#watch(this.#bell)) {
      return true;
    }
    this.#shut();
    return false;
  }

  #shut(): void {
    if (this.#epoll >= 0) this.#library.close(this.#epoll);
    if (this.#bell >= 0) this.#library.close(this.#bell);
    this.#epoll = this.#bell = -1;
  }

  #watch(descriptor: number): boolean {
    this.#one.fill(0);
    this.#one[0] = EPOLLIN;
    this.#one[DATA_AT] = descriptor;
    const { epoll_ctl } = this.#library;
    return epoll_ctl(
      this.#epoll,
      EPOLL_CTL_ADD,
      descriptor,
      this.#oneOctets,
    ) === 0;
  }

  /** Goes on while there is anything to wait for. */
  async #run(): Promise<void> {
    const { epoll_wait, epoll_wait_elsewhere } = this.#library;
    let emptyTurns = EMPTY_TURNS_MAX;
    while (this.#polled.size > 0) {
      const isWaiting = emptyTurns >= EMPTY_TURNS_MAX;
      const count = isWaiting
        ? await epoll_wait_elsewhere(
          this.#epoll,
          this.#eventOctets,
          EVENTS_MAX,
          -1,
        )
        : epoll_wait(this.#epoll, this.#eventOctets, EVENTS_MAX, 0);
      this.#tell(count);
      emptyTurns = count > 0 ? 0 : emptyTurns + 1;
      // A flood must not hold up everybody else.
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    this.#running = undefined;
    this.#shut();
  }

  /** Somebody may have come since it was rung for the last one that went. */
  #silence(): void {
    this.#library.eventfd_read(this.#bell, this.#count);
  }

  #tell(count: number): void {
    for (let index = 0; index < count; index++) {
      const descriptor = this.#events[index * EVENT_WORDS + DATA_AT]!;
      if (descriptor === this.#bell) this.#silence();
      else this.#polled.get(descriptor)?.onReady();
    }
  }
}
