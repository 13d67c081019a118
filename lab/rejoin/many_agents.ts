// deno-lint-ignore-file no-console -- a program that prints what it counts.
/**
 * Many joined agents in one process, and how many of them are linked.
 *
 * Usage: `many_agents.ts PORT COUNT TOKEN FOLDER`. Prints a line of JSON
 * whenever all of them are linked, and when none is.
 *
 * @module
 */

import { agentRoutes } from "../../admin/agent/agent_routes.ts";
import { startJoinedAgent } from "../../agent/joined_agent.ts";
import type { Log } from "../../platform/log/log.ts";

const LOOPBACK = { hostname: "127.0.0.1", port: 0 } as const;
const LINKS = 2;

/** What is printed. */
export interface AgentsLine {
  readonly event: "all" | "every-link" | "none";
  readonly atMs: number;
  /** Attempts that failed since the line before, with their time and reason. */
  readonly failures: readonly (readonly [atMs: number, reason: string])[];
}

const [port, count, token, folder] = Deno.args as [
  string,
  string,
  string,
  string,
];
const agents = Number(count);
/** Links of each agent. */
const links = new Map<string, number>();
let linked = 0;
let every = 0;
let failures: [number, string][] = [];

function print(event: AgentsLine["event"]): void {
  console.log(JSON.stringify({ event, atMs: Date.now(), failures }));
  failures = [];
}

function change(name: string, by: number): void {
  const before = links.get(name) ?? 0;
  const after = before + by;
  links.set(name, after);
  every += by;
  if (before === 0 && after === 1 && ++linked === agents) print("all");
  if (by > 0 && every === agents * LINKS) print("every-link");
  if (after === 0 && --linked === 0) print("none");
}

function logOf(name: string): Log {
  const event = (message: string) => {
    if (message === "linked to server") change(name, 1);
    else if (message.startsWith("link lost")) change(name, -1);
    else if (message.includes("trying again")) {
      failures.push([Date.now(), message]);
    }
  };
  const nothing = () => {};
  return {
    error: (message) => console.error(message),
    warn: (message) => console.error(message),
    info: nothing,
    event,
    wantsDetails: false,
    detail: nothing,
    packet: nothing,
    wantsPackets: false,
  };
}

for (let index = 0; index < agents; index++) {
  const name = `n${index}`;
  const running = startJoinedAgent({
    agentId: "",
    identity: { stateDirectory: `${folder}/${name}`, token, node: name },
    server: {
      addresses: [{ host: "127.0.0.1", port: Number(port) }],
      caFile: "",
      alpnProtocols: [],
      links: LINKS,
      keepaliveMs: 10_000,
    },
    sync: { intervalCapMs: 10_000, forever: false },
    dials: { timeoutMs: 5_000, allowUnix: [], hasBenchTarget: true },
    drainTimeoutMs: 0,
    health: LOOPBACK,
    admin: LOOPBACK,
    messageBytesMax: 16 * 1024 * 1024,
  }, { log: logOf(name), proxy: {}, show: agentRoutes });
  await running;
}
