/**
 * Where one proxied port is listened on, kept as it is wanted: another address
 * is opened before the present one is closed, and one that somebody else has is
 * tried until it is free.
 *
 * It knows addresses and nothing of what is served there.
 *
 * @module
 */

import { ListenError } from "../../host/listen_error.ts";
import type { BoundListener, ListenAddress } from "../../host/listeners.ts";
import type { Log } from "../../host/log.ts";
import { hostPort } from "../../host/sockets/deno_socket.ts";
import { Backoff } from "../../proto/sync/backoff.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** Longest wait before an address that could not be had is tried again. */
export const BIND_RETRY_MS_MAX = 10_000;

/** What a listener takes from outside. */
export interface ServiceListenerOptions {
  /** What is listened for: `default/web:http`. */
  readonly name: string;
  readonly log: Log;
  readonly timers: Timers;
  readonly random: () => number;
  /** @throws {ListenError} */
  open(at: ListenAddress): Promise<BoundListener> | BoundListener;
}

/** See the module description. */
export class ServiceListener {
  readonly #options: ServiceListenerOptions;
  readonly #backoff: Backoff;
  #wanted: ListenAddress | undefined;
  #opened:
    | { readonly at: ListenAddress; readonly listener: BoundListener }
    | undefined;
  #problem: string | undefined;
  #retry: Timer | undefined;
  /** Tells an attempt that was overtaken by another one. */
  #attempt = 0;

  constructor(options: ServiceListenerOptions) {
    this.#options = options;
    this.#backoff = new Backoff({
      capMs: BIND_RETRY_MS_MAX,
      random: options.random,
    });
  }

  /** `host:port` as bound; absent while there is none. */
  get address(): string | undefined {
    return this.#opened?.listener.address;
  }

  /** What was bound; its port is the real one, also when any was wanted. */
  get bound(): ListenAddress | undefined {
    return this.#opened === undefined ? undefined : {
      hostname: this.#opened.at.hostname,
      port: this.#opened.listener.port,
    };
  }

  /** Why it does not listen where it is wanted. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** From now on there. The present address stays in use until that is open. */
  want(at: ListenAddress): void {
    if (this.#wanted !== undefined && isSame(this.#wanted, at)) return;
    this.#wanted = at;
    this.#backoff.reset();
    this.#try();
  }

  /** Another one of ours is to have `at`: it must be free now. */
  yield(at: ListenAddress): void {
    if (this.#opened === undefined || !isSame(this.#opened.at, at)) return;
    this.#opened.listener.close();
    this.#opened = undefined;
  }

  /** Not anywhere any more; the address is free when this returns. */
  close(): void {
    this.#attempt++;
    this.#retry?.cancel();
    this.#wanted = undefined;
    this.#opened?.listener.close();
    this.#opened = undefined;
  }

  #try(): void {
    this.#retry?.cancel();
    const at = this.#wanted!;
    const attempt = ++this.#attempt;
    if (this.#opened !== undefined && isSame(this.#opened.at, at)) {
      this.#problem = undefined;
      return;
    }
    let opening: Promise<BoundListener> | BoundListener;
    try {
      opening = this.#options.open(at);
    } catch (error) {
      return this.#onFailure(error);
    }
    // What is open at once is said at once.
    if (!(opening instanceof Promise)) return this.#onOpen(at, opening);
    opening.then((listener) => {
      if (attempt === this.#attempt) this.#onOpen(at, listener);
      else listener.close();
    }, (error) => {
      if (attempt === this.#attempt) this.#onFailure(error);
    });
  }

  #onOpen(at: ListenAddress, listener: BoundListener): void {
    const { log, name } = this.#options;
    this.#opened?.listener.close();
    this.#opened = { at, listener };
    this.#problem = undefined;
    this.#backoff.reset();
    log.event(`${name} is served on ${listener.address}`);
  }

  #onFailure(error: unknown): void {
    if (!(error instanceof ListenError)) throw error;
    const { log, name, timers } = this.#options;
    // Said once and not at each try.
    if (error.message !== this.#problem) {
      const meanwhile = this.#opened === undefined
        ? ""
        : `, and serving on ${this.#opened.listener.address} until then`;
      log.warn(`${name}: ${error.message}; trying again${meanwhile}`);
    }
    this.#problem = error.message;
    this.#retry = timers.after(this.#backoff.nextMs(), () => this.#try());
  }
}

function isSame(one: ListenAddress, other: ListenAddress): boolean {
  return addressKey(one) === addressKey(other);
}

/** `host:port`, as wanted and not as bound. */
export function addressKey({ hostname, port }: ListenAddress): string {
  return hostPort(hostname, port);
}
