/**
 * What the agents of a simulated world dial: each address belongs to one
 * exchange, whose plan says how it answers and who talks there.
 *
 * @module
 */

import { conduitOf } from "../../net/stream/stream_conduit.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import type { Exchange, Excuse } from "./exchange.ts";
import type { Plan } from "./plan.ts";
import type { Simulator } from "./simulator.ts";
import { type Cut, SocketPair } from "./socket_pair.ts";

/** Puts something between an agent and a target; see `canaries.ts`. */
export type Tamper = (conduit: Conduit) => Conduit;

/** See the module description. */
export class Targets {
  readonly #lines = new Map<Exchange, SocketPair | MemoryConduit>();
  /** Of all lines, also of those that another one has taken the place of. */
  readonly #sockets: { readonly name: string; readonly pair: SocketPair }[] =
    [];

  constructor(
    private readonly sim: Simulator,
    private readonly plan: Plan,
    private readonly exchanges: ReadonlyMap<string, Exchange>,
    private readonly tamper: Tamper,
  ) {}

  /** As `dialTarget` of `net/dial/dial.ts`, for an agent asked over `link`. */
  connect(
    target: DialTarget,
    { signal }: AbortController,
    link: Excuse,
  ): Promise<Conduit> {
    const exchange = this.exchanges.get(target.address);
    if (exchange === undefined || exchange.plan.protocol !== target.protocol) {
      this.sim.fail(`a dial for ${target.protocol} ${target.address} arrived`);
    }
    const { promise, resolve, reject } = Promise.withResolvers<Conduit>();
    const { answer, answerMs } = exchange!.plan;
    let isOver = false;
    const settle = (label: string, delayMs: number, act: () => void) =>
      this.sim.post(label, delayMs, () => {
        if (isOver) return;
        isOver = true;
        act();
      });
    signal.addEventListener("abort", () => {
      if (isOver) return;
      isOver = true;
      reject(new DialError("cancelled", "operation was canceled"));
    });
    settle(
      "target times out",
      this.plan.agentTimeoutMs,
      () => reject(new DialError("timeout", "dial tcp: i/o timeout")),
    );
    if (answer === "refuse") {
      settle(
        "target refuses",
        answerMs,
        () => reject(new DialError("endpoint", "dial tcp: connection refused")),
      );
    } else if (answer === "connect") {
      settle(
        "target connects",
        answerMs,
        () => resolve(this.#open(exchange!, link)),
      );
    }
    return promise;
  }

  /** Breaks the line to one target; @returns whether there is one. */
  cut(exchange: Exchange, kind: Cut): boolean {
    const line = this.#lines.get(exchange);
    // A line breaks once.
    if (line === undefined || exchange.targetCut !== undefined) return false;
    exchange.targetCut = kind;
    if (line instanceof SocketPair) line.cut(kind);
    else if (kind === "lost") line.lose("the flow was lost");
    else line.reset("port unreachable");
    return true;
  }

  /** Holds up the line to one target. */
  hold(exchange: Exchange, forMs: number, which: "in" | "out" | "both"): void {
    const line = this.#lines.get(exchange);
    if (!(line instanceof SocketPair)) return;
    exchange.wasHeld = true;
    line.hold(forMs, which);
  }

  /** Every socket is closed, at both ends. */
  get isClosed(): boolean {
    return this.#sockets.every(({ pair }) => pair.isOver);
  }

  /** What is left although everything is over. */
  leftovers(): string[] {
    return this.#sockets.filter(({ pair }) => !pair.isOver)
      .map(({ name }) => `the target's socket of ${name} is open`);
  }

  #open(exchange: Exchange, link: Excuse): Conduit {
    const { number, protocol } = exchange.plan;
    if (protocol === "udp") {
      const [near, far] = MemoryConduit.pair({
        datagrams: true,
        schedule: (step) => this.sim.post(`flow ${number}`, 0, step),
      });
      this.#lines.set(exchange, far);
      exchange.answerAt(far, link);
      return this.tamper(near);
    }
    const pair = new SocketPair(this.sim, {
      name: "target ",
      number,
      latencyMs: this.plan.localLatencyMs,
      capacityBytes: this.plan.capacityBytes,
      tinyCuts: this.plan.tinyCuts,
      isHttp2: false,
    });
    this.#lines.set(exchange, pair);
    this.#sockets.push({ name: exchange.name, pair });
    exchange.answerAt(conduitOf(pair.far), link);
    return this.tamper(conduitOf(pair.near));
  }
}
