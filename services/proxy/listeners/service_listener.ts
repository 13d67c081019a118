/**
 * The listener of one proxied port, kept at the wanted address: a new address
 * is opened before the present one is closed, an address that another program
 * has is tried until it is free, and a socket that fails is opened again.
 *
 * It does not know what is served there.
 *
 * @module
 */

import type { Tools } from "../../../platform/program/tools.ts";
import {
  INTERNAL_ERROR,
  reportInternalError,
  unawaited,
} from "../../../platform/errors/internal_errors.ts";
import type { Protocol } from "../../catalog/model/model.ts";
import { ListenError, listenError } from "../../../net/bind/listen_error.ts";
import { keyOfAddress } from "../../../net/bind/socket_key.ts";
import { socketStore } from "../../../net/bind/socket_store.ts";
import { mayTakeDescriptor } from "../../../net/libc/descriptors.ts";
import { Errno, systemError } from "../../../net/libc/system_error.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import type { ListenAddress } from "../../../net/listen/listeners.ts";
import { Backoff } from "../../../proto/sync/backoff.ts";
import type { Timer } from "../../../proto/sync/clock.ts";
import type { OwnAddresses } from "./own_addresses.ts";
import type { PortListener } from "./proxied_port.ts";

/** Longest wait before a failed address is tried again. */
export const BIND_RETRY_MS_MAX = 10_000;

/** What a listener takes from outside. */
export interface ServiceListenerOptions {
  /** The port's name: `default/web:http`. */
  readonly name: string;
  readonly protocol: Protocol;
  /** One for all that may want the same addresses. */
  readonly own: OwnAddresses;
  /** It is open, or cannot be: called when that is known. */
  changed?(): void;
  /** @throws {ListenError} */
  open(at: ListenAddress): Promise<PortListener> | PortListener;
}

export class ServiceListener {
  readonly #backoff: Backoff;
  #wanted: ListenAddress | undefined;
  #opened:
    | { readonly at: ListenAddress; readonly listener: PortListener }
    | undefined;
  #problem: string | undefined;
  #retry: Timer | undefined;
  #openedAtMs = 0;
  /** Recognizes an attempt that a newer one has replaced. */
  #attempt = 0;

  constructor(
    private readonly options: ServiceListenerOptions,
    private readonly tools: Tools,
    random: () => number,
  ) {
    this.#backoff = new Backoff({ capMs: BIND_RETRY_MS_MAX, random });
  }

  /** `host:port` as bound; absent while there is none. */
  get address(): string | undefined {
    return this.#opened?.listener.address;
  }

