/**
 * What networks do: nothing arrives any more, or one way only, or late, or not
 * all of it.
 *
 * @module
 */

import {
  type Allowance,
  type Fault,
  type FaultFamily,
  overAgent,
  overLink,
  overServer,
} from "../fault.ts";
import type { WayRule } from "../network.ts";
import type { Stage } from "../stage.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";
import { agentsOf } from "../topology.ts";
import { loneAgents } from "./kill.ts";

/** Longer than it takes to find a link half open. */
const CUT_MS = 11_000;
const SLOW_MS = 4_500;

/** Times that a line goes and comes, for so long each. */
const FLAPS = 4;
const FLAP_MS = 700;

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

/** A link of a lone agent that calls each server itself. */
function aLink(stage: Stage, pick: <T>(some: readonly T[]) => T) {
  const { topology } = stage;
  const agent = pick(
    topology.agents.filter(({ name, target, finds }) =>
      name === target && finds === "each"
    ),
  ).name;
  const server = pick(topology.servers);
  return { server, agent, isOver: overLink(server, agent) };
}

export const NETWORK_FAULTS: FaultFamily = {
  "cut-link": (stage, prng) => {
    const { server, agent, isOver } = aLink(stage, (some) => prng.pick(some));
    const ways = between([server], [agent]);
    const name = `cut between ${server} and ${agent}`;
    return told(stage, name, ways, { cut: true }, CUT_MS, {
      ...{ mayBreak: isOver, dialMs: NEXT_SERVER_MS },
    });
  },

  "cut-one-way-down": (stage, prng) => {
    const { server, agent, isOver } = aLink(stage, (some) => prng.pick(some));
    const name = `cut from ${server} to ${agent} alone`;
    return told(stage, name, [[server, agent]], { cut: true }, CUT_MS, {
      ...{ mayBreak: isOver, dialMs: NEXT_SERVER_MS },
    });
  },

  "flap": (stage, prng) => {
    const { server, agent, isOver } = aLink(stage, (some) => prng.pick(some));
    const ways = between([server], [agent]);
    const tell = async (rule: WayRule) => {
      for (const [from, to] of ways) await stage.network.tell(from, to, rule);
    };
    return {
      name: `line between ${server} and ${agent} flaps`,
      lastsMs: 0,
      allows: { mayStand: isOver, dialMs: NEXT_SERVER_MS },
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

  "delay": (stage, prng) => {
    const server = prng.pick(stage.topology.servers);
    const ways = between([server], agentNames(stage));
    const name = `200 ms between ${server} and all agents`;
    return told(stage, name, ways, { delayMs: 100 }, SLOW_MS, {});
  },

  "loss": (stage, prng) => {
    const server = prng.pick(stage.topology.servers);
    const ways = between([server], agentNames(stage));
    const name = `3 % lost between ${server} and all agents`;
    return told(stage, name, ways, { loss: 0.03 }, SLOW_MS, {
      stallMs: LOSSY_STALL_MS,
      dialMs: NEXT_SERVER_MS,
    });
  },

  "mtu": (stage, prng) => {
    const { server, agent, isOver } = aLink(stage, (some) => prng.pick(some));
    const ways = between([server], [agent]);
    const name =
      `packets over 1000 bytes vanish between ${server} and ${agent}`;
    return told(stage, name, ways, { overBytes: 1_000 }, CUT_MS, {
      ...{ mayBreak: isOver, dialMs: NEXT_SERVER_MS },
    });
  },
};

/** Too long for the cut, or much like others in it. */
export const LONG_NETWORK_FAULTS: FaultFamily = {
  "cut-one-way-up": (stage, prng) => {
    const { server, agent, isOver } = aLink(stage, (some) => prng.pick(some));
    const name = `cut from ${agent} to ${server} alone`;
    return told(stage, name, [[agent, server]], { cut: true }, CUT_MS, {
      ...{ mayBreak: isOver, dialMs: NEXT_SERVER_MS },
    });
  },

  "cut-agent": (stage, prng) => {
    const agent = prng.pick(loneAgents(stage));
    const ways = between([...stage.topology.servers, "home"], [agent]);
    const name = `agent ${agent} cut off`;
    return told(stage, name, ways, { cut: true }, CUT_MS, {
      ...{ mayBreak: overAgent(agent), mayFail: [agent] },
    });
  },

  "cut-agent-of-two": (stage, prng) => {
    const agent = prng.pick(agentsOf(stage.topology, "site"));
    const ways = between(stage.topology.servers, [agent]);
    const name = `agent ${agent} cut off`;
    return told(stage, name, ways, { cut: true }, CUT_MS, {
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
