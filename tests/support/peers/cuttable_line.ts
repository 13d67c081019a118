/**
 * A line between an agent and its server that a test can cut, as when a machine
 * dies: neither end had a chance to say goodbye. It can also be blocked in one
 * direction, which shows who waits for whom.
 *
 * @module
 */

import { sleep } from "../watch/event_loop.ts";
import { arrivals } from "./sockets.ts";

/** Largest single read. */
const CHUNK_BYTES = 128 * 1024;

/** Which way bytes go: `up` from whoever connects, `down` to it. */
export type LineDirection = "up" | "down";

/** A TCP relay. See the module description. */
export class CuttableLine {
  readonly port: number;
  readonly #listener: Deno.TcpListener;
  readonly #toPort: number;
  /** Whoever connects is dropped at once. */
  isAway = false;
  /** What every piece waits, in either direction. */
  delayMs = 0;
  readonly #conns = new Set<Deno.TcpConn>();
  /** Settle when the direction is no longer blocked. */
  readonly #gates = new Map<LineDirection, PromiseWithResolvers<void>>();

  /**
   * @param toPort On loopback, where every connection goes on to.
   * @param hostname Where it listens.
   */
  constructor(toPort: number, hostname = "127.0.0.1") {
    this.#toPort = toPort;
    this.#listener = Deno.listen({ hostname, port: 0 });
    this.port = this.#listener.addr.port;
    void this.#accept();
  }

  /** Holds back what goes in one direction, until `unblock`. */
  block(direction: LineDirection): void {
    this.#gates.set(direction, Promise.withResolvers<void>());
  }

  /** Lets everything through that was held back. */
  unblock(direction: LineDirection): void {
    this.#gates.get(direction)?.resolve();
    this.#gates.delete(direction);
  }

  /** Drops every connection; new ones are carried again. */
  cut(): void {
    const conns = [...this.#conns];
    this.#conns.clear();
    for (const conn of conns) conn.close();
  }

  /** Drops every connection and carries no more. */
  close(): void {
    this.#listener.close();
    this.cut();
    this.unblock("up");
    this.unblock("down");
  }

  async #accept(): Promise<void> {
    for await (const near of arrivals(this.#listener)) {
      const far = this.isAway ? undefined : await this.#goOn();
      if (far === undefined) {
        near.close();
        continue;
      }
      for (const conn of [near, far]) {
        conn.setNoDelay(true);
        this.#conns.add(conn);
      }
      void this.#carry("up", near, far);
      void this.#carry("down", far, near);
    }
  }

  /** @returns `undefined` when nobody is there, as when that end was killed. */
  async #goOn(): Promise<Deno.TcpConn | undefined> {
    try {
      return await Deno.connect({ hostname: "127.0.0.1", port: this.#toPort });
    } catch (error) {
      if (error instanceof Deno.errors.ConnectionRefused) return undefined;
      throw error;
    }
  }

  async #carry(
    direction: LineDirection,
    from: Deno.TcpConn,
    to: Deno.TcpConn,
  ): Promise<void> {
    const buffer = new Uint8Array(CHUNK_BYTES);
    try {
      for (;;) {
        const count = await from.read(buffer);
        await this.#gates.get(direction)?.promise;
        if (this.delayMs > 0) await sleep(this.delayMs);
        if (count === null) break;
        for (let at = 0; at < count;) {
          at += await to.write(buffer.subarray(at, count));
        }
      }
      await to.closeWrite();
    } catch {
      // Cut, by the test or by either end: there is nobody to tell.
    }
  }
}
