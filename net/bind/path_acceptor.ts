/**
 * Accepts on a unix socket for several processes (workers), and gives each its
 * turn.
 *
 * The kernel spreads connections to a port over sockets (SO_REUSEPORT), and
 * cannot do that for a path: when several processes wait for one socket and the
 * load is low, nearly all connections go to the same process. The worker itself
 * carries a connection's bytes; the detour costs one accept and one send.
 *
 * @module
 */

import { closeAll, copyDescriptor } from "../libc/descriptors.ts";
import { DESCRIPTORS_MAX } from "../libc/descriptor_messages.ts";
import { lastError, openLibc } from "../libc/libc.ts";
import { Errno } from "../libc/system_error.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { acceptSocket } from "../libc/sockets.ts";
import { type Pollable, Ready, sharedPoller } from "../poll/poller.ts";

const INTEREST = Ready.READ | Ready.EDGE;

/** How long accepting rests when there is no descriptor left. */
const PAUSE_MS = 100;

/** The processes that get connections. */
export interface PathWorker {
  /** It does not answer: others are asked as long as there are any. */
  readonly isSilent: boolean;
  pass(key: string, descriptors: readonly number[]): void;
}

/** One for each path that workers listen on. */
export class PathAcceptors {
  readonly #acceptors = new Map<string, PathAcceptor>();

  /** @param descriptor The worker's copy of the listening socket. */
  add(key: string, descriptor: number, worker: PathWorker): void {
    const known = this.#acceptors.get(key);
    const acceptor = known ?? new PathAcceptor(key, descriptor);
    this.#acceptors.set(key, acceptor);
    acceptor.add(worker);
  }

  remove(key: string, worker: PathWorker): void {
    const acceptor = this.#acceptors.get(key);
    if (acceptor === undefined || acceptor.remove(worker)) return;
    this.#acceptors.delete(key);
    acceptor.close();
  }
}

export class PathAcceptor implements Pollable {
  readonly #key: string;
  readonly #descriptor: number;
  readonly #workers: PathWorker[] = [];
  #turn = 0;

  /** @param descriptor Of the listening socket; stays the caller's. */
  constructor(key: string, descriptor: number) {
    this.#key = key;
    this.#descriptor = copyDescriptor(descriptor);
  }

  add(worker: PathWorker): void {
    if (this.#workers.includes(worker)) return;
    this.#workers.push(worker);
    if (this.#workers.length > 1) return;
    const poller = sharedPoller()!;
    poller.add(this.#descriptor, INTEREST, this);
    // Connections from before the wait are not reported.
    poller.goOn(this);
  }

  /** @returns Whether there are other processes. */
  remove(worker: PathWorker): boolean {
    const at = this.#workers.indexOf(worker);
    if (at >= 0) this.#workers.splice(at, 1);
    return this.#workers.length > 0;
  }

  close(): void {
    this.#workers.length = 0;
    const poller = sharedPoller()!;
    void poller.release(this.#descriptor);
    void poller.close(this.#descriptor);
  }

  onReady(): void {
    if (this.#workers.length === 0) return;
    const accepted = this.#accept();
    const shares = new Map<PathWorker, number[]>();
    for (const descriptor of accepted) {
      const worker = this.#next();
      shares.set(worker, [...shares.get(worker) ?? [], descriptor]);
    }
    try {
      for (const [worker, share] of shares) worker.pass(this.#key, share);
    } finally {
      // Also where there is no descriptor left for a copy: then most of all.
      closeAll(accepted);
    }
    if (accepted.length === DESCRIPTORS_MAX) sharedPoller()!.goOn(this);
  }

  onFault(): void {}

  #accept(): readonly number[] {
    const library = openLibc()!;
    const accepted: number[] = [];
    while (accepted.length < DESCRIPTORS_MAX) {
      const descriptor = acceptSocket(library, this.#descriptor);
      if (descriptor < 0) {
        if (lastError(library) === Errno.EAGAIN) break;
        // There is no descriptor left, or a client has gone.
        systemTimers.after(PAUSE_MS, () => this.onReady());
        break;
      }
      accepted.push(descriptor);
    }
    return accepted;
  }

  #next(): PathWorker {
    for (let tries = this.#workers.length; tries > 0; tries--) {
      const worker = this.#workers[this.#turn++ % this.#workers.length]!;
      if (!worker.isSilent) return worker;
    }
    return this.#workers[0]!;
  }
}
