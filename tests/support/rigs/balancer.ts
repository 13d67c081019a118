/**
 * A load balancer for TCP on loopback: each connection goes to the next port.
 *
 * @module
 */

import { arrivals } from "../peers/sockets.ts";

/** See the module description. */
export class Balancer {
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #ports: number[] = [];
  #next = 0;

  constructor() {
    void this.#accept();
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  add(port: number): void {
    this.#ports.push(port);
  }

  /** Takes no more connections. Those that are open go on. */
  close(): void {
    this.#listener.close();
  }

  async #accept(): Promise<void> {
    for await (const caller of arrivals(this.#listener)) {
      const port = this.#ports[this.#next++ % this.#ports.length];
      void join(caller, port);
    }
  }
}

async function join(caller: Deno.TcpConn, port: number | undefined) {
  try {
    if (port === undefined) return caller.close();
    const server = await Deno.connect({ hostname: "127.0.0.1", port });
    await Promise.all([
      caller.readable.pipeTo(server.writable),
      server.readable.pipeTo(caller.writable),
    ]);
  } catch {
    // Either end went away; pipeTo has closed the other one.
  }
}
