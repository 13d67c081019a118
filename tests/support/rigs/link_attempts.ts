/**
 * The links of an agent whose attempts a test answers, one by one or as a world
 * of servers that come and go.
 *
 * @module
 */

import {
  AgentLinks,
  type AttemptEvents,
  type ServerLink,
} from "../../../agent/links/agent_links.ts";
import { ConnectError } from "../../../net/dial/server_connect.ts";
import { settled } from "../memory/conduit_probe.ts";
import { FakeTimers } from "../memory/fake_timers.ts";

/** What a machine says on which no server runs. */
export function refusal(): ConnectError {
  const cause = Object.assign(new Error(), { code: "ECONNREFUSED" });
  return new ConnectError("connection refused", { cause });
}

/** One attempt, and the test's hand in what comes of it. */
export class Attempt {
  closed: string | undefined;
  drained = false;
  isLinked = false;
  /** How often it was asked for a sign of life. */
  checked = 0;
  readonly #outcome = Promise.withResolvers<ServerLink>();
  /** Later answers change nothing. */
  #isAnswered = false;

  constructor(
    readonly address: string,
    readonly atMs: number,
    readonly events: AttemptEvents,
  ) {}

  get promise(): Promise<ServerLink> {
    return this.#outcome.promise;
  }

  /** `s1/p2`: the second process with the id `s1`. */
  succeed(name: string, count = 1, carrier = "streams"): Promise<void> {
    if (this.#isAnswered) return settled();
    const [serverId = "", instanceId = ""] = name.split("/");
    const server = { serverId, instanceId };
    const kind = carrier as "streams" | "packets";
    if (!this.events.claim(server, kind)) {
      return this.failWith(new Error("linked already"));
    }
    this.isLinked = this.#isAnswered = true;
    const link: ServerLink = {
      ...server,
      serverCount: count,
      carrier: kind,
      drain: (told) => {
        this.drained = true;
        told();
      },
      check: () => void this.checked++,
      close: (reason) => {
        this.closed = reason;
        this.events.closed(reason);
      },
    };
    this.#outcome.resolve(link);
    this.events.linked?.(link);
    return settled();
  }

  fail(reason: string): Promise<void> {
    return this.failWith(new Error(reason));
  }

  refuse(): Promise<void> {
    return this.failWith(refusal());
  }

  failWith(error: Error): Promise<void> {
    this.#isAnswered = true;
    this.#outcome.reject(error);
    return settled();
  }

  lose(reason: string): Promise<void> {
    this.events.closed(reason);
    return settled();
  }

  /** The server says where servers are: `s2/p1 b:1`. */
  tell(servers: readonly string[], serverCount = servers.length): void {
    this.events.peers?.({
      servers: servers.map((text) => {
        const [name = "", address = ""] = text.split(" ");
        const [serverId = "", instanceId = ""] = name.split("/");
        return { serverId, instanceId, address };
      }),
      serverCount,
    });
  }

  doubt(isDoubted: boolean): Promise<void> {
    if (this.isLinked) this.events.doubted(isDoubted);
    return settled();
  }

  drain(spreadMs = 0): Promise<void> {
    this.events.draining(spreadMs);
    return settled();
  }
}

/** What a test holds of the links of one agent. */
export interface Rig {
  readonly timers: FakeTimers;
  readonly attempts: Attempt[];
  /** What the observer heard. */
  readonly said: string[];
  readonly retries: number[];
  readonly agentLinks: AgentLinks;
}

/** The same, with servers that answer. */
export interface World extends Rig {
  readonly world: Map<string, Answering>;
  run(ms: number, stepMs?: number): Promise<void>;
  /** The last attempt of which a link came, by address. */
  readonly links: Map<string, Attempt>;
  attemptsAt(address: string, sinceMs?: number): number;
}

/** Addresses whose attempts the test answers one by one. */
export function setUp(
  options: Partial<
    {
      addresses: readonly string[];
      links: number;
      forever: boolean;
      intervalMs: number;
      wanted: (reported: number) => number;
    }
  > = {},
): Rig {
  const timers = new FakeTimers();
  const attempts: Attempt[] = [];
  const said: string[] = [];
  const retries: number[] = [];
  const { addresses = ["a:1"], intervalMs } = options;
  const connectTo = (name: string) => ({
    name,
    connect: (events: AttemptEvents, signal: AbortSignal) => {
      const attempt = new Attempt(name, timers.now(), events);
      attempts.push(attempt);
      signal.addEventListener("abort", () => void attempt.fail("given up"));
      return attempt.promise;
    },
  });
  const agentLinks = new AgentLinks({
    timers,
    random: () => 0.5,
    linksPerServer: options.links ?? 1,
    ...(intervalMs === undefined ? {} : { intervalMs }),
    intervalCapMs: 10_000,
    forever: options.forever ?? false,
    serversWanted: options.wanted ?? ((reported) => reported),
    addresses: addresses.map(connectTo),
    learned: { addressOf: ({ address }) => connectTo(address) },
    observer: {
      linked: (link) => void said.push(`linked ${link.serverId}`),
      lost: (link, reason) =>
        void said.push(`lost ${link.serverId}: ${reason}`),
      failed: (reason, retryMs) => {
        said.push(`failed: ${reason}`);
        retries.push(retryMs);
      },
      counted: () => {},
      haveOneId: (id, at) => void said.push(`${id} at ${at.join(" and ")}`),
    },
  });
  agentLinks.start();
  return { timers, attempts, said, retries, agentLinks };
}

/** By address: who answers there, nobody, or one after the other. */
type Answering = string | readonly string[] | undefined;

/** Servers that answer by themselves, as the test lets them. */
export function setUpWorld(
  first: Readonly<Record<string, Answering>>,
  options: { count?: number } = {},
): World {
  const world = new Map(Object.entries(first));
  const rig = setUp({ addresses: [...world.keys()] });
  const turns = new Map<string, number>();
  let answered = 0;
  const links = new Map<string, Attempt>();
  const answer = async (attempt: Attempt) => {
    const found = world.get(attempt.address);
    if (found === undefined) return await attempt.refuse();
    const turn = turns.get(attempt.address) ?? 0;
    turns.set(attempt.address, turn + 1);
    const name = typeof found === "string" ? found : found[turn % found.length];
    await attempt.succeed(name!, options.count ?? 1);
    if (attempt.isLinked) links.set(attempt.address, attempt);
  };
  /** Time goes by, and whoever is asked answers. */
  const run = async (ms: number, stepMs = 50) => {
    for (let spent = 0; spent < ms; spent += stepMs) {
      while (answered < rig.attempts.length) {
        await answer(rig.attempts[answered++]!);
      }
      rig.timers.advance(stepMs);
    }
    while (answered < rig.attempts.length) {
      await answer(rig.attempts[answered++]!);
    }
  };
  const attemptsAt = (address: string, sinceMs = 0) =>
    rig.attempts.filter((one) => one.address === address && one.atMs >= sinceMs)
      .length;
  return { ...rig, world, run, links, attemptsAt };
}
