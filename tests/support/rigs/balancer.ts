/**
 * A load balancer for TCP: each connection goes to the next server, or all go
 * to one.
 *
 * @module
 */

import { arrivals } from "../peers/sockets.ts";

/** See the module description. */
export class Balancer implements Disposable {
  readonly #listener: Deno.TcpListener;
  readonly #servers: Deno.ConnectOptions[] = [];
  #next = 0;
  #only: number | undefined;
  /** Connections that came. */
  accepted = 0;

  constructor(hostname = "127.0.0.1") {
    this.#listener = Deno.listen({ hostname, port: 0 });
    void this.#accept();
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  add(port: number, hostname = "127.0.0.1"): void {
    this.#servers.push({ hostname, port });
  }

  /** Sends everybody to the server added at `index`; to each in turn without. */
  sendAllTo(index?: number): void {
    this.#only = index;
  }

  /** Nobody new is led there. */
  remove(port: number): void {
    const at = this.#servers.findIndex((server) => server.port === port);
    if (at !== -1) this.#servers.splice(at, 1);
  }

  /** Takes no more connections. Those that are open go on. */
  [Symbol.dispose](): void {
    this.#listener.close();
  }

  async #accept(): Promise<void> {
    for await (const caller of arrivals(this.#listener)) {
      this.accepted++;
      const next = this.#only ?? this.#next++ % this.#servers.length;
      void join(caller, this.#servers[next]);
    }
  }
}

async function join(
  caller: Deno.TcpConn,
  at: Deno.ConnectOptions | undefined,
) {
  try {
    if (at === undefined) return caller.close();
    const server = await Deno.connect(at).catch((error) => {
      caller.close();
      throw error;
    });
    await Promise.all([
      caller.readable.pipeTo(server.writable),
      server.readable.pipeTo(caller.writable),
    ]);
  } catch {
    // Either end went away; pipeTo has closed the other one.
  }
}
