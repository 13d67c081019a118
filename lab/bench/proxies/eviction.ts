/**
 * How long after the removal of an endpoint somebody still gets there: from the
 * rename of the file of services to the last datagram of a client that goes on,
 * and to the last new connection.
 *
 * @module
 */

import { freePort } from "../../../tests/support/program/ports.ts";
import { ServiceProxyProcess } from "../../peers/service_proxy.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { type Sample, SpoiledRunError } from "../generator.ts";
import { median } from "../comparison.ts";
import { less, type Metric } from "../metric.ts";
import { arrivals } from "../../../tests/support/peers/sockets.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

const ROUNDS = 12;
const ROUNDS_QUICK = 4;
const SEND_EVERY_MS = 1;
const CONNECT_EVERY_MS = 3;
/** In which nobody must come any more. */
const QUIET_MS = 600;
const TIMEOUT_MS = 5_000;

/** An endpoint of both protocols that knows when somebody came last. */
class Endpoint implements Disposable {
  readonly #udp = Deno.listenDatagram({
    ...{ transport: "udp", hostname: "127.0.0.1", port: 0 },
  });
  readonly #tcp = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly lastMs = { udp: -Infinity, tcp: -Infinity };

  constructor() {
    void this.#hear();
    void this.#accept();
  }

  address(protocol: "udp" | "tcp"): string {
    const { port } = protocol === "udp"
      ? this.#udp.addr as Deno.NetAddr
      : this.#tcp.addr;
    return `127.0.0.1:${port}`;
  }

  [Symbol.dispose](): void {
    this.#udp.close();
    this.#tcp.close();
  }

  async #hear(): Promise<void> {
    for await (const _ of this.#udp) this.lastMs.udp = performance.now();
  }

  async #accept(): Promise<void> {
    for await (const conn of arrivals(this.#tcp)) {
      this.lastMs.tcp = performance.now();
      conn.close();
    }
  }
}

/** One client that sends without end, and clients that connect. */
class Clients implements AsyncDisposable {
  readonly #socket = Deno.listenDatagram({
    ...{ transport: "udp", hostname: "127.0.0.1", port: 0 },
  });
  readonly #running: Promise<void>;
  #isOver = false;

  constructor(udpPort: number, tcpPort: number) {
    const all = [this.#send(udpPort), this.#connect(tcpPort)];
    this.#running = Promise.all(all).then(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#running;
    this.#socket.close();
  }

  async #send(port: number): Promise<void> {
    const to = { transport: "udp", hostname: "127.0.0.1", port } as const;
    while (!this.#isOver) {
      await this.#socket.send(new Uint8Array(16), to);
      await sleep(SEND_EVERY_MS);
    }
  }

  async #connect(port: number): Promise<void> {
    while (!this.#isOver) {
      const conn = await Deno.connect({ hostname: "127.0.0.1", port });
      // Until the endpoint's end comes through, or the ports run out.
      await conn.read(new Uint8Array(1)).catch(() => {});
      conn.close();
      await sleep(CONNECT_EVERY_MS);
    }
  }
}

async function evict(workspace: Workspace, rounds: number): Promise<Sample> {
  using first = new Endpoint();
  using second = new Endpoint();
  const [udpPort, tcpPort] = [freePort(), freePort()];
  const services = (endpoints: readonly Endpoint[]) => [
    {
      ...{ name: "udp", protocol: "udp", listen: udpPort } as const,
      endpoints: endpoints.map((each) => each.address("udp")),
    },
    {
      ...{ name: "tcp", listen: tcpPort },
      endpoints: endpoints.map((each) => each.address("tcp")),
    },
  ];
  const proxy = await ServiceProxyProcess.start(workspace, services([first]));
  const took: Record<"udp" | "tcp", number[]> = { udp: [], tcp: [] };
  try {
    await using _clients = new Clients(udpPort, tcpPort);
    let [present, next] = [first, second];
    await until(() => isUsed(present));
    for (let round = 0; round < rounds; round++) {
      await proxy.rewrite(services([next]));
      const removedMs = performance.now();
      await until(() => isUsed(next));
      await sleep(QUIET_MS);
      for (const protocol of ["udp", "tcp"] as const) {
        took[protocol].push(present.lastMs[protocol] - removedMs);
      }
      [present, next] = [next, present];
      next.lastMs.udp = next.lastMs.tcp = -Infinity;
    }
  } finally {
    await proxy.stop();
  }
  return {
    udp_ms: median(took.udp),
    udp_max_ms: Math.max(...took.udp),
    tcp_ms: median(took.tcp),
    tcp_max_ms: Math.max(...took.tcp),
  };
}

function isUsed({ lastMs }: Endpoint): boolean {
  return lastMs.udp > -Infinity && lastMs.tcp > -Infinity;
}

async function until(isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  while (!isSo()) {
    if (performance.now() > deadline) {
      throw new SpoiledRunError("an endpoint is not used");
    }
    await sleep(1);
  }
}

const LIMIT = { limit: 100 };

export const EVICTION_METRICS: Readonly<Record<string, Metric>> = {
  "proxy-evict": {
    title: "service proxy: from an endpoint's removal to its last client",
    contenders: ["ours"],
    isOnRequest: true,
    figures: [
      less("udp_ms", "datagrams", "ms", LIMIT),
      less("udp_max_ms", "at most", "ms", LIMIT),
      less("tcp_ms", "connections", "ms", LIMIT),
      less("tcp_max_ms", "connections, at most", "ms", LIMIT),
    ],
    run: ({ workspace }, { isQuick }) =>
      evict(workspace, isQuick ? ROUNDS_QUICK : ROUNDS),
  },
};
