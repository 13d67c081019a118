// deno-lint-ignore-file no-console -- a command that prints a table.
/**
 * What attacks cost a server, and what its neighbours feel of them.
 *
 * Usage: `deno task lab attacks [NAME…] [--rounds N] [--json FILE] [--no-write]`;
 * without names all of them, half an hour with three rounds, and then the table
 * of `docs/reference/attacks.md` is written anew (`attack_report.ts`). `--list` names them.
 *
 * A server, an agent, a neighbour and the attacker are processes of their own;
 * the attacker is `nice`, for it stands in for another machine. Each round
 * measures the neighbour without and with the attack, one right behind the
 * other; the ratio is formed in the round, and the median over rounds counts.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { usageOf } from "../support/program/processes.ts";
import {
  endChildrenOnSignals,
  killAllChildren,
} from "../support/program/child.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { ATTACKER } from "./attacker.ts";
import { pause } from "./hostile_peer.ts";
import {
  LIVE_ATTACKS,
  type LiveAttack,
  type Report,
  type Site,
} from "./live_attacks.ts";
import {
  type Row,
  tableHead,
  tableLine,
  writeReport,
} from "./attack_report.ts";
import type { Latency } from "./neighbour.ts";

class SpokenChild {
  readonly #process: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reader: ReadableStreamDefaultReader<string>;
  #text = "";

  /** @param niceness Of its place on the processors; 19 is last. */
  constructor(script: string, args: readonly string[], niceness = 0) {
    const path = new URL(script, import.meta.url).pathname;
    const config = new URL("../../deno.json", import.meta.url).pathname;
    this.#process = new Deno.Command("nice", {
      args: [
        ...["-n", String(niceness), Deno.execPath(), "run", "--quiet"],
        ...["--allow-net", "--allow-read", "--allow-write", "--allow-env"],
        ...["--no-prompt", `--config=${config}`, path],
        ...args,
      ],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    this.#writer = this.#process.stdin.getWriter();
    this.#reader = this.#process.stdout
      .pipeThrough(new TextDecoderStream()).getReader();
  }

  get pid(): number {
    return this.#process.pid;
  }

  async say(line: string): Promise<void> {
    await this.#writer.write(new TextEncoder().encode(`${line}\n`));
  }

  /** @throws {Error} When it ends without another line. */
  async line(): Promise<string> {
    for (;;) {
      const end = this.#text.indexOf("\n");
      if (end !== -1) {
        const line = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 1);
        return line;
      }
      const { value, done } = await this.#reader.read();
      if (done) throw new Error(`Child ${this.pid} ended without an answer`);
      this.#text += value;
    }
  }

  async ask(line: string): Promise<string> {
    await this.say(line);
    return await this.line();
  }

  async stop(): Promise<void> {
    try {
      this.#process.kill("SIGKILL");
    } catch {
      // It has ended by itself.
    }
    await this.#process.status;
    await this.#reader.cancel();
    await this.#writer.abort().catch(() => {});
  }
}

/** Counters that say that somebody overdid something. */
const TELLING: readonly string[] = [
  "peer_faults",
  "limits_reached",
  "refused_agents",
  "refused_callers",
  "budget_resets",
  "identity_",
].map((name) => `tunnel_server_${name}`);

/** By name with labels. */
async function readCounters(
  url: string,
): Promise<ReadonlyMap<string, number>> {
  const response = await fetch(url);
  const counters = new Map<string, number>();
  for (const line of (await response.text()).split("\n")) {
    if (!TELLING.some((name) => line.startsWith(name))) continue;
    const space = line.lastIndexOf(" ");
    counters.set(line.slice(0, space), Number(line.slice(space + 1)));
  }
  return counters;
}

/** Such as `peer_faults{code="…"} +3`. */
function changesOf(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): string[] {
  return [...after].flatMap(([name, value]) => {
    const change = value - (before.get(name) ?? 0);
    const short = name.replace(/^tunnel_server_/, "").replace("_total", "");
    return change === 0 ? [] : [`\`${short}\` +${change}`];
  });
}

/** How long the neighbour is measured without an attack, before each. */
const CALM_MS = 3_000;

/** What memory may come down in when an attack is over. */
const SETTLE_MS = 2_000;

/** Behind the server and the neighbour, who would not share a machine with it. */
const ATTACKER_NICENESS = 19;

const RSS_LOOK_MS = 250;
const MIB = 1024 * 1024;

/** Processes that an attack is made with. */
interface Stage {
  readonly tunnel: TunnelProcesses;
  readonly stateDirectory: string;
  readonly neighbour: SpokenChild;
  readonly site: Omit<Site, "part">;
  readonly metricsUrl: string;
}

async function openStage(): Promise<Stage> {
  // Two authorities: the port also lets nodes join.
  const stateDirectory = await Deno.makeTempDir({ prefix: "tunnel-attacks-" });
  const tunnel = await TunnelProcesses.start({
    serverFlags: [`--state-dir=${stateDirectory}`],
  });
  const { socket, agentPort, healthPort, healthUrl } = tunnel.server;
  const neighbour = new SpokenChild("neighbour.ts", [socket]);
  return {
    tunnel,
    stateDirectory,
    neighbour,
    metricsUrl: `${healthUrl}/metrics`,
    site: {
      ...{ socket, agentPort, healthPort },
      ca: await Deno.readTextFile(tunnel.workspace.certificates.ca),
      floodPort: Number(await neighbour.line()),
    },
  };
}

async function closeStage(stage: Stage): Promise<void> {
  await stage.neighbour.stop();
  await stage.tunnel[Symbol.asyncDispose]();
  await Deno.remove(stage.stateDirectory, { recursive: true });
}

