/**
 * Processes that stand still, as when their machine has other cares, and go on.
 *
 * @module
 */

import {
  type Allowance,
  type Fault,
  type FaultFamily,
  overAgent,
  overServer,
} from "../fault.ts";
import type { Program } from "../program.ts";
import { agentsOf } from "../topology.ts";
import { loneAgents } from "./kill.ts";

const SHORT_MS = 5_000;
/** Longer than it takes to find a link half open. */
const FOUND_MS = 12_000;
const LONG_MS = 20_000;

/** What a caller waits for one server, and a little. */
const NEXT_SERVER_MS = 4_500;

function freeze(
  program: Program,
  kind: string,
  lastsMs: number,
  allows: Allowance,
): Fault {
  return {
    name: `${kind} ${program.name} stands still for ${lastsMs / 1000} s`,
    lastsMs,
    allows,
    hits: [program.name],
    fells: program.name,
    // deno-lint-ignore require-await -- others have to wait.
    apply: async () => program.signal("SIGSTOP"),
    // deno-lint-ignore require-await -- as above.
    undo: async () => program.signal("SIGCONT"),
  };
}

function freezeServer(lastsMs: number): FaultFamily[string] {
  return (stage, prng) => {
    const server = prng.pick([...stage.servers.values()]);
    const isOver = overServer(server.name);
    return freeze(server, "server", lastsMs, {
      ...lastsMs >= FOUND_MS ? { mayBreak: isOver } : {},
      mayStand: isOver,
      dialMs: NEXT_SERVER_MS,
    });
  };
}

function freezeLoneAgent(lastsMs: number): FaultFamily[string] {
  return (stage, prng) => {
    const name = prng.pick(loneAgents(stage));
    const isOver = overAgent(name);
    return freeze(stage.agents.get(name)!, "agent", lastsMs, {
      ...lastsMs >= FOUND_MS ? { mayBreak: isOver, mayFail: [name] } : {},
      mayStand: isOver,
      mayWait: [name],
    });
  };
}

function freezeAgentOfTwo(lastsMs: number): FaultFamily[string] {
  return (stage, prng) => {
    const name = prng.pick(agentsOf(stage.topology, "site"));
    const isOver = overAgent(name);
    return freeze(stage.agents.get(name)!, "agent", lastsMs, {
      ...lastsMs >= FOUND_MS ? { mayBreak: isOver } : {},
      mayStand: isOver,
    });
  };
}

export const FREEZE_FAULTS: FaultFamily = {
  "freeze-server-5": freezeServer(SHORT_MS),
  "freeze-agent-5": freezeLoneAgent(SHORT_MS),
  "freeze-agent-of-two-12": freezeAgentOfTwo(FOUND_MS),
};

/** Too long for the cut. */
export const LONG_FREEZE_FAULTS: FaultFamily = {
  "freeze-server-20": freezeServer(LONG_MS),
  "freeze-agent-20": freezeLoneAgent(LONG_MS),
  "freeze-agent-of-two-5": freezeAgentOfTwo(SHORT_MS),
  "freeze-agent-of-two-20": freezeAgentOfTwo(LONG_MS),

  "freeze-caller": (stage) =>
    freeze(stage.forward, "caller", SHORT_MS, {
      mayStand: ({ protocol }) => protocol === "forward",
      mayWaitBy: ["forward"],
    }),

  "freeze-target": (stage, prng) => {
    const target = prng.pick([...stage.targets.keys()]);
    return freeze(stage.targets.get(target)!, "the", SHORT_MS, {
      mayStand: (path) => path.target === target,
      mayFail: [target],
    });
  },
};
