/**
 * A tunnel server of a simulated world: all of `server/` but its listeners,
 * joined as `server.ts` joins it.
 *
 * @module
 */

import { DialReports } from "../../platform/conduits/dial_reports.ts";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import type { Stream } from "../../net/stream/stream.ts";
import type { DialError } from "../../proto/peer/dial_error.ts";
import type { AgentLink } from "../../proto/link/link.ts";
import { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import { join } from "../../proto/transfer/transfer.ts";
import { ConnectionIds } from "../../proto/peer/connection_id.ts";
import { Prng } from "../../tests/support/memory/prng.ts";
import { Dialer } from "../../server/routing/dialer.ts";
import { FrontendPort } from "../../server/frontends/frontend_port.ts";
import { frontendRouter } from "../../server/frontends/grpc_frontend.ts";
import { AgentPort } from "../../server/links/agent_port.ts";
import { Registry } from "../../server/routing/registry.ts";
import { ServerMetrics } from "../../server/assembly/server_metrics.ts";
import type { Plan } from "./plan.ts";
import type { Simulator } from "./simulator.ts";
import { linkSettings } from "./settings.ts";

const MESSAGE_BYTES_MAX = 32 * 1024 * 1024;

/** What a simulated server tells the world. */
export interface ServerWitness {
  /** An agent has linked; how it dials may be watched from here on. */
  linked(link: AgentLink): void;
  unlinked(link: AgentLink, reason: string): void;
  /** A caller asks for `address`; there may be nobody to ask. */
  asked(address: string, hasAgent: boolean): void;
  /** A dial has failed, whatever its caller was told before. */
  failed(address: string, error: DialError): void;
}

/** See the module description. */
export class SimulatedServer {
  readonly budget: ReceiveBudget;
  readonly registry: Registry;
  readonly dialer: Dialer;
  readonly #metrics: ServerMetrics;
  readonly #agentPort: AgentPort;
  readonly #frontendPort: FrontendPort;
  /** By the seed: an id is a varint on the wire, one of 128 is a byte shorter. */
  readonly #ids: ConnectionIds;
  /** HTTP/1.1 connections of callers now. */
  #http1 = 0;

  constructor(
    sim: Simulator,
    plan: Plan,
    private readonly witness: ServerWitness,
  ) {
    const prng = new Prng(plan.seed);
    this.#ids = new ConnectionIds((bytes) =>
      bytes.set(prng.bytes(bytes.length))
    );
    this.budget = new ReceiveBudget(plan.budgetBytes);
    this.registry = new Registry({
      strategies: ["default"],
      clock: sim,
      random: () => sim.prng.below(1 << 20) / (1 << 20),
    });
    this.#metrics = new ServerMetrics(new MetricRegistry(), sim);
    this.dialer = new Dialer({
      registry: this.registry,
      timers: sim,
      dialTimeoutMs: plan.dialTimeoutMs,
      reports: new DialReports(
        undefined,
        this.#metrics.dialWitness(() => {}),
      ),
    });
    this.#agentPort = this.#makeAgentPort(sim, plan);
    this.#frontendPort = this.#makeFrontendPort(sim, plan);
  }

  /** An agent's connection. */
  acceptAgent(stream: Stream): void {
    this.#agentPort.accept(stream);
  }

  /** A caller's connection. */
  acceptCaller(socket: Stream): void {
    void this.#frontendPort.accept(socket);
  }

  readonly dial: Dialer["dial"] = (order, answer) => {
    const { address } = order.target;
    this.witness.asked(address, this.registry.links.size > 0);
    const dial = { ...order, id: order.id ?? this.#ids.next() };
    return this.dialer.dial(dial, {
      connected: (conduit) => answer.connected(conduit),
      failed: (error) => {
        this.witness.failed(address, error);
        answer.failed(error);
      },
    });
  };

  /** As `Server.#closeAll`. */
  stop(reason: string): void {
    for (const link of [...this.registry.links]) link.close(reason);
    this.#agentPort.stop(reason);
    this.#frontendPort.shutdown(reason);
  }

  /** What is left although everything is over; empty when nothing is. */
  leftovers(): string[] {
    const { established, pendingDials } = this.#metrics;
    return Object.entries({
      established,
      pendingDials,
      callers: this.#http1 + this.#frontendPort.connections,
      links: this.registry.links.size,
      budgetBytes: this.budget.bytes,
      budgetMembers: this.budget.members,
    }).filter(([, count]) => count !== 0)
      .map(([what, count]) => `server has ${count} ${what}`);
  }

  #makeAgentPort(sim: Simulator, plan: Plan): AgentPort {
    let random = 0;
    return new AgentPort({
      serverId: "server-1",
      serverCount: () => 1,
      instanceId: "",
      keepaliveMs: plan.keepaliveMs,
      receiveBudget: this.budget,
      messageBytesMax: MESSAGE_BYTES_MAX,
      admit: () => undefined,
      timers: sim,
      // Its last bit is dropped: ids differ as those of real randomness do.
      randomness: (bytes) => {
        new DataView(bytes.buffer).setUint32(4, 2 * ++random);
      },
      methodsFor: () => ({}),
      firstStreamId: plan.firstStreamId,
      linkSettings: linkSettings(plan),
      observer: {
        ...this.#metrics.packetObserver("agent"),
        linked: (link) => {
          this.witness.linked(link);
          this.registry.add(link);
        },
        unlinked: (link, reason) => {
          this.registry.remove(link);
          this.witness.unlinked(link, reason);
        },
        refused: (_remoteAddress, reason) => sim.note(`refused: ${reason}`),
        counted: () => {},
      },
    });
  }

  #makeFrontendPort(sim: Simulator, plan: Plan): FrontendPort {
    const observer = this.#metrics.packetObserver("client");
    return new FrontendPort({
      mode: "auto",
      timers: sim,
      keepaliveMs: plan.keepaliveMs,
      receiveBudget: this.budget,
      routerFor: (caller) =>
        frontendRouter(caller, {
          timers: sim,
          dial: this.dial,
          observer,
          messageBytesMax: MESSAGE_BYTES_MAX,
          counted: () => {},
          publicMethods: {},
        }),
      connect: {
        timers: sim,
        grantsEarly: plan.grantsEarly,
        dial: this.dial,
        join,
        refused: () => {},
      },
      turnedAway: (_remoteAddress, reason) =>
        sim.note(`turned away: ${reason}`),
      counted: (change) => void (this.#http1 += change),
    });
  }
}
