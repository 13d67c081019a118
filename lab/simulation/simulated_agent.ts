/**
 * A tunnel agent of a simulated world: all of `agent/` but sockets and TLS,
 * joined as `agent.ts` joins it.
 *
 * @module
 */

import { DialReports } from "../../platform/conduits/dial_reports.ts";
import { AgentMetrics } from "../../agent/metrics/agent_metrics.ts";
import { AgentDrain } from "../../agent/drain.ts";
import { Connector } from "../../agent/links/connector.ts";
import { AgentLinks } from "../../agent/links/agent_links.ts";
import { TargetDialer } from "../../agent/dial/target_dialer.ts";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import type { Stream } from "../../net/stream/stream.ts";
import type { DialTarget } from "../../proto/peer/dial_error.ts";
import { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import { identifiers } from "../../tests/support/memory/fake_link.ts";
import type { Excuse } from "./exchange.ts";
import type { AgentPlan, Plan } from "./plan.ts";
import { linkSettings } from "./settings.ts";
import type { Simulator } from "./simulator.ts";

const MESSAGE_BYTES_MAX = 32 * 1024 * 1024;

/** What a simulated agent needs of the world. */
export interface AgentWorld {
  /** A route to a server, which may be none. */
  openLink<T>(
    agent: SimulatedAgent,
    alpn: readonly string[],
    use: (stream: Stream, link: Excuse) => Promise<T>,
  ): Promise<T>;
  /** @param link Over which the server has asked for it. */
  connectTarget(
    target: DialTarget,
    controller: AbortController,
    link: Excuse,
  ): Promise<Conduit>;
  /** All its links are about to be closed. */
  closing(agent: SimulatedAgent): void;
}

/** See the module description. */
export class SimulatedAgent {
  readonly plan: AgentPlan;
  readonly budget: ReceiveBudget;
  readonly #metrics = new AgentMetrics(new MetricRegistry());
  readonly #dialer: TargetDialer;
  readonly #links: AgentLinks;
  readonly #drain: AgentDrain;
  isGoing = false;
  /** Whose dial begins now. */
  #asking: Excuse | undefined;

  constructor(
    sim: Simulator,
    plan: Plan,
    readonly number: number,
    world: AgentWorld,
  ) {
    this.plan = plan.agents[number]!;
    this.budget = new ReceiveBudget(plan.budgetBytes);
    const random = () => sim.prng.below(1 << 20) / (1 << 20);
    this.#dialer = new TargetDialer({
      clock: sim,
      reports: new DialReports(
        undefined,
        this.#metrics.dialWitness(() => this.#drain.loadChanged()),
      ),
      connect: (target, controller) =>
        world.connectTarget(target, controller, this.#asking!),
    });
    this.#links = new AgentLinks({
      addresses: [{
        name: "server",
        connect: (events) => this.#connector(sim, plan, world).connect(events),
      }],
      timers: sim,
      random,
      linksPerServer: this.plan.links,
      intervalCapMs: 2_000,
      forever: false,
      observer: {
        linked: ({ carrier }) => sim.note(`agent linked ${carrier}`, number),
        lost: (_link, reason) => sim.note(`agent lost: ${reason}`, number),
        failed: (reason) => sim.note(`agent failed: ${reason}`, number),
        counted: () => {},
      },
    });
    this.#drain = new AgentDrain({
      announce: () => this.#links.drain(),
      load: () => this.#metrics.load,
      isLinked: () => this.#links.linkedServers > 0,
      areTold: () => this.#links.areTold,
      close: (reason) => {
        world.closing(this);
        this.#links.stop(reason);
        return Promise.resolve();
      },
    }, sim);
  }

  start(): void {
    if (!this.isGoing) this.#links.start();
  }

  /** Serves what runs, then ends. */
  drain(timeoutMs: number): void {
    this.isGoing = true;
    this.#drain.begin(timeoutMs);
  }

  /** Ends at once. */
  stop(reason: string): void {
    this.isGoing = true;
    this.#drain.now(reason);
  }

  /** What is left although everything is over; empty when nothing is. */
  leftovers(): string[] {
    return Object.entries({
      load: this.#metrics.load,
      servers: this.#links.linkedServers,
      budgetBytes: this.budget.bytes,
      budgetMembers: this.budget.members,
    }).filter(([, count]) => count !== 0)
      .map(([what, count]) => `agent ${this.number} has ${count} ${what}`);
  }

  /** One for each link, so that it is known over which one a dial came. */
  #connector(sim: Simulator, plan: Plan, world: AgentWorld): Connector {
    let link: Excuse | undefined;
    return new Connector({
      agentId: `agent-${this.number}`,
      identifiers: identifiers({}),
      alpnProtocols: [],
      carriers: [this.plan.carrier],
      authority: "server",
      keepaliveMs: plan.keepaliveMs,
      messageBytesMax: MESSAGE_BYTES_MAX,
      receiveBudget: this.budget,
      linkSettings: linkSettings(plan),
      timers: sim,
      observer: this.#metrics.packetObserver(),
      onDial: (...dial) => {
        this.#asking = link;
        return this.#dialer.dial(...dial);
      },
      openStream: (alpn, use) =>
        world.openLink(this, alpn, (stream, opened) => {
          link = opened;
          return use(stream);
        }),
      fellBack: () => {},
    });
  }
}
