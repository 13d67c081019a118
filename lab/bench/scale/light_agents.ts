// deno-lint-ignore-file no-console -- a program that prints what it counts.
/**
 * Very many agents in one process, with few bytes each: the links of an agent,
 * as the product keeps and makes them, and nothing else of it. Every dial is
 * refused, which is an answer.
 *
 * Usage: `light_agents.ts CA CERT KEY FIRST COUNT LINKS HOST:PORT…`. Prints a line
 * of JSON when something has changed, twenty times a second at most.
 *
 * @module
 */

import { AgentLinks } from "../../../agent/links/agent_links.ts";
import { Connector } from "../../../agent/links/connector.ts";
import { connectTls } from "../../../net/dial/server_connect.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { SILENT_OBSERVER } from "../../../proto/link/link.ts";
import { DialError } from "../../../proto/peer/dial_error.ts";
import { hostOf, portOf } from "../../../proto/peer/host_port.ts";
import { NO_IDENTIFIERS } from "../../../proto/peer/identifiers.ts";
import { ReceiveBudget } from "../../../proto/streams/receive_budget.ts";

/** What is printed. */
export interface CrowdLine {
  readonly atMs: number;
  /** Agents with a link to some server. */
  readonly linked: number;
  /** Links of all agents. */
  readonly links: number;
  /** Attempts that failed so far. */
  readonly failures: number;
  /** Why the last one did. */
  readonly reason: string;
}

const PRINT_MS = 50;

/** What an agent answers to each dial. */
export const REFUSAL = "nothing is behind a light agent";

const [ca = "", cert = "", key = "", ...rest] = Deno.args;
const [first, count, linksPerServer] = rest.slice(0, 3).map(Number);
const servers = rest.slice(3);
const material = {
  ca: Deno.readTextFileSync(ca),
  cert: Deno.readTextFileSync(cert),
  key: Deno.readTextFileSync(key),
};
/**
 * Attempts under way at a time: real agents have a machine each, and these share
 * one, where a handshake of one holds up those of all others.
 */
const ATTEMPTS_MAX = 64;

let attempts = 0;
const turns: (() => void)[] = [];

/** Runs `attempt` when fewer than {@linkcode ATTEMPTS_MAX} are under way. */
async function inTurn<Result>(attempt: () => Promise<Result>): Promise<Result> {
  if (attempts >= ATTEMPTS_MAX) {
    await new Promise<void>((resolve) => turns.push(resolve));
  } else attempts++;
  try {
    return await attempt();
  } finally {
    const next = turns.shift();
    if (next === undefined) attempts--;
    else next();
  }
}

const receiveBudget = new ReceiveBudget();

let linked = 0;
let links = 0;
let failures = 0;
let reason = "";
let printing: ReturnType<typeof setTimeout> | undefined;

function changed(): void {
  printing ??= setTimeout(() => {
    printing = undefined;
    const line: CrowdLine = {
      atMs: Date.now(),
      ...{ linked, links, failures, reason },
    };
    console.log(JSON.stringify(line));
  }, PRINT_MS);
}

function startAgent(at: number): void {
  const connector = (server: string) =>
    new Connector({
      agentId: `agent-${at}`,
      instanceId: crypto.randomUUID(),
      identifiers: { ...NO_IDENTIFIERS, host: [`node-${at}`] },
      alpnProtocols: [],
      carriers: ["streams"],
      authority: "tunnel",
      keepaliveMs: 4_000,
      messageBytesMax: 1 << 20,
      receiveBudget,
      timers: systemTimers,
      observer: SILENT_OBSERVER,
      onDial: (_target, answer) => {
        answer.failed(new DialError("endpoint", REFUSAL));
        return { cancel() {} };
      },
      openStream: async (alpn, use) =>
        await inTurn(() =>
          connectTls({
            host: hostOf(server),
            port: portOf(server),
            serverName: "localhost",
            credentials: material,
            alpn,
            proxyEnv: {},
            timeoutMs: 10_000,
          }).then(use)
        ),
      fellBack() {},
    });
  let own = 0;
  const count = (change: 1 | -1) => {
    links += change;
    own += change;
    if (change === 1 && own === 1) linked++;
    if (own === 0) linked--;
    changed();
  };
  new AgentLinks({
    addresses: servers.map((server) => {
      const one = connector(server);
      return { name: server, connect: (events) => one.connect(events) };
    }),
    timers: systemTimers,
    random: Math.random,
    linksPerServer: linksPerServer!,
    intervalCapMs: 10_000,
    serversWanted: () => servers.length,
    forever: false,
    observer: {
      linked: () => count(1),
      lost: () => count(-1),
      failed(why) {
        failures++;
        reason = why;
        changed();
      },
      counted() {},
    },
  }).start();
}

for (let at = 0; at < count!; at++) startAgent(first! + at);
