/**
 * A whole tunnel in memory: a server, its agents, the routes between them,
 * callers, targets, and the troubles that befall them.
 *
 * @module
 */

import type { Stream } from "../../net/stream/stream.ts";
import type { AgentLink } from "../../proto/link/link.ts";
import { LinkError, STREAMS_ALPN } from "../../proto/link/hello.ts";
import { Callers } from "./callers.ts";
import { Exchange, type Excuse } from "./exchange.ts";
import { MEMORY_IS_SHORT_BYTES, type Plan, type Trouble } from "./plan.ts";
import { type AgentWorld, SimulatedAgent } from "./simulated_agent.ts";
import { SimulatedServer } from "./simulated_server.ts";
import type { Simulator } from "./simulator.ts";
import { SocketPair } from "./socket_pair.ts";
import { tapped } from "./tapped_stream.ts";
import { type Tamper, Targets } from "./targets.ts";

/** Routes to agents are long: this much is under way on them. */
const LINK_CAPACITY_BYTES = 256 * 1024;

/** In front of the number of a link, as its server sees it. */
const LINK_ADDRESS = "10.0.0.7:";

/** One connection between an agent and the server. */
export class SimulatedLink implements Excuse {
  trouble: string | undefined;
  heldUntilMs = 0;

  constructor(
    readonly number: number,
    readonly agent: SimulatedAgent,
    readonly pair: SocketPair,
    readonly isPackets: boolean,
  ) {}
}

/** See the module description. */
export class TunnelWorld implements AgentWorld {
  readonly server: SimulatedServer;
  readonly agents: readonly SimulatedAgent[];
  readonly exchanges: readonly Exchange[];
  readonly links: SimulatedLink[] = [];
  readonly #byAddress: ReadonlyMap<string, Exchange>;
  readonly #callers: Callers;
  readonly #targets: Targets;

  constructor(
    private readonly sim: Simulator,
    private readonly plan: Plan,
    tamper: Tamper,
  ) {
    this.exchanges = plan.dials.map((dial) =>
      new Exchange(sim, dial, plan.grantsEarly)
    );
    this.#byAddress = new Map(
      this.exchanges.map((exchange) => [exchange.address, exchange]),
    );
    this.server = new SimulatedServer(sim, plan, {
      linked: (link) => this.#watchDials(link),
      unlinked: (link, reason) =>
        sim.note(`server lost: ${reason}`, this.#linkOf(link).number),
      asked: (address, hasAgent) => {
        if (!hasAgent) this.#byAddress.get(address)!.hadNoAgent = true;
      },
      failed: (address, error) =>
        this.#byAddress.get(address)!.dialFailed(error),
    });
    this.agents = plan.agents.map((_, number) =>
      new SimulatedAgent(sim, plan, number, this)
    );
    this.#callers = new Callers(sim, plan, this.server);
    this.#targets = new Targets(sim, plan, this.#byAddress, tamper);
  }

