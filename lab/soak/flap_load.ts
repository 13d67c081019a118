/**
 * Clients of a service proxy that never stop, and the endpoints that answer
 * them: connections that stay and that come and go, datagrams over sockets that
 * are kept and over new ones.
 *
 * @module
 */

import { readExactly, writeAll } from "../interop/connect_client.ts";
import { arrivals } from "../../tests/support/peers/sockets.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";

const ENDPOINTS = 4;

/** Connections that stay, and clients that make new ones. */
const STAYING = 32;
const COMING = 16;
/** UDP sockets that are kept, and clients that take a new one each time. */
const KEPT = 32;
const FRESH = 8;

const MESSAGE_BYTES = 700;
const PAUSE_MS = 20;
const ANSWER_TIMEOUT_MS = 2_000;

/** Echoes, over both protocols; all of them run for as long as the soak does. */
export class FlapEndpoints implements Disposable {
  readonly #listeners = Array.from(
    { length: ENDPOINTS },
    () => Deno.listen({ hostname: "127.0.0.1", port: 0 }),
  );
  readonly #sockets = Array.from({ length: ENDPOINTS }, () => openSocket());

  constructor() {
    for (const listener of this.#listeners) void echoAll(listener);
    for (const socket of this.#sockets) void echo(socket);
  }

  /** `ip:port` each. */
  get tcp(): readonly string[] {
    return this.#listeners.map(({ addr }) => `127.0.0.1:${addr.port}`);
  }

  get udp(): readonly string[] {
    return this.#sockets
      .map(({ addr }) => `127.0.0.1:${(addr as Deno.NetAddr).port}`);
  }

  [Symbol.dispose](): void {
    for (const one of [...this.#listeners, ...this.#sockets]) one.close();
  }
}

/** What became of the clients. */
export interface FlapCounts {
  connections: number;
  messages: number;
  failures: number;
  firstFailure: string;
  asked: number;
  lost: number;
}

/** See the module description. */
export class FlapLoad implements AsyncDisposable {
  readonly counts: FlapCounts = {
    ...{ connections: 0, messages: 0, failures: 0, firstFailure: "" },
    ...{ asked: 0, lost: 0 },
  };
  readonly #running: Promise<void>[];
  #isOver = false;

  constructor(
    private readonly tcpPort: number,
    private readonly udpPort: number,
  ) {
    this.#running = [
      ...Array.from({ length: STAYING }, () => this.#connect(Infinity)),
      ...Array.from({ length: COMING }, () => this.#connect(3)),
      ...Array.from({ length: KEPT }, () => this.#send(Infinity)),
      ...Array.from({ length: FRESH }, () => this.#send(1)),
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
  }

  /** Connections one after the other, with so many messages each. */
  async #connect(messages: number): Promise<void> {
    while (!this.#isOver) {
      try {
        await this.#talk(messages);
      } catch (error) {
        this.counts.failures++;
        this.counts.firstFailure ||= String(error);
        await sleep(PAUSE_MS);
      }
    }
  }

  async #talk(messages: number): Promise<void> {
    using conn = await Deno.connect({
      ...{ hostname: "127.0.0.1", port: this.tcpPort },
    });
    this.counts.connections++;
    const said = crypto.getRandomValues(new Uint8Array(MESSAGE_BYTES));
    for (let count = 0; count < messages && !this.#isOver; count++) {
      await writeAll(conn, said);
      const received = await readExactly(conn, said.length);
      if (received.some((byte, at) => byte !== said[at])) {
        throw new Error("other bytes came back than went");
      }
      this.counts.messages++;
      await sleep(PAUSE_MS);
    }
  }

  /** Sockets one after the other, with so many datagrams each. */
  async #send(datagrams: number): Promise<void> {
    const port = this.udpPort;
    const to = { transport: "udp", hostname: "127.0.0.1", port } as const;
    while (!this.#isOver) {
      const socket = openSocket();
      const buffer = new Uint8Array(MESSAGE_BYTES + 1);
      for (let count = 0; count < datagrams && !this.#isOver; count++) {
        this.counts.asked++;
        const answer = socket.receive(buffer).catch(() => undefined);
        await socket.send(new Uint8Array(MESSAGE_BYTES), to);
        if (await isLate(answer)) {
          this.counts.lost++;
          break;
        }
        await sleep(PAUSE_MS);
      }
      socket.close();
    }
  }
}

async function isLate(answer: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<"late">();
  const timer = setTimeout(() => late.resolve("late"), ANSWER_TIMEOUT_MS);
  const first = await Promise.race([answer, late.promise]);
  clearTimeout(timer);
  return first === "late";
}

async function echoAll(listener: Deno.TcpListener): Promise<void> {
  for await (const conn of arrivals(listener)) {
    conn.setNoDelay(true);
    // A connection that breaks is counted where it began.
    conn.readable.pipeTo(conn.writable).catch(() => {});
  }
}

async function echo(socket: Deno.DatagramConn): Promise<void> {
  for await (const [bytes, from] of socket) await socket.send(bytes, from);
}

function openSocket(): Deno.DatagramConn {
  return Deno.listenDatagram({
    ...{ transport: "udp", hostname: "127.0.0.1", port: 0 },
  });
}
