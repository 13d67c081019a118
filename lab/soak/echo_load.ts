/**
 * Connections through a tunnel that never stop talking, each a little: whoever
 * drops one, or a byte of it, is found out.
 *
 * @module
 */

import {
  connectThrough,
  readExactly,
  writeAll,
} from "../interop/connect_client.ts";
import { arrivals } from "../../tests/support/peers/sockets.ts";

const MESSAGE_BYTES = 512;
const PAUSE_MS = 20;

/** What became of the connections. */
export interface EchoCounts {
  readonly open: number;
  readonly messages: number;
  /** Why connections ended that nobody had ended. */
  readonly dropped: readonly string[];
}

/** See the module description. */
export class EchoLoad implements AsyncDisposable {
  readonly #echo: Deno.TcpListener;
  readonly #conns: Deno.Conn[] = [];
  readonly #dropped: string[] = [];
  readonly #running: Promise<void>[] = [];
  #messages = 0;
  #isOver = false;

  /** @param socketPath The frontend, which speaks HTTP CONNECT. */
  constructor(private readonly socketPath: string) {
    this.#echo = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    void this.#serve();
  }

  get counts(): EchoCounts {
    return {
      open: this.#conns.length - this.#dropped.length,
      messages: this.#messages,
      dropped: this.#dropped,
    };
  }

  /** Where everything goes. */
  get target(): string {
    return `127.0.0.1:${this.#echo.addr.port}`;
  }

  /** Opens further connections, one after the other. */
  async open(count: number): Promise<void> {
    for (let opened = 0; opened < count; opened++) {
      const conn = await Deno.connect({
        transport: "unix",
        path: this.socketPath,
      });
      await connectThrough(conn, this.target);
      this.#conns.push(conn);
      this.#running.push(this.#talk(conn));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
    for (const conn of this.#conns) conn.close();
    this.#echo.close();
  }

  async #talk(conn: Deno.Conn): Promise<void> {
    const said = new Uint8Array(MESSAGE_BYTES);
    try {
      while (!this.#isOver) {
        crypto.getRandomValues(said);
        await writeAll(conn, said);
        const received = await readExactly(conn, said.length);
        if (received.some((byte, at) => byte !== said[at])) {
          throw new Error("other bytes came back than went");
        }
        this.#messages++;
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    } catch (error) {
      this.#dropped.push((error as Error).message);
    }
  }

  async #serve(): Promise<void> {
    for await (const conn of arrivals(this.#echo)) {
      conn.setNoDelay(true);
      // A connection that breaks is counted where it began.
      conn.readable.pipeTo(conn.writable).catch(() => {});
    }
  }
}