async function latency(neighbour: SpokenChild): Promise<Latency> {
  return JSON.parse(await neighbour.ask("now"));
}

/** Runs one attack with all its attackers; they are ready before it begins. */
async function attackOnce(stage: Stage, attack: LiveAttack) {
  const { server } = stage.tunnel;
  const attackers = Array.from(
    { length: attack.attackers ?? 1 },
    (_, part) =>
      new SpokenChild(
        ATTACKER,
        [attack.name, JSON.stringify({ ...stage.site, part })],
        ATTACKER_NICENESS,
      ),
  );
  try {
    for (const one of attackers) await one.line();
    await latency(stage.neighbour);
    await pause(CALM_MS);
    const calm = await latency(stage.neighbour);
    const before = await usageOf(server.child.pid);
    let peakBytes = before.rssBytes;
    const looker = setInterval(async () => {
      const { rssBytes } = await usageOf(server.child.pid);
      peakBytes = Math.max(peakBytes, rssBytes);
    }, RSS_LOOK_MS);
    for (const one of attackers) await one.say("go");
    await pause(attack.seconds * 1_000);
    const attacked = await latency(stage.neighbour);
    const after = await usageOf(server.child.pid);
    const reports: Report[] = [];
    for (const one of attackers) reports.push(JSON.parse(await one.line()));
    clearInterval(looker);
    return {
      calm,
      attacked,
      reports,
      rssBefore: before.rssBytes,
      rssPeak: peakBytes,
      cpuSeconds: after.cpuSeconds - before.cpuSeconds,
    };
  } finally {
    for (const one of attackers) await one.stop();
  }
}

async function measure(
  stage: Stage,
  attack: LiveAttack,
  rounds: number,
): Promise<Row> {
  const countersBefore = await readCounters(stage.metricsUrl);
  const runs = [];
  for (let round = 0; round < rounds; round++) {
    runs.push(await attackOnce(stage, attack));
  }
  await pause(SETTLE_MS);
  const rssAfter = (await usageOf(stage.tunnel.server.child.pid)).rssBytes;
  const counters = changesOf(
    countersBefore,
    await readCounters(stage.metricsUrl),
  );
  const reports = runs.flatMap((run) => run.reports);
  const endings: Record<string, number> = {};
  for (const report of reports) {
    for (const [what, count] of Object.entries(report.endings)) {
      endings[what] = (endings[what] ?? 0) + count;
    }
  }
  const byRatio = runs.map((run) => ({
    run,
    ratio: run.attacked.p99Ms / run.calm.p99Ms,
  })).sort((one, other) => one.ratio - other.ratio);
  const { run } = byRatio[Math.floor(byRatio.length / 2)]!;
  const peaks = runs.map((one) =>
    one.reports.reduce((sum, { peak }) => sum + (peak ?? 0), 0)
  );
  return {
    name: attack.name,
    known: attack.known,
    wanted: attack.wanted,
    endings,
    reason: reports.find(({ reason }) => reason)?.reason ?? "",
    connections: reports.reduce((sum, one) => sum + one.connections, 0),
    peak: Math.max(...peaks) || undefined,
    closedMs: median(reports.flatMap(({ closedMs }) => closedMs)),
    rssMib: [
      Math.round(runs[0]!.rssBefore / MIB),
      Math.round(Math.max(...runs.map(({ rssPeak }) => rssPeak)) / MIB),
      Math.round(rssAfter / MIB),
    ],
    cpuSeconds: median(runs.map(({ cpuSeconds }) => cpuSeconds))!,
    attackSeconds: attack.seconds,
    calm: run.calm,
    attacked: run.attacked,
    ratios: byRatio.map(({ ratio }) => Math.round(ratio * 100) / 100),
    counters,
  };
}

function median(values: readonly number[]): number | undefined {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}

if (import.meta.main) {
  const args = parseArgs(Deno.args, {
    string: ["rounds", "json"],
    boolean: ["list", "write"],
    negatable: ["write"],
    default: { write: true },
  });
  const names = args._.map(String);
  if (args.list) {
    for (const { name, known } of LIVE_ATTACKS) {
      console.log(`${name}: ${known}`);
    }
    Deno.exit();
  }
  const chosen = LIVE_ATTACKS.filter(({ name }) =>
    names.length === 0 || names.includes(name)
  );
  if (chosen.length === 0) {
    console.error(`no such attack: ${names.join(" ")}; see --list`);
    Deno.exit(2);
  }
  endChildrenOnSignals(() => Promise.resolve());
  const rounds = Number(args.rounds ?? 3);
  const failed: string[] = [];
  const rows: Row[] = [];
  let stage = await openStage();
  try {
    console.log(tableHead());
    for (const attack of chosen) {
      try {
        const row = await measure(stage, attack, rounds);
        rows.push(row);
        console.log(tableLine(row));
      } catch (error) {
        // One that cannot be measured must not cost the others.
        failed.push(attack.name);
        console.error(`${attack.name}: ${error}`);
        await closeStage(stage).catch(() => {});
        stage = await openStage();
      }
    }
  } finally {
    await closeStage(stage);
    await killAllChildren();
  }
  if (args.json !== undefined) {
    await Deno.writeTextFile(String(args.json), JSON.stringify(rows, null, 2));
  }
  // A table with holes says nothing of what is not in it.
  if (failed.length > 0) console.error(`not measured: ${failed.join(", ")}`);
  else if (names.length === 0 && args.write) await writeReport(rows, rounds);
  Deno.exit(failed.length > 0 ? 1 : 0);
}
