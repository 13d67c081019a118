/**
 * A port of this machine at which nobody can connect at once.
 *
 * @module
 */

import { openLibc } from "../../../net/libc/libc.ts";
import type { DatagramAddress } from "../../../net/libc/socket_address.ts";

/** A listener whose queue is full: who connects has to wait. */
export class Crowd {
  readonly address: DatagramAddress;
  readonly #listener: number;
  readonly #crowd: number[] = [];

  readonly #library = openLibc()!;

  constructor() {
    const library = this.#library;
    const address = new Uint8Array(16);
    address.set([2, 0, 0, 0, 127, 0, 0, 1]);
    this.#listener = library.socket(2, 1 | 0x800, 0);
    library.bind(this.#listener, address, address.length);
    library.listen(this.#listener, 0);
    const length = new Uint8Array(new Uint32Array([address.length]).buffer);
    library.getsockname(this.#listener, address, length);
    const port = (address[2]! << 8) | address[3]!;
    this.address = { hostname: "127.0.0.1", port };
    for (let count = 0; count < 3; count++) {
      const caller = library.socket(2, 1 | 0x800, 0);
      library.connect(caller, address, address.length);
      this.#crowd.push(caller);
    }
  }

  /** Accepts those who are there, and then the one whose port is `none of theirs`. */
  accept(): number {
    const none = new Uint8Array(16);
    const length = new Uint8Array(new Uint32Array([16]).buffer);
    return this.#library.accept4(this.#listener, none, length, 0);
  }

  /** The crowd goes, and those of it that were accepted. */
  leave(): void {
    for (const caller of this.#crowd.splice(0)) {
      this.#library.close(caller);
    }
  }

  [Symbol.dispose](): void {
    this.leave();
    this.#library.close(this.#listener);
  }
}
