/**
 * Tells who of thousands of descriptors has something to do (epoll(7)).
 *
 * Sockets of the C library are read and written at once, when there is
 * something to read or room to write; all that has to be waited for is that,
 * and it is waited for together. A socket of the platform costs an operation, a
 * promise and a buffer for each read instead.
 *
 * Who waits while this thread has nothing to do is for {@linkcode Waiter}. As
 * long as there is much to do, nobody waits: it is looked once per turn of the
 * event loop.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import { type LibC, openLibc } from "./libc.ts";
import { RingWaiter } from "./ring_waiter.ts";
import { ThreadWaiter } from "./thread_waiter.ts";

/** Descriptors that one look finds; those beyond come with the next one. */
const EVENTS_MAX = 128;

/**
 * A look that found so many is followed by another one in the next turn. Below
 * it the kernel is asked to wake this thread, which costs a system call.
 */
const BUSY_EVENTS_MIN = 3;

/** `struct epoll_event` is packed on x86-64 only. */
const EVENT_WORDS = Deno.build.arch === "x86_64" ? 3 : 4;
const DATA_AT = Deno.build.arch === "x86_64" ? 1 : 2;

const EPOLL_CLOEXEC = 0x80000;
const EPOLL_CTL_ADD = 1;
const EPOLL_CTL_DEL = 2;

/** What is waited for, and what has come: bits of epoll_ctl(2). */
export const Ready = {
  /** There is something to read, or an end, or a failure. */
  READ: 0x1,
  /** There is room to write. */
  WRITE: 0x4,
  ERROR: 0x8,
  /** Both directions are over. */
  HANGUP: 0x10,
  /** The peer has ended its side. */
  PEER_END: 0x2000,
  /** Tell once each time it becomes so, not as long as it is. */
  EDGE: 0x80000000,
} as const;

/** Who is waited for. */
export interface Polled {
  /**
   * Called from the event loop and never from inside another call.
   *
   * @param ready Bits of {@linkcode Ready}. A hint: where a descriptor was
   *   closed and given out again in between, they are its predecessor's.
   */
  onReady(ready: number): void;
}

/** Who finds out that there is something to do while this thread has nothing. */
export interface Waiter {
  /** Calls back once, as soon as a descriptor of the epoll is ready. */
  wait(): void;
  /** @returns Settles when nothing of it is left. */
  close(): Promise<void>;
}

/** See the module description. */
export class Poller {
  readonly #library: LibC;
  readonly #polled = new Map<number, Polled>();
  readonly #events = new Uint32Array(EVENTS_MAX * EVENT_WORDS);
  readonly #eventOctets = new Uint8Array(this.#events.buffer);
  readonly #one = new Uint32Array(EVENT_WORDS);
  readonly #oneOctets = new Uint8Array(this.#one.buffer);
  #epoll = -1;
  #waiter: Waiter | undefined;
  #state: "waiting" | "looking" = "looking";
  /** Who has more to do than it may do in one turn. */
  #unfinished: Polled[] = [];
  #holders = 0;
  #closing: Promise<void> = Promise.resolve();

  constructor(library: LibC) {
    this.#library = library;
  }

  /**
   * Waits for a descriptor, or tells another of what happens to it from now on.
   *
   * @param interest Bits of {@linkcode Ready}; errors and hang-ups always count.
   * @returns Whether it is waited for from now on.
   */
  add(descriptor: number, interest: number, polled: Polled): boolean {
    if (this.#polled.has(descriptor)) {
      this.#polled.set(descriptor, polled);
      return true;
    }
    if (this.#epoll < 0 && !this.#open()) return false;
    this.#one.fill(0);
    this.#one[0] = interest;
    this.#one[DATA_AT] = descriptor;
    const { epoll_ctl } = this.#library;
    const failed = epoll_ctl(
      this.#epoll,
      EPOLL_CTL_ADD,
      descriptor,
      this.#oneOctets,
    );
    if (failed !== 0) {
      this.#closeWhenUnused();
      return false;
    }
    this.#polled.set(descriptor, polled);
    return true;
  }

  /** `polled` goes on in the next turn: others have theirs first. */
  goOn(polled: Polled): void {
    this.#unfinished.push(polled);
    if (this.#state === "looking") return;
    this.#state = "looking";
    setImmediate(this.#look);
  }

  /** Waits no longer for a descriptor that goes on elsewhere. */
  release(descriptor: number): void {
    if (!this.#polled.delete(descriptor)) return;
    const { epoll_ctl } = this.#library;
    epoll_ctl(this.#epoll, EPOLL_CTL_DEL, descriptor, this.#oneOctets);
    this.#closeWhenUnused();
  }

  /**
   * Closes the descriptor, which ends the wait.
   *
   * @returns Settles when nothing of it is left, as far as it is the last one.
   */
  close(descriptor: number): Promise<void> {
    this.#polled.delete(descriptor);
    this.#library.close(descriptor);
    this.#closeWhenUnused();
    return this.#closing;
  }

  /**
   * Keeps what waits alive while nobody is waited for: it takes some hundred
   * microseconds to make, too many for a process whose connections come one
   * after the other.
   *
   * @returns How to end that.
   */
  hold(): () => void {
    this.#holders++;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#holders--;
      this.#closeWhenUnused();
    };
  }

  #open(): boolean {
    const epoll = this.#library.epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) return false;
    this.#epoll = epoll;
    this.#waiter = RingWaiter.open(this.#library, epoll, this.#look) ??
      ThreadWaiter.open(this.#library, epoll, this.#look);
    if (this.#waiter === undefined) {
      this.#library.close(epoll);
      this.#epoll = -1;
      return false;
    }
    this.#state = "waiting";
    this.#waiter.wait();
    return true;
  }

  #closeWhenUnused(): void {
    if (this.#polled.size > 0 || this.#holders > 0 || this.#epoll < 0) return;
    const [epoll, waiter] = [this.#epoll, this.#waiter!];
    this.#epoll = -1;
    this.#waiter = undefined;
    this.#unfinished = [];
    this.#closing = waiter.close().then(() => {
      this.#library.close(epoll);
    });
  }

  readonly #look = () => {
    if (this.#epoll < 0) return;
    this.#state = "looking";
    const { epoll_wait } = this.#library;
    const epoll = this.#epoll;
    const unfinished = this.#unfinished;
    const count = epoll_wait(epoll, this.#eventOctets, EVENTS_MAX, 0);
    for (let index = 0; index < count; index++) {
      const at = index * EVENT_WORDS;
      const descriptor = this.#events[at + DATA_AT]!;
      this.#polled.get(descriptor)?.onReady(this.#events[at]!);
    }
    if (unfinished.length > 0) {
      this.#unfinished = this.#unfinished.slice(unfinished.length);
      for (const polled of unfinished) polled.onReady(0);
    }
    // Somebody may have closed all of them meanwhile, and opened others.
    if (this.#epoll !== epoll) return;
    if (count >= BUSY_EVENTS_MIN || this.#unfinished.length > 0) {
      setImmediate(this.#look);
    } else {
      this.#state = "waiting";
      this.#waiter!.wait();
    }
  };
}

let shared: Poller | undefined;

/** The one of this process; `undefined` where there is no C library to ask. */
export function sharedPoller(): Poller | undefined {
  const library = openLibc();
  if (library === undefined) return undefined;
  return shared ??= new Poller(library);
}
