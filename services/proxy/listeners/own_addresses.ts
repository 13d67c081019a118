/**
 * The addresses that a proxy listens on, and what happens when one of its ports
 * gives an address up.
 *
 * In one change of the catalog an address may go from one port to another: a
 * service is renamed, or two services swap. The socket stays open meanwhile, so
 * that no client is refused, and is closed at the end of the change if no port
 * has taken it. On a platform where that cannot be done, closing a listener
 * takes a moment, in which the address is not free.
 *
 * @module
 */

import type { Protocol } from "../../catalog/model/model.ts";
import type { ListenAddress } from "../../../net/listen/listeners.ts";
import { socketStore } from "../../../net/bind/socket_store.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import type { PortListener } from "./proxied_port.ts";

/** Hosts that mean every address of the machine. */
const EVERYWHERE: readonly string[] = ["", "0.0.0.0", "::"];

/** `tcp host:port`, as requested and not as bound. */
export function addressKey(
  protocol: Protocol,
  { hostname, port }: ListenAddress,
): string {
  return `${protocol} ${hostPort(hostname, port)}`;
}

interface Holder {
  readonly name: string;
  readonly protocol: Protocol;
  readonly at: ListenAddress;
}

export class OwnAddresses {
  readonly #holders = new Map<string, Holder>();
  readonly #closing = new Map<string, Promise<void>>();
  /** Their keys in the store; absent outside a change. */
  #left: Map<string, string> | undefined;

  /** @param name Who has the address now. */
  opened(protocol: Protocol, at: ListenAddress, name: string): void {
    this.#holders.set(addressKey(protocol, at), { name, protocol, at });
  }

  /** Closes a listener that was opened at an address. */
  close(protocol: Protocol, at: ListenAddress, listener: PortListener): void {
    const key = addressKey(protocol, at);
    this.#holders.delete(key);
    if (this.#left !== undefined && listener.leave !== undefined) {
      const left = listener.leave();
      if (left !== undefined) this.#left.set(key, left);
    } else listener.close();
    if (listener.finished === undefined) return;
    const free = listener.finished.then(() => {
      if (this.#closing.get(key) === free) this.#closing.delete(key);
    });
    this.#closing.set(key, free);
  }

  /**
   * Addresses that are closed during `change` stay open for ports that open in
   * it.
   */
  change(change: () => void): void {
    const left = this.#left = new Map<string, string>();
    try {
      change();
    } finally {
      this.#left = undefined;
      const unwanted = new Set(left.values());
      if (left.size > 0) socketStore()?.close((key) => unwanted.has(key));
    }
  }

  /**
   * The port that has an address, or the same port on every address, if one of
   * ours has it.
   */
  holderOf(protocol: Protocol, at: ListenAddress): string | undefined {
    const holder = this.#holders.get(addressKey(protocol, at));
    if (holder !== undefined) return holder.name;
    for (const { name, ...other } of this.#holders.values()) {
      if (other.protocol !== protocol || other.at.port !== at.port) continue;
      const isEverywhere = EVERYWHERE.includes(other.at.hostname) ||
        EVERYWHERE.includes(at.hostname);
      if (isEverywhere) {
        return `${name} on ${hostPort(other.at.hostname, other.at.port)}`;
      }
    }
    return undefined;
  }

  /** Settles when an address is free; absent: it is, as far as we know. */
  whenFree(protocol: Protocol, at: ListenAddress): Promise<void> | undefined {
    const key = addressKey(protocol, at);
    const left = this.#left?.get(key);
    const isOpen = left !== undefined && socketStore()?.has(left) === true;
    return isOpen ? undefined : this.#closing.get(key);
  }
}
