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
import { runOrThrow } from "../network.ts";
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
    hits: [program.name],
    fells: program.name,
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

export const WORKER_FAULTS: FaultFamily = {
  "kill-worker": (stage, prng) => {
    const server = prng.pick([...stage.servers.values()]);
    return {
      name: `kill -9 of a worker of server ${server.name}`,
      lastsMs: AWAY_MS,
      allows: { mayBreak: overServer(server.name) },
      hits: [server.name],
      async apply() {
        const workers = await server.children();
        if (workers.length < 2) throw new Error(`${workers.length} workers`);
        await runOrThrow("kill", "-KILL", String(prng.pick(workers)));
      },
      // Its parent puts another one in its place.
      undo: () => Promise.resolve(),
    };
  },

  "freeze-worker": (stage, prng) => {
    const server = prng.pick([...stage.servers.values()]);
    let pid = 0;
    return {
      name: `a worker of server ${server.name} stands still for 5 s`,
      lastsMs: 5_000,
      allows: {
        ...{ mayStand: overServer(server.name), dialMs: 4_500 },
      },
      hits: [server.name],
      async apply() {
        pid = prng.pick(await server.children());
        await runOrThrow("kill", "-STOP", String(pid));
      },
      async undo() {
        await runOrThrow("kill", "-CONT", String(pid));
      },
    };
  },

  // Last: workers carry on what they have, and then are nobody's children.
  "kill-server": KILL_FAULTS["kill-server"]!,
};

/** Agents whose target is theirs alone. */
export function loneAgents(stage: Stage): string[] {
  return stage.topology.agents.filter(({ name, target }) => name === target)
    .map(({ name }) => name);
}
