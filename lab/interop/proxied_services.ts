/**
 * What cases of `tunnel proxy` with real sources share: backends that say their
 * names, and clients that come all the time and remember every failure.
 *
 * @module
 */

import {
  arrivals,
  readToEnd,
  writeAll,
} from "../../tests/support/peers/sockets.ts";
import { eventually } from "./kube_case.ts";

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** Between two connections of one client. */
const CALL_EVERY_MS = 10;
/** Longer than any retry of the proxy; what takes longer counts as failed. */
const CALL_TIMEOUT_MS = 10_000;

/** A TCP server that says its name before whatever it is told, line by line. */
export class NamedBackend implements Disposable {
  readonly #listener: Deno.TcpListener;
  readonly #conns = new Set<Deno.Conn>();

  constructor(readonly name: string, readonly hostname = "127.0.0.1") {
    this.#listener = Deno.listen({ hostname, port: 0 });
    void this.#accept();
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  /** `host:port`. */
  get address(): string {
    return `${this.hostname}:${this.port}`;
  }

  [Symbol.dispose](): void {
    this.#listener.close();
    for (const conn of this.#conns) conn.close();
  }

  async #accept(): Promise<void> {
    for await (const conn of arrivals(this.#listener)) {
      this.#conns.add(conn);
      void this.#serve(conn);
    }
  }

  async #serve(conn: Deno.Conn): Promise<void> {
    try {
      for await (const line of linesOf(conn)) {
        await writeAll(conn, ENCODER.encode(`${this.name} ${line}\n`));
      }
    } catch {
      // Whoever called has gone, or the test is over.
    }
    if (this.#conns.delete(conn)) conn.close();
  }
}

/** One connection for a question and its answer, with half-closes both ways. */
export async function call(
  to: Deno.ConnectOptions,
  question = "who",
): Promise<string> {
  using conn = await Deno.connect(to);
  const late = setTimeout(() => conn.close(), CALL_TIMEOUT_MS);
  try {
    await writeAll(conn, ENCODER.encode(`${question}\n`));
    await conn.closeWrite();
    const answer = DECODER.decode(await readToEnd(conn));
    const suffix = ` ${question}\n`;
    if (answer.endsWith(suffix)) return answer.slice(0, -suffix.length);
    throw new Error(`answered ${JSON.stringify(answer)}`);
  } finally {
    clearTimeout(late);
  }
}

/** Clients that come all the time, and one that stays. */
export class Callers implements AsyncDisposable {
  /** Calls that were answered. */
  calls = 0;
  readonly failures: string[] = [];
  #answers = new Set<string>();
  #isOver = false;
  readonly #running: Promise<unknown>;

  constructor(private readonly to: Deno.ConnectOptions, clients = 3) {
    this.#running = Promise.all([
      ...Array.from({ length: clients }, () => this.#comeAndGo()),
      this.#stay(),
    ]);
  }

  /** Waits for so many further calls. */
  async more(calls: number): Promise<void> {
    const until = this.calls + calls;
    await eventually(
      `${calls} more calls; failures: ${this.failures.slice(0, 3)}`,
      () => this.calls >= until,
    );
  }

  /** Waits until new connections are answered by these alone. */
  async onlyMeet(...names: readonly string[]): Promise<void> {
    await eventually(`only ${names} answer`, async () => {
      this.#answers = new Set();
      await this.more(20);
      return [...this.#answers].sort().join() === names.toSorted().join();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  async #comeAndGo(): Promise<void> {
    while (!this.#isOver) {
      try {
        this.#answers.add(await call(this.to));
        this.calls++;
      } catch (error) {
        this.failures.push((error as Error).message);
      }
      await new Promise((resolve) => setTimeout(resolve, CALL_EVERY_MS));
    }
  }

  /** A connection that is there all the time, whatever becomes of its endpoint. */
  async #stay(): Promise<void> {
    try {
      using conn = await Deno.connect(this.to);
      const answers = linesOf(conn);
      while (!this.#isOver) {
        await writeAll(conn, ENCODER.encode("still\n"));
        const { value, done } = await answers.next();
        if (done) throw new Error("it was ended");
        if (!value.endsWith(" still")) throw new Error(`answered "${value}"`);
        await new Promise((resolve) => setTimeout(resolve, CALL_EVERY_MS));
      }
    } catch (error) {
      this.failures.push(`the one that stays: ${(error as Error).message}`);
    }
  }
}

async function* linesOf(conn: Deno.Conn): AsyncGenerator<string, void> {
  const buffer = new Uint8Array(4096);
  let rest = "";
  for (;;) {
    const count = await conn.read(buffer);
    if (count === null) return;
    const lines = (rest + DECODER.decode(buffer.subarray(0, count)))
      .split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}
