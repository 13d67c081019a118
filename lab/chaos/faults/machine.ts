/**
 * Machines that run out of something: room on the disk, descriptors, memory, a
 * reader of their log, the right time.
 *
 * @module
 */

import type { FaultFamily } from "../fault.ts";
import { mustEnd } from "../../../tests/support/program/run.ts";
import { MEMORY_GROUPS, memoryGroupOf } from "../sandbox.ts";
import type { Program } from "../program.ts";
import { overAgent, overServer } from "../fault.ts";
import { agentsOf } from "../topology.ts";

const LASTS_MS = 4_500;

/** Numbers below that are all taken: what is open stays, and nothing is added. */
const DESCRIPTORS_LEFT = 16;

/** Memory that a process may have beyond what it has. */
const SPARE_MEMORY_KIB = 48 * 1024;

/** What is wrong with the state is said in so long. */
const SAID_MS = 8_000;

const DAY_SECONDS = 24 * 3600;

export const MACHINE_FAULTS: FaultFamily = {
  "disk-full": (stage) => ({
    name: "disk of the state directory is full",
    lastsMs: LASTS_MS,
    allows: {},
    apply: () => stage.store.fill(true),
    undo: () => stage.store.fill(false),
    async check() {
      // A file that was being replaced while the disk was filled has freed the
      // one before it, and a token needs no more room than that.
      await stage.store.fill(true);
      const startMs = Date.now();
      const said = await stage.createToken("--node=late").then(
        () => "made a token",
        (error: Error) => error.message,
      );
      const tookMs = Date.now() - startMs;
      if (!/no space|No space|disk is full|ENOSPC/.test(said)) {
        throw new Error(`tunnel token create says: ${said}`);
      }
      if (tookMs > SAID_MS) throw new Error(`it says so after ${tookMs} ms`);
    },
  }),

  "descriptors-server": (stage, prng) => {
    const server = prng.pick([...stage.servers.values()]);
    return {
      name: `server ${server.name} is out of descriptors`,
      lastsMs: LASTS_MS,
      // Nobody is accepted any more: callers wait, and go on to the next server.
      allows: { dialMs: 4_500 },
      hits: [server.name],
      ...limitedDescriptors(server),
    };
  },

  "descriptors-agent-of-two": (stage, prng) => {
    const name = prng.pick(agentsOf(stage.topology, "site"));
    return {
      name: `agent ${name} is out of descriptors`,
      lastsMs: LASTS_MS,
      allows: {},
      ...{ hits: [name], fells: name },
      ...limitedDescriptors(stage.agents.get(name)!),
    };
  },

  "memory": (stage, prng) => {
    const server = prng.pick([...stage.servers.values()]);
    const group = memoryGroupOf(stage.folder);
    return {
      name: `server ${server.name} may have 48 MiB more memory`,
      lastsMs: LASTS_MS,
      allows: {},
      hits: [server.name],
      async apply() {
        const limitKib = server.held().memoryKib + SPARE_MEMORY_KIB;
        await mustEnd(["mkdir", "-p", group]);
        // Charged where it was first touched: all that comes is charged here.
        const spareBytes = Math.min(limitKib, SPARE_MEMORY_KIB) * 1024;
        await write(`${group}/memory.limit_in_bytes`, spareBytes);
        await write(`${group}/cgroup.procs`, server.pid);
      },
      async undo() {
        if (server.isRunning) {
          await write(`${MEMORY_GROUPS}/cgroup.procs`, server.pid);
        } else await server.start();
        await mustEnd(["rmdir", group]);
      },
    };
  },

  "log-blocked": (stage) => {
    const server = stage.topology.servers.at(-1)!;
    return {
      name: `nobody reads the log of server ${server}`,
      lastsMs: LASTS_MS,
      allows: {},
      hits: [server],
      async apply() {
        stage.logReader.signal("SIGSTOP");
        await stage.fillLogPipe();
      },
      // deno-lint-ignore require-await -- others have to wait.
      undo: async () => stage.logReader.signal("SIGCONT"),
    };
  },

  "clock-server-ahead": (stage) => {
    const { machines, obstacle } = stage.clocks;
    const server = machines.find((name) => stage.servers.has(name));
    if (server === undefined) return obstacle;
    return {
      name: `clock of server ${server} is 30 days ahead`,
      lastsMs: LASTS_MS,
      // Certificates of nodes have ended, for it: it takes nobody anew.
      allows: { mayBreak: overServer(server), backMs: 15_000 },
      hits: [server],
      apply: () => stage.clocks.set(server, 30 * DAY_SECONDS),
      undo: () => stage.clocks.set(server, 0),
    };
  },

  "clock-agent-behind": (stage) => {
    const { machines, obstacle } = stage.clocks;
    const agent = machines.find((name) => stage.agents.has(name));
    if (agent === undefined) return obstacle;
    return {
      name: `clock of agent ${agent} is 400 days behind`,
      lastsMs: LASTS_MS,
      allows: { mayBreak: overAgent(agent), backMs: 15_000 },
      hits: [agent],
      apply: () => stage.clocks.set(agent, -400 * DAY_SECONDS),
      undo: () => stage.clocks.set(agent, 0),
    };
  },
};

function limitedDescriptors(program: Program) {
  let before = "";
  const limit = (soft: string) =>
    mustEnd(["prlimit", `--pid=${program.pid}`, `--nofile=${soft}:`]);
  return {
    async apply() {
      before = await mustEnd([
        ...["prlimit", `--pid=${program.pid}`, "--nofile"],
        ...["--output=SOFT", "--noheadings"],
      ]);
      await limit(String(DESCRIPTORS_LEFT));
    },
    async undo() {
      await limit(before.trim());
    },
  };
}

async function write(path: string, value: number): Promise<void> {
  // The platform opens /sys only to programs that may do everything.
  await mustEnd(["sh", "-c", 'echo "$1" >"$0"', path, String(value)]);
}
