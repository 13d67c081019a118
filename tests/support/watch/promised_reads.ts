/**
 * Counts what is read from sockets by promises: a connection that is on the fast
 * path has none, however much it carries.
 *
 * @module
 */

import { Socket } from "../../../net/stream/socket.ts";

/** Counts until it is disposed. */
export class PromisedReads implements Disposable {
  count = 0;
  readonly #methods = {
    read: Socket.prototype.read,
    fill: Socket.prototype.fill,
  };

  constructor() {
    const { read, fill } = this.#methods;
    const count = () => this.count++;
    Socket.prototype.read = function (into) {
      count();
      return read.call(this, into);
    };
    Socket.prototype.fill = function (bytes) {
      count();
      return fill.call(this, bytes);
    };
  }

  [Symbol.dispose](): void {
    Object.assign(Socket.prototype, this.#methods);
  }
}
