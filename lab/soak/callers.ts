// deno-lint-ignore-file no-console -- a program whose results are its output.
/**
 * Callers for a soak, a process of their own: some open a connection each and
 * say nothing more, others come and go for as long as this runs.
 *
 * Usage: `callers.ts SOCKET TARGET-PORT IDLE FLAPPING`; prints a line of JSON
 * every few seconds.
 *
 * @module
 */

import {
  connectThrough,
  readExactly,
  writeAll,
} from "../interop/connect_client.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";

/** Mean of how long a flapping connection lives, and of the pause after it. */
const LIFE_MS = 2_500;
const REPORT_EVERY_MS = 2_000;
const ASK_BYTES_MAX = 4_000;
/** Idle connections that are opened at the same time. */
const OPENING_MAX = 32;

/**
 * Addresses of one target: with one alone, closed connections would keep all
 * its ports busy for a minute each.
 */
const TARGET_ADDRESSES = 8;

/** What has happened so far. */
interface Counts {
  idle: number;
  rounds: number;
  errors: number;
  firstError: string;
}

class Callers {
  readonly counts: Counts = { idle: 0, rounds: 0, errors: 0, firstError: "" };
  readonly #idle: Deno.Conn[] = [];
  #next = 0;

  constructor(private readonly path: string, private readonly port: string) {}

  async openIdle(count: number): Promise<void> {
    const one = async () => {
      while (this.#next < count) {
        this.#next++;
        const conn = await this.#connect();
        await writeAll(conn, new TextEncoder().encode("I"));
        await readExactly(conn, 1);
        this.#idle.push(conn);
        this.counts.idle = this.#idle.length;
      }
    };
    await Promise.all(Array.from({ length: OPENING_MAX }, one));
  }

  /** Comes and goes for ever. */
  async flap(): Promise<never> {
    for (;;) {
      await sleep(2 * LIFE_MS * Math.random());
      try {
        await this.#round();
        this.counts.rounds++;
      } catch (error) {
        this.counts.errors++;
        this.counts.firstError ||= String(error);
      }
    }
  }

  async #round(): Promise<void> {
    const conn = await this.#connect();
    try {
      const draw = Math.random();
      if (draw < 0.2) return await breakOff(conn);
      await ask(conn);
      await sleep(2 * LIFE_MS * Math.random());
      // The target answers an end with its own; some do not wait for it.
      if (draw < 0.6) await endInOrder(conn);
    } finally {
      conn.close();
    }
  }

  async #connect(): Promise<Deno.Conn> {
    const conn = await Deno.connect({ transport: "unix", path: this.path });
    try {
      const last = 1 + Math.floor(Math.random() * TARGET_ADDRESSES);
      await connectThrough(conn, `127.0.0.${last}:${this.port}`);
      return conn;
    } catch (error) {
      conn.close();
      throw error;
    }
  }
}

/** Asks for much, reads a little and is gone. */
async function breakOff(conn: Deno.Conn): Promise<void> {
  const request = new Uint8Array(9);
  request[0] = "D".charCodeAt(0);
  new DataView(request.buffer).setBigUint64(1, 1n << 24n);
  await writeAll(conn, request);
  await conn.read(new Uint8Array(1000));
}

/** One request; the answer has as many bytes. */
async function ask(conn: Deno.Conn): Promise<void> {
  const bytes = 1 + Math.floor(Math.random() * ASK_BYTES_MAX);
  const request = new Uint8Array(9 + bytes);
  request[0] = "E".charCodeAt(0);
  const view = new DataView(request.buffer);
  view.setUint32(1, bytes);
  view.setUint32(5, bytes);
  await writeAll(conn, request);
  await readExactly(conn, bytes);
}

/** Ends our side and waits for the target's end. */
async function endInOrder(conn: Deno.Conn): Promise<void> {
  await conn.closeWrite();
  const count = await conn.read(new Uint8Array(1));
  if (count !== null) throw new Error("bytes came behind the answer");
}

if (import.meta.main) {
  const [path, port, idle, flapping] = Deno.args;
  const callers = new Callers(path!, port!);
  setInterval(
    () => console.log(JSON.stringify(callers.counts)),
    REPORT_EVERY_MS,
  );
  await callers.openIdle(Number(idle));
  for (let n = 0; n < Number(flapping); n++) void callers.flap();
}
