/**
 * What networks do: nothing arrives any more, or one way only, or late, or not
 * all of it.
 *
 * @module
 */

import type { Prng } from "../../../tests/support/memory/prng.ts";
import {
  type Allowance,
  type Fault,
  type FaultFamily,
  type FaultMaker,
  overAgent,
  overLink,
  overServer,
} from "../fault.ts";
import { OF_OUR_CALLERS, SAID_FIRST } from "../entrance.ts";
import type { WayRule } from "../network.ts";
import type { Stage } from "../stage.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";
import { agentsOf } from "../topology.ts";
import { loneAgents } from "./processes.ts";

/** Longer than it takes to find a link half open. */
const CUT_MS = 11_000;
const SLOW_MS = 4_500;

/**
 * Times that a line goes and comes, for so long each. TCP sends again after 0.2,
 * 0.6, 1.4 and 3 s, or twice as late at most as the line is back: if each of
 * these is in a gap, a link that has to live may not count as dead by then,
 * which it does after 5.6 s.
 */
const FLAPS = 4;
const FLAP_MS = 300;

/** What a caller waits for one server, and a little. */
const NEXT_SERVER_MS = 4_500;

/** TCP sends again ever more seldom. */
const LOSSY_STALL_MS = 4_000;

type Way = readonly [from: string, to: string];

/** Both ways between each of some machines and each of others. */
function between(some: readonly string[], others: readonly string[]): Way[] {
  return some.flatMap((one) =>
    others.flatMap((other): Way[] => [[one, other], [other, one]])
  );
}

function told(
  stage: Stage,
  name: string,
  ways: readonly Way[],
  rule: WayRule,
  lastsMs: number,
  allows: Allowance,
): Fault {
  const tell = async (rule: WayRule) => {
    for (const [from, to] of ways) await stage.network.tell(from, to, rule);
  };
  return {
    ...{ name, lastsMs, allows },
    hits: [...new Set(ways.flat())],
    ...felled(stage, ways, rule),
    apply: () => tell(rule),
    undo: () => tell({}),
  };
}

/** The agent that is cut off from all servers, when it is one. */
function felled(stage: Stage, ways: readonly Way[], { cut }: WayRule) {
  const [agent, ...others] = stage.topology.agents.map(({ name }) => name)
    .filter((name) => ways.some((way) => way.includes(name)));
  const isAll = stage.topology.servers
    .every((server) => ways.some((way) => way.includes(server)));
  return cut === true && isAll && agent !== undefined && others.length === 0
    ? { fells: agent }
    : {};
}

/** What befalls a link of a lone agent that calls each server itself. */
function onALink(
  name: (server: string, agent: string) => string,
  rule: WayRule,
  waysOf = (server: string, agent: string) => between([server], [agent]),
): FaultMaker {
  return (stage, prng) => {
    const { server, agent } = aLink(stage, prng);
    const ways = waysOf(server, agent);
    return told(stage, name(server, agent), ways, rule, CUT_MS, {
      mayBreak: overLink(server, agent),
      // Their dials last until the echo: a conduit that may break is one of them.
      underWay: SAID_FIRST,
      dialMs: NEXT_SERVER_MS,
    });
  };
}

function aLink({ topology }: Stage, prng: Prng) {
  const { name: agent } = prng.pick(
    topology.agents.filter(({ name, target, finds }) =>
      name === target && finds === "each"
    ),
  );
  return { server: prng.pick(topology.servers), agent };
}

/** What befalls all ways between one server and every agent. */
function onAServer(
  name: (server: string) => string,
  rule: WayRule,
  allows: Allowance = {},
): FaultMaker {
  return (stage, prng) => {
    const server = prng.pick(stage.topology.servers);
    const ways = between([server], agentNames(stage));
    return told(stage, name(server), ways, rule, SLOW_MS, allows);
  };
}

export const NETWORK_FAULTS: FaultFamily = {
  "cut-link": onALink((server, agent) => `cut between ${server} and ${agent}`, {
    cut: true,
  }),
  "cut-one-way-down": onALink(
    (server, agent) => `cut from ${server} to ${agent} alone`,
    { cut: true },
    (server, agent) => [[server, agent]],
  ),
  "flap": (stage, prng) => {
    const { server, agent } = aLink(stage, prng);
    const tell = (rule: WayRule) => stage.network.tellBoth(server, agent, rule);
    return {
      name: `line between ${server} and ${agent} flaps`,
      lastsMs: 0,
      allows: { mayStand: overLink(server, agent), dialMs: NEXT_SERVER_MS },
      hits: [server, agent],
      async apply() {
        for (let times = 0; times < FLAPS; times++) {
          await tell({ cut: true });
          await sleep(FLAP_MS);
          await tell({});
          await sleep(FLAP_MS);
        }
      },
      undo: () => tell({}),
    };
  },
  "delay": onAServer((server) => `200 ms between ${server} and all agents`, {
    delayMs: 100,
  }),
  "loss": onAServer((server) => `3 % lost between ${server} and all agents`, {
    loss: 0.03,
  }, { stallMs: LOSSY_STALL_MS, dialMs: NEXT_SERVER_MS }),
  "mtu": onALink(
    (server, agent) =>
      `packets over 1000 bytes vanish between ${server} and ${agent}`,
    { overBytes: 1_000 },
  ),
  "mtu-callers": (stage, prng) => {
    const { servers } = stage.topology;
    const healthy = prng.pick(servers);
    const hit = servers.filter((name) => name !== healthy);
    const name = "packets over 1000 bytes vanish between callers and all " +
      `servers but ${healthy}`;
    const ways = between(hit, ["home"]);
    return told(stage, name, ways, { overBytes: 1_000 }, CUT_MS, {
      // What `forward` and proxy have open there is lost, and links over the
      // balancer, which is where callers are.
      mayBreak: (path) =>
        OF_OUR_CALLERS.includes(path.protocol) ||
        stage.topology.agents.some(({ name, finds }) =>
          finds === "balancer" && overAgent(name)(path) &&
          !overServer(healthy)(path)
        ),
      dialMs: NEXT_SERVER_MS,
      underWay: SAID_FIRST,
    });
  },
};

/** Too long for the cut, or much like others in it. */
export const LONG_NETWORK_FAULTS: FaultFamily = {
  "cut-one-way-up": onALink(
    (server, agent) => `cut from ${agent} to ${server} alone`,
    { cut: true },
    (server, agent) => [[agent, server]],
  ),
  "cut-agent": (stage, prng) => {
    const agent = prng.pick(loneAgents(stage));
    const ways = between([...stage.topology.servers, "home"], [agent]);
    return told(stage, `agent ${agent} cut off`, ways, { cut: true }, CUT_MS, {
      ...{ mayBreak: overAgent(agent), mayFail: [agent] },
    });
  },
  "cut-agent-of-two": (stage, prng) => {
    const agent = prng.pick(agentsOf(stage.topology, "site"));
    const ways = between(stage.topology.servers, [agent]);
    return told(stage, `agent ${agent} cut off`, ways, { cut: true }, CUT_MS, {
      mayBreak: overAgent(agent),
    });
  },
  "cut-server": (stage, prng) => {
    const server = prng.pick(stage.topology.servers);
    const ways = between([server], [...agentNames(stage), "home"]);
    const name = `server ${server} cut off from all agents`;
    return told(stage, name, ways, { cut: true }, CUT_MS, {
      ...{ mayBreak: overServer(server), dialMs: NEXT_SERVER_MS },
    });
  },
};

function agentNames({ topology }: Stage): string[] {
  return topology.agents.map(({ name }) => name);
}
