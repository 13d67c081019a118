/**
 * What must be true at every step of a simulated world, beyond what talkers
 * find out themselves: memory is bounded, dials are answered in time, and
 * whoever is not stalled gets on (promises 2, 3 and 5).
 *
 * @module
 */

import { BUFFER_BYTES_MAX } from "../../proto/bytes/buffer_pool.ts";
import { OUTPUT_HIGH_WATER_BYTES } from "../../proto/streams/sending_side.ts";
import type { Exchange } from "./exchange.ts";
import type { Plan } from "./plan.ts";
import type { PoolAudit } from "./pool_audit.ts";
import type { Simulator } from "./simulator.ts";
import type { Talker } from "./talker.ts";
import type { SimulatedLink, TunnelWorld } from "./tunnel_world.ts";

const CHECK_EVERY_MS = 250;

/** Beyond a dial's deadline: routes, and events that come before it. */
const ANSWER_SLACK_MS = 5_000;

/**
 * How long somebody who reads may wait for bytes that are there. Routes are
 * slow (80 ms there and back), windows small, and a dozen others take turns.
 */
const PROGRESS_STREAMS_MS = 5_000;

/**
 * Buffers beside a conduit that may be full of its bytes: one being filled, one
 * being written, and one that was read at the other end.
 */
const CONDUIT_BUFFERS = 3;

/**
 * The packets carrier lets one that stalls hold up its link for 10 s, and once
 * more when it got on in the first of them.
 */
const PROGRESS_PACKETS_MS = 25_000;

/** See the module description. */
export class Watch {
  #isOver = false;

  constructor(
    private readonly sim: Simulator,
    private readonly plan: Plan,
    private readonly world: TunnelWorld,
    private readonly audit: PoolAudit,
  ) {
    sim.onStep = () => this.#step();
    this.#again();
  }

  /** There is nothing to wait for any more; memory is still looked at. */
  finish(): void {
    this.#isOver = true;
  }

  #step(): void {
    const { server, agents } = this.world;
    this.#checkBudget("the server", server.budget.bytes);
    for (const agent of agents) {
      this.#checkBudget("an agent", agent.budget.bytes);
    }
  }

  #checkBudget(who: string, bytes: number): void {
    if (bytes >= 0 && bytes <= this.plan.budgetBytes) return;
    this.sim.fail(`${who} keeps ${bytes} bytes for its readers`);
  }

  #again(): void {
    this.sim.post("watch", CHECK_EVERY_MS, () => {
      if (this.#isOver) return;
      this.#checkPins();
      this.#checkPool();
      for (const exchange of this.world.exchanges) {
        this.#checkAnswer(exchange);
        this.#checkHeld(exchange);
        this.#checkProgress(exchange);
      }
      this.#again();
    });
  }

  /** With windows that do not grow, what a stalled conduit pins is its window. */
  #checkPins(): void {
    const { windowIsFixed, windowBytes } = this.plan;
    if (!windowIsFixed) return;
    for (const agent of this.world.agents) {
      if (agent.plan.carrier === "packets") continue;
      const links = this.world.links.filter((link) => link.agent === agent);
      const streams = links.length +
        this.world.exchanges.filter(({ isOver }) => !isOver).length;
      if (agent.budget.bytes <= streams * windowBytes) continue;
      this.sim.fail(
        `${streams} streams pin ${agent.budget.bytes} bytes of an agent, ` +
          `each may ${windowBytes}`,
      );
    }
  }

  /** Of one conduit: its window, and the buffers of the sockets beside it. */
  #checkHeld({ name, plan, caller, target, link }: Exchange): void {
    const { windowIsFixed, windowBytes, capacityBytes } = this.plan;
    if (!windowIsFixed || plan.way !== "direct" || plan.protocol !== "tcp") {
      return;
    }
    if (caller === undefined || target === undefined || link?.isPackets) return;
    // What is for an end that is closed is dropped, and held by nobody.
    if (caller.end !== undefined || target.end !== undefined) return;
    const bytesMax = windowBytes + capacityBytes +
      CONDUIT_BUFFERS * BUFFER_BYTES_MAX;
    const held = Math.max(
      caller.sent - target.received,
      target.sent - caller.received,
    );
    if (held <= bytesMax) return;
    this.sim.fail(`${name} holds ${held} bytes, at most ${bytesMax} wanted`);
  }

  #checkPool(): void {
    const { links, exchanges } = this.world;
    // Each has two sockets, read into, filled and written at the same time.
    const sockets = 2 * links.length + 4 * exchanges.length;
    const connections = 2 * links.length + 2 * exchanges.length;
    const bytesMax = sockets * 3 * BUFFER_BYTES_MAX +
      connections * (OUTPUT_HIGH_WATER_BYTES + 2 * BUFFER_BYTES_MAX);
    if (this.audit.bytes <= bytesMax) return;
    this.sim.fail(`${this.audit.bytes} bytes of buffers are in use`);
  }

  #checkAnswer(exchange: Exchange): void {
    const { startedMs, answeredMs, wasAborted, wasHeld } = exchange;
    if (startedMs < 0 || answeredMs >= 0 || wasAborted || wasHeld) return;
    const waitedMs = this.sim.now() - startedMs;
    if (waitedMs <= this.plan.dialTimeoutMs + ANSWER_SLACK_MS) return;
    this.sim.fail(`${exchange.name} has no answer after ${waitedMs} ms`);
  }

  #checkProgress(exchange: Exchange): void {
    const { caller, target, link, wasHeld, plan } = exchange;
    if (caller === undefined || target === undefined || wasHeld) return;
    if (exchange.callerCut || exchange.targetCut || link?.trouble) return;
    if (plan.protocol === "udp") return;
    const sinceMs = Math.max(
      exchange.answeredMs,
      (link as SimulatedLink | undefined)?.heldUntilMs ?? 0,
    );
    const limitMs = link?.isPackets ? PROGRESS_PACKETS_MS : PROGRESS_STREAMS_MS;
    this.#checkWay(exchange, caller, target, sinceMs, limitMs);
    this.#checkWay(exchange, target, caller, sinceMs, limitMs);
  }

  #checkWay(
    exchange: Exchange,
    writer: Talker,
    reader: Talker,
    sinceMs: number,
    limitMs: number,
  ): void {
    if (writer.end !== undefined || writer.hasReset || !reader.isReading) {
      return;
    }
    if (!writer.wantsToSend && writer.sent <= reader.received) return;
    const lastMs = Math.max(
      sinceMs,
      reader.lastReceivedMs,
      reader.readyToReadMs,
      writer.readyToWriteMs,
    );
    const waitedMs = this.sim.now() - lastMs;
    if (waitedMs <= limitMs) return;
    this.sim.fail(
      `${exchange.name} does not get on for ${waitedMs} ms: ` +
        `${writer.sent} bytes sent, ${reader.received} read`,
    );
  }
}
