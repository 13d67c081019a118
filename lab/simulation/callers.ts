/**
 * How the callers of a simulated world come in: through the gRPC frontend, over
 * a connection of their own or a shared one, through HTTP CONNECT, or by asking
 * the server's dialer as a frontend does.
 *
 * @module
 */

import { openClientConnection } from "../../net/http2/client_connection.ts";
import { dialConnect } from "../../net/http1/connect_client.ts";
import { conduitOf } from "../../net/stream/stream_conduit.ts";
import { dialProxy } from "../../proto/link/proxy_client.ts";
import type { DialTarget } from "../../proto/peer/dial_error.ts";
import type { DialEvents, PendingDial } from "../../proto/link/link.ts";
import type { Connection } from "../../proto/streams/connection.ts";
import { socketCaller } from "../../tests/support/memory/fake_caller.ts";
import type { Exchange } from "./exchange.ts";
import { MEMORY_IS_SHORT_BYTES, type Plan } from "./plan.ts";
import { linkSettings } from "./settings.ts";
import type { SimulatedServer } from "./simulated_server.ts";
import type { Simulator } from "./simulator.ts";
import { type Cut, SocketPair } from "./socket_pair.ts";
import { tapped } from "./tapped_stream.ts";

const KEEPALIVE = { intervalMs: 30_000, timeoutMs: 20_000 };

/** A caller's connection to the server, and who is on it. */
interface TunnelRoute {
  readonly pair: SocketPair;
  readonly users: Set<Exchange>;
  /** Set for gRPC. */
  readonly connection: Connection | undefined;
}

/** See the module description. */
export class Callers {
  readonly routes: TunnelRoute[] = [];
  #shared: TunnelRoute | undefined;

  constructor(
    private readonly sim: Simulator,
    private readonly plan: Plan,
    private readonly server: SimulatedServer,
  ) {}

  /** Asks for what `exchange` plans. */
  dial(exchange: Exchange): void {
    const { way, abortMs, number } = exchange.plan;
    exchange.startedMs = this.sim.now();
    this.sim.note(`caller dials ${way}`, number);
    const events: DialEvents = {
      onConnected: (conduit) => exchange.connected(conduit),
      onFailed: (error) => exchange.failed(error),
    };
    const pending = this.#start(exchange, events);
    if (abortMs < 0) return;
    this.sim.post("caller gives up", abortMs, () => {
      if (exchange.answeredMs >= 0) return;
      exchange.aborted();
      pending.cancel();
    });
  }

  /** Breaks one connection; @returns whether there was one to break. */
  cut(index: number, kind: Cut): boolean {
    const open = this.routes.filter(({ pair, users }) =>
      !pair.isOver && [...users].every((user) => user.callerCut === undefined)
    );
    const route = open[index % open.length];
    if (route === undefined) return false;
    for (const exchange of route.users) exchange.callerCut = kind;
    if (route === this.#shared) this.#shared = undefined;
    route.pair.cut(kind);
    return true;
  }

  /** Nobody asks for more. */
  finish(): void {
    for (const { connection } of this.routes) {
      connection?.shutdown("the client is done");
    }
  }

  /** What is left although everything is over. */
  leftovers(): string[] {
    return this.routes.filter(({ pair }) => !pair.isOver)
      .map((_, index) => `the socket of caller connection ${index} is open`);
  }

  #start(exchange: Exchange, events: DialEvents): PendingDial {
    const { protocol, way } = exchange.plan;
    const { address, earlyData } = exchange;
    const target: DialTarget = { protocol, address };
    switch (way) {
      case "direct": {
        let earlyBytes = 0;
        return this.server.dial({
          target,
          node: undefined,
          caller: socketCaller(),
          takeEarlyData: () => {
            earlyBytes = earlyData.length;
            return earlyData;
          },
        }, {
          // Not taken, it comes as usual.
          connected: (conduit) => exchange.connected(conduit, earlyBytes),
          failed: (error) => events.onFailed(error),
        });
      }
      case "connect": {
        const { pair, users } = this.#connect(false);
        users.add(exchange);
        return dialConnect(conduitOf(pair.far), address, events, {
          ...(earlyData.length === 0 ? {} : { earlyData }),
        });
      }
      case "grpc": {
        const route = this.#grpcRoute(exchange.plan.isShared);
        route.users.add(exchange);
        return dialProxy(route.connection!, target, events, {
          authority: "localhost",
          timers: this.sim,
          dialId: exchange.plan.number + 1,
          ...(earlyData.length === 0 ? {} : { earlyData }),
        });
      }
    }
  }

  #grpcRoute(isShared: boolean): TunnelRoute {
    if (!isShared) return this.#connect(true);
    const isUsable = this.#shared?.connection?.isUsable === true;
    if (!isUsable) this.#shared = this.#connect(true);
    return this.#shared!;
  }

  #connect(isGrpc: boolean): TunnelRoute {
    const pair = new SocketPair(this.sim, {
      name: "caller ",
      number: this.routes.length,
      latencyMs: this.plan.localLatencyMs,
      capacityBytes: this.plan.capacityBytes,
      tinyCuts: this.plan.tinyCuts,
      isHttp2: isGrpc,
    });
    const route: TunnelRoute = {
      pair,
      users: new Set(),
      connection: isGrpc ? this.#speakHttp2(pair) : undefined,
    };
    this.routes.push(route);
    this.sim.post("caller connects", this.plan.localLatencyMs, () => {
      this.server.acceptCaller(pair.near);
    });
    return route;
  }

  #speakHttp2(pair: SocketPair): Connection {
    const stream = tapped(pair.far, {
      isClient: true,
      mayCalm: this.plan.budgetBytes <= MEMORY_IS_SHORT_BYTES,
      complain: (what) => this.sim.fail(`a caller sends ${what}`),
    });
    return openClientConnection(stream, {
      timers: this.sim,
      keepalive: KEEPALIVE,
      settings: linkSettings(this.plan),
    });
  }
}