  /** The bound address; its port is the real one, even if any was wanted. */
  get bound(): ListenAddress | undefined {
    return this.#opened === undefined ? undefined : {
      hostname: this.#opened.at.hostname,
      port: this.#opened.listener.port,
    };
  }

  /** Why it does not listen at the wanted address. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /**
   * Moves to the address. The present one stays in use until the new one is
   * open.
   */
  want(at: ListenAddress): void {
    if (this.#wanted !== undefined && isSame(this.#wanted, at)) return;
    this.#wanted = at;
    this.#backoff.reset();
    this.#try();
  }

  /** Another one of ours is to have the present address; `want` comes next. */
  yield(): void {
    this.#wanted = undefined;
    this.#closeOpened();
  }

  /** Another process has our addresses now: no address is opened any more. */
  retire(): void {
    this.#attempt++;
    this.#retry?.cancel();
  }

  /** Whether the first attempt at the wanted address is still running. */
  get isOpening(): boolean {
    return this.#wanted !== undefined && this.#opened === undefined &&
      this.#problem === undefined;
  }

  /** Not anywhere any more. */
  close(): void {
    this.#attempt++;
    this.#retry?.cancel();
    this.#wanted = undefined;
    this.#closeOpened();
  }

  #closeOpened(): void {
    if (this.#opened === undefined) return;
    const { at, listener } = this.#opened;
    this.#opened = undefined;
    const { own, protocol } = this.options;
    own.close(protocol, at, listener);
  }

  #try(): void {
    this.#retry?.cancel();
    const at = this.#wanted!;
    const attempt = ++this.#attempt;
    if (this.#opened !== undefined && isSame(this.#opened.at, at)) {
      this.#problem = undefined;
      return;
    }
    const { own, protocol } = this.options;
    const free = own.whenFree(protocol, at);
    if (free !== undefined) {
      const next = free.then(() => {
        if (attempt === this.#attempt) this.#try();
      });
      return unawaited("proxy", next);
    }
    let opening: Promise<PortListener> | PortListener;
    try {
      const key = keyOfAddress(protocol, at);
      const isBound = key !== undefined && socketStore()?.has(key) === true;
      if (!isBound && !mayTakeDescriptor("listener")) {
        const address = hostPort(at.hostname, at.port);
        throw listenError(address, systemError(Errno.EMFILE));
      }
      opening = this.options.open(at);
    } catch (error) {
      return this.#onFailure(error);
    }
    // A listener that opens at once is reported at once.
    if (!(opening instanceof Promise)) return this.#onOpen(at, opening);
    const opened = opening.then((listener) => {
      if (attempt === this.#attempt) this.#onOpen(at, listener);
      else listener.close();
    }, (error) => {
      if (attempt === this.#attempt) this.#onFailure(error);
    });
    unawaited("proxy", opened);
  }

  #onOpen(at: ListenAddress, listener: PortListener): void {
    const { name, own, protocol } = this.options;
    const { log, timers } = this.tools;
    this.#closeOpened();
    this.#opened = { at, listener };
    this.#openedAtMs = timers.now();
    const broken = listener.broken
      ?.then((why) => this.#onBroken(listener, why));
    if (broken !== undefined) unawaited("proxy", broken);
    // Any free port: no other service has asked for it.
    if (at.port !== 0) own.opened(protocol, at, name);
    this.#problem = undefined;
    log.event(`${name} is served on ${listener.address}`);
    this.options.changed?.();
  }

  /** It is opened again; soon only if it was well for long enough. */
  #onBroken(listener: PortListener, why: string): void {
    if (this.#opened?.listener !== listener) return;
    const { name } = this.options;
    const { log, timers } = this.tools;
    const problem = `${listener.address} is heard no more: ${why}`;
    log.warn(`${name}: ${problem}; opening it again`, { code: "TUN904" });
    this.#closeOpened();
    if (this.#wanted === undefined) return;
    this.#attempt++;
    this.#problem = problem;
    const livedMs = timers.now() - this.#openedAtMs;
    if (livedMs > BIND_RETRY_MS_MAX) this.#backoff.reset();
    this.#retry?.cancel();
    this.#retry = timers.after(this.#backoff.nextMs(), () => this.#try());
  }

  #onFailure(error: unknown): void {
    const isForeseen = error instanceof ListenError;
    if (!isForeseen) reportInternalError("proxy", error);
    const { name, own, protocol } = this.options;
    const { log, timers } = this.tools;
    const holder = own.holderOf(protocol, this.#wanted!);
    const problem = !isForeseen
      ? `Cannot listen: ${INTERNAL_ERROR}`
      : holder === undefined
      ? error.message
      : `Cannot listen on ${error.address}: ${holder} is served there`;
    // Logged once and not for each attempt.
    if (problem !== this.#problem) {
      const meanwhile = this.#opened === undefined
        ? ""
        : `, and serving on ${this.#opened.listener.address} until then`;
      log.warn(`${name}: ${problem}; trying again${meanwhile}`, {
        code: "TUN904",
      });
    }
    this.#problem = problem;
    this.#retry = timers.after(this.#backoff.nextMs(), () => this.#try());
    this.options.changed?.();
  }
}

function isSame(one: ListenAddress, other: ListenAddress): boolean {
  return one.hostname === other.hostname && one.port === other.port;
}