  /** Sets everything going. */
  start(): void {
    for (const agent of this.agents) {
      this.sim.post("agent starts", 0, () => agent.start());
    }
    for (const exchange of this.exchanges) {
      const { atMs } = exchange.plan;
      this.sim.post("caller starts", atMs, () => this.#callers.dial(exchange));
    }
    for (const trouble of this.plan.troubles) {
      this.sim.post(trouble.kind, trouble.atMs, () => this.#befall(trouble));
    }
  }

  /** All exchanges have come to their end. */
  get isOver(): boolean {
    return this.exchanges.every(({ isOver }) => isOver);
  }

  /** Everybody leaves. */
  stop(): void {
    this.#callers.finish();
    for (const agent of this.agents) agent.stop("the agent is stopping");
    this.server.stop("the server is stopping");
  }

  /** Every socket is closed, at both ends. */
  get isClosed(): boolean {
    return this.links.every(({ pair }) => pair.isOver) &&
      this.#callers.routes.every(({ pair }) => pair.isOver) &&
      this.#targets.isClosed;
  }

  /** See `SocketPair.abandoned`. */
  get abandonedBuffers(): ArrayBufferLike[] {
    return [...this.links, ...this.#callers.routes]
      .flatMap(({ pair }) => pair.abandoned);
  }

  /** What is left although everything is over; empty when nothing is. */
  leftovers(): string[] {
    return [
      ...this.server.leftovers(),
      ...this.agents.flatMap((agent) => agent.leftovers()),
      ...this.#callers.leftovers(),
      ...this.#targets.leftovers(),
      ...this.links.filter(({ pair }) => !pair.isOver)
        .map(({ number }) => `the socket of link ${number} is open`),
    ];
  }

  // --- What agents need ------------------------------------------------------

  openLink<T>(
    agent: SimulatedAgent,
    _alpn: readonly string[],
    use: (stream: Stream, link: SimulatedLink) => Promise<T>,
  ): Promise<T> {
    const { linkLatencyMs } = this.plan;
    return new Promise((resolve, reject) => {
      // TCP and TLS: two round trips.
      this.sim.post("link connects", 4 * linkLatencyMs, () => {
        if (agent.isGoing) reject(new LinkError("the agent has gone"));
        else resolve(this.#join(agent, use));
      });
    });
  }

  connectTarget: AgentWorld["connectTarget"] = (...dial) =>
    this.#targets.connect(...dial);

  closing(agent: SimulatedAgent): void {
    for (const link of this.#linksOf(agent)) link.trouble ??= "closed";
  }

  #join<T>(
    agent: SimulatedAgent,
    use: (stream: Stream, link: SimulatedLink) => Promise<T>,
  ): Promise<T> {
    const number = this.links.length;
    const isPackets = agent.plan.carrier === "packets";
    const pair = new SocketPair(this.sim, {
      name: "link ",
      number,
      latencyMs: this.plan.linkLatencyMs,
      capacityBytes: LINK_CAPACITY_BYTES,
      tinyCuts: this.plan.tinyCuts,
      isHttp2: true,
      alpn: isPackets ? "h2" : STREAMS_ALPN,
      remoteAddress: LINK_ADDRESS + number,
    });
    const link = new SimulatedLink(number, agent, pair, isPackets);
    this.links.push(link);
    const tap = (end: "near" | "far", isClient: boolean) =>
      tapped(pair[end], {
        isClient,
        // In the packets carrier a conduit is reset by a packet.
        mayCalm: !isPackets &&
          this.plan.budgetBytes <= MEMORY_IS_SHORT_BYTES,
        complain: (what) => {
          // A peer that receives nothing may well run out of patience.
          if (link.trouble !== undefined || link.heldUntilMs > 0) return;
          this.sim.fail(`the ${end} end of link ${number} sends ${what}`);
        },
      });
    // In the streams carrier the server is HTTP/2's client.
    this.server.acceptAgent(tap("near", !isPackets));
    return use(tap("far", isPackets), link);
  }

  // --- Who uses which link ---------------------------------------------------

  #watchDials(link: AgentLink): void {
    const simulated = this.#linkOf(link);
    this.sim.note("server linked", simulated.number);
    const dial = link.dial.bind(link);
    link.dial = (target, events, options) => {
      const exchange = this.#byAddress.get(target.address)!;
      exchange.askedOver(simulated);
      return dial(target, {
        onConnected: (conduit) => {
          exchange.chosen(simulated);
          events.onConnected(conduit);
        },
        onFailed: (error) => events.onFailed(error),
      }, options);
    };
  }

  #linkOf({ peer }: AgentLink): SimulatedLink {
    return this.links[Number(peer.remoteAddress.slice(LINK_ADDRESS.length))]!;
  }

  #linksOf(agent: SimulatedAgent): SimulatedLink[] {
    return this.links.filter((link) => link.agent === agent);
  }

  // --- Troubles --------------------------------------------------------------

  #befall(trouble: Trouble): void {
    const { index } = trouble;
    const links = this.links.filter(({ pair }) => !pair.isOver);
    const link = links[index % links.length];
    const agent = this.agents[index % this.agents.length]!;
    const exchange = this.exchanges[index % this.exchanges.length];
    switch (trouble.kind) {
      case "cutLink":
        if (link !== undefined) {
          link.trouble = "cut";
          link.pair.cut(trouble.how);
        }
        return;
      case "swallowLink":
        if (link !== undefined) {
          link.trouble = "swallowed";
          link.pair.swallow();
        }
        return;
      case "holdLink":
        if (link !== undefined) this.#holdLink(link, trouble);
        return;
      case "cutTarget":
        if (exchange !== undefined) this.#targets.cut(exchange, trouble.how);
        return;
      case "holdTarget":
        if (exchange !== undefined) {
          this.#targets.hold(exchange, trouble.forMs, trouble.which);
        }
        return;
      case "cutFrontend":
        this.#callers.cut(index, trouble.how);
        return;
      case "drainAgent":
        return agent.drain(10_000 + 5_000 * index);
      case "stopAgent":
        return agent.stop("the agent is stopped");
    }
  }

  #holdLink(
    link: SimulatedLink,
    { forMs, which }: Extract<Trouble, { kind: "holdLink" | "holdTarget" }>,
  ): void {
    const untilMs = this.sim.now() + forMs;
    link.heldUntilMs = Math.max(link.heldUntilMs, untilMs);
    link.pair.hold(forMs, which);
    // A dial that is under way or comes meanwhile may miss its deadline.
    for (const exchange of this.exchanges) {
      if (!exchange.isOver) exchange.wasHeld = true;
    }
  }
}
