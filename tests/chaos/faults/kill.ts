/**
 * Processes that are killed and started again by their supervisor.
 *
 * @module
 */

import {
  type Allowance,
  type FaultFamily,
  type FaultMaker,
  overAgent,
  overServer,
} from "../fault.ts";
import type { Program } from "../program.ts";
import type { Stage } from "../stage.ts";
import { agentsOf } from "../topology.ts";

/** How long the supervisor takes. */
const AWAY_MS = 3_000;

/** Kill -9, and started again at its end. */
function kill(
  program: Program,
  kind: string,
  allows: Allowance,
): ReturnType<FaultMaker> {
  return {
    name: `kill -9 of ${kind} ${program.name}`,
    lastsMs: AWAY_MS,
    allows,
    apply: () => program.stop("SIGKILL"),
    undo: () => program.start(),
  };
}

export const KILL_FAULTS: FaultFamily = {
  "kill-server": (stage, prng) => {
    const server = prng.pick([...stage.servers.values()]);
    return kill(server, "server", { mayBreak: overServer(server.name) });
  },

  "kill-agent": (stage, prng) => {
    const name = prng.pick(loneAgents(stage));
    return kill(stage.agents.get(name)!, "agent", {
      mayBreak: overAgent(name),
      mayFail: [name],
    });
  },

  "kill-agent-of-two": (stage, prng) => {
    const name = prng.pick(agentsOf(stage.topology, "site"));
    return kill(stage.agents.get(name)!, "agent", {
      mayBreak: overAgent(name),
    });
  },

  "kill-target": (stage, prng) => {
    const target = prng.pick([...stage.targets.keys()]);
    return kill(stage.targets.get(target)!, "the", {
      mayBreak: (path) => path.target === target,
      mayEnd: true,
      mayFail: [target],
    });
  },

  "kill-caller": (stage) =>
    kill(stage.forward, "caller", {
      mayBreak: ({ protocol }) => protocol === "forward",
      mayFailBy: ["forward"],
    }),
};

/** Agents whose target is theirs alone. */
export function loneAgents(stage: Stage): string[] {
  return stage.topology.agents.filter(({ name, target }) => name === target)
    .map(({ name }) => name);
}
