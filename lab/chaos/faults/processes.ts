/**
 * Processes that are killed and started again by their supervisor, or that
 * stand still, as when their machine has other cares, and go on.
 *
 * @module
 */

import type { Prng } from "../../../tests/support/memory/prng.ts";
import {
  type Allowance,
  type FaultFamily,
  type FaultMaker,
  overAgent,
  overServer,
} from "../fault.ts";
import { type Protocol, SAID_FIRST } from "../entrance.ts";
import type { Path } from "../ledger.ts";
import { mustEnd } from "../../../tests/support/program/run.ts";
import type { Program } from "../program.ts";
import type { Stage } from "../stage.ts";
import { agentsOf } from "../topology.ts";

/** How long the supervisor takes. */
const AWAY_MS = 3_000;

const SHORT_MS = 5_000;

/** Longer than it takes to find a link half open. */
const FOUND_MS = 12_000;

const LONG_MS = 20_000;

/** What a caller waits for one server, and a little. */
const NEXT_SERVER_MS = 4_500;

/** A program that is hit, and what callers feel that have no other way. */
interface Victim {
  readonly program: Program;
  readonly kind: string;
  readonly isOver: (path: Path) => boolean;
  /** While it is gone. */
  readonly gone?: Allowance;
  /** While it stands still. */
  readonly still?: Allowance;
  /** When that has been found. */
  readonly found?: Allowance;
}

type ChooseVictim = (stage: Stage, prng: Prng) => Victim;

const aServer: ChooseVictim = (stage, prng) => {
  const program = prng.pick([...stage.servers.values()]);
  const isOver = overServer(program.name);
  return {
    ...{ program, kind: "server", isOver },
    still: { dialMs: NEXT_SERVER_MS },
    found: { mayBreak: isOver, underWay: SAID_FIRST },
  };
};

/** A try of theirs has two seconds (docs/services.md, "Connections"). */
const BY_PROXY: readonly Protocol[] = ["proxy, said first"];

const aLoneAgent: ChooseVictim = (stage, prng) => {
  const name = prng.pick(loneAgents(stage));
  const isOver = overAgent(name);
  return {
    ...{ program: stage.agents.get(name)!, kind: "agent", isOver },
    gone: { mayFail: [name] },
    still: { mayWait: [name], mayFailBy: BY_PROXY },
    found: { mayBreak: isOver, mayFail: [name] },
  };
};

const anAgentOfTwo: ChooseVictim = (stage, prng) => {
  const name = prng.pick(agentsOf(stage.topology, "site"));
  const isOver = overAgent(name);
  return {
    ...{ program: stage.agents.get(name)!, kind: "agent", isOver },
    found: { mayBreak: isOver },
  };
};

const aTarget: ChooseVictim = (stage, prng) => {
  const name = prng.pick([...stage.targets.keys()]);
  return {
    program: stage.targets.get(name)!,
    kind: "the",
    isOver: ({ target }) => target === name,
    gone: { mayEnd: true, mayFail: [name] },
    still: { mayFail: [name] },
  };
};

const BY_FORWARD: readonly Protocol[] = ["forward", "forward, said first"];

const theCaller: ChooseVictim = ({ forward }) => ({
  program: forward,
  kind: "caller",
  isOver: ({ protocol }) => BY_FORWARD.includes(protocol),
  gone: { mayFailBy: BY_FORWARD },
  still: { mayWaitBy: BY_FORWARD },
});

/** Kill -9, and started again at its end. */
function kill(choose: ChooseVictim): FaultMaker {
  return (stage, prng) => {
    const { program, kind, isOver, gone } = choose(stage, prng);
    return {
      name: `kill -9 of ${kind} ${program.name}`,
      lastsMs: AWAY_MS,
      allows: { mayBreak: isOver, ...gone },
      hits: [program.name],
      fells: program.name,
      apply: () => program.stop("SIGKILL"),
      undo: () => program.start(),
    };
  };
}

function freeze(choose: ChooseVictim, lastsMs: number): FaultMaker {
  return (stage, prng) => {
    const { program, kind, isOver, still, found } = choose(stage, prng);
    return {
      name: `${kind} ${program.name} stands still for ${lastsMs / 1000} s`,
      lastsMs,
      allows: {
        ...{ mayStand: isOver, ...still },
        ...lastsMs >= FOUND_MS ? found : {},
      },
      hits: [program.name],
      fells: program.name,
      // deno-lint-ignore require-await -- others have to wait.
      apply: async () => program.signal("SIGSTOP"),
      // deno-lint-ignore require-await -- as above.
      undo: async () => program.signal("SIGCONT"),
    };
  };
}

export const KILL_FAULTS: FaultFamily = {
  "kill-server": kill(aServer),
  "kill-agent": kill(aLoneAgent),
  "kill-agent-of-two": kill(anAgentOfTwo),
  "kill-target": kill(aTarget),
  "kill-caller": kill(theCaller),
};

export const FREEZE_FAULTS: FaultFamily = {
  "freeze-server-5": freeze(aServer, SHORT_MS),
  "freeze-agent-5": freeze(aLoneAgent, SHORT_MS),
  "freeze-agent-of-two-12": freeze(anAgentOfTwo, FOUND_MS),
};

/** Too long for the cut. */
export const LONG_FREEZE_FAULTS: FaultFamily = {
  "freeze-server-20": freeze(aServer, LONG_MS),
  "freeze-agent-20": freeze(aLoneAgent, LONG_MS),
  "freeze-agent-of-two-5": freeze(anAgentOfTwo, SHORT_MS),
  "freeze-agent-of-two-20": freeze(anAgentOfTwo, LONG_MS),
  "freeze-caller": freeze(theCaller, SHORT_MS),
  "freeze-target": freeze(aTarget, SHORT_MS),
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
        const workers = server.children;
        if (workers.length < 2) throw new Error(`${workers.length} workers`);
        await mustEnd(["kill", "-KILL", String(prng.pick(workers))]);
      },
      // Its parent puts another one in its place.
      undo: () => Promise.resolve(),
    };
  },
  "freeze-workers": (stage, prng) => {
    const { servers } = stage.topology;
    const healthy = prng.pick(servers);
    const hit = servers.filter((name) => name !== healthy);
    const pids: string[] = [];
    return {
      name: `a worker of each server but ${healthy} stands still for 5 s`,
      lastsMs: SHORT_MS,
      allows: {
        mayStand: (path) => hit.some((name) => overServer(name)(path)),
        // A caller by hand may meet one after the other.
        dialMs: 2 * NEXT_SERVER_MS,
      },
      hits: hit,
      async apply() {
        for (const name of hit) {
          pids.push(String(prng.pick(stage.servers.get(name)!.children)));
        }
        await mustEnd(["kill", "-STOP", ...pids]);
      },
      async undo() {
        await mustEnd(["kill", "-CONT", ...pids]);
      },
    };
  },
  // Last: workers carry on what they have, and then are nobody's children.
  "kill-server": kill(aServer),
};

/** Agents whose target is theirs alone. */
export function loneAgents(stage: Stage): string[] {
  return stage.topology.agents.filter(({ name, target }) => name === target)
    .map(({ name }) => name);
}
