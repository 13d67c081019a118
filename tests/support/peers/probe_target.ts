/**
 * Targets on loopback: what an agent dials, in the hands of a test.
 *
 * @module
 */

import { denoStream } from "../../../net/stream/platform_stream.ts";
import { conduitOf } from "../../../net/stream/stream_conduit.ts";
import { ConduitProbe } from "../memory/conduit_probe.ts";
import { arrivals } from "./sockets.ts";

/** A TCP listener whose connections are handed out as probes. */
export class ProbeTarget implements AsyncDisposable {
  readonly address: string;
  readonly #listener: Deno.TcpListener;
  readonly #greeting: string;
  readonly #accepted: ConduitProbe[] = [];
  readonly #waiting: ((probe: ConduitProbe) => void)[] = [];
  readonly #probes = new Set<ConduitProbe>();

  /** @param greeting Said to each caller before anything else. */
  constructor(greeting = "") {
    this.#greeting = greeting;
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.address = addressOf(this.#listener);
    void this.#accept();
  }

  /** Connections that were accepted and are not over. */
  get open(): number {
    return this.#probes.size;
  }

  /** The next connection, in the order of arrival. */
  next(): Promise<ConduitProbe> {
    const probe = this.#accepted.shift();
    if (probe !== undefined) return Promise.resolve(probe);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Stops listening and gives up every connection; settles when all are gone. */
  async close(): Promise<void> {
    this.#listener.close();
    const probes = [...this.#probes];
    for (const probe of probes) probe.reset("the test is over");
    await Promise.all(probes.map(({ closed }) => closed));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #accept(): Promise<void> {
    // The loop ends, without a word, when the listener is closed.
    for await (const conn of arrivals(this.#listener)) {
      conn.setNoDelay(true);
      const probe = new ConduitProbe(conduitOf(denoStream(conn)));
      this.#probes.add(probe);
      void probe.closed.then(() => this.#probes.delete(probe));
      if (this.#greeting !== "") probe.send(this.#greeting);
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#accepted.push(probe);
      else waiting(probe);
    }
  }
}

/**
 * A target that never answers a dial: its backlog is full, so the kernel drops
 * what comes (Linux).
 */
export class SilentTarget {
  readonly address: string;
  readonly #listener: Deno.TcpListener;
  readonly #fillers: Deno.TcpConn[];

  private constructor(listener: Deno.TcpListener, fillers: Deno.TcpConn[]) {
    this.#listener = listener;
    this.#fillers = fillers;
    this.address = addressOf(listener);
  }

  static async open(): Promise<SilentTarget> {
    const listener = Deno.listen({
      hostname: "127.0.0.1",
      port: 0,
      tcpBacklog: 1,
    });
    const { port } = listener.addr as Deno.NetAddr;
    const connect = () => Deno.connect({ hostname: "127.0.0.1", port });
    // The kernel keeps one more than the backlog says.
    return new SilentTarget(listener, [await connect(), await connect()]);
  }

  close(): void {
    this.#listener.close();
    for (const conn of this.#fillers) conn.close();
  }
}

/** An address where nobody listens. */
export function closedAddress(): string {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return addressOf(listener);
}

function addressOf(listener: Deno.TcpListener): string {
  const { hostname, port } = listener.addr;
  return `${hostname}:${port}`;
}
