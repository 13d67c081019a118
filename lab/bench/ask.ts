// deno-lint-ignore-file no-console -- a command that prints what it measures.
/**
 * What the admin API costs a server with very many nodes and connections: how
 * long answers take, how long the event loop is held up by them, how long people
 * wait for commands, and what a screen that follows all of it costs.
 *
 * Usage: `deno task lab bench-ask [--nodes N] [--conduits N]`. In one process, with
 * links that carry nothing: what is measured is the API alone.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { Tally } from "../../tests/support/watch/tally.ts";
import { LoopWatch } from "./loop_watch.ts";
import { grade, quantile } from "./bars.ts";
import { AdminRig } from "../../tests/support/rigs/admin_rig.ts";
import { memoryFolder } from "../../tests/support/memory/memory_folder.ts";
import { measureCommands } from "./ask_commands.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";

const BARS = { answerMs: 60, turnMs: 10, watchPercent: 2 } as const;

const ROUNDS = 20;

/** Before that the code is not compiled. */
const WARM_UP = 5;

/** How long a screen is followed. */
const WATCH_MS = 15_000;

if (import.meta.main) {
  const given = parseArgs(Deno.args, {
    string: ["nodes", "conduits"],
    default: { nodes: "5000", conduits: "10000" },
  });
  const folder = memoryFolder();
  const tally = new Tally();
  try {
    await measure(
      await crowd(folder, Number(given.nodes), Number(given.conduits)),
      folder,
      tally,
    );
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
  Deno.exit(tally.end());
}

async function crowd(
  folder: string,
  nodes: number,
  conduits: number,
): Promise<AdminRig> {
  const rig = await AdminRig.open(systemTimers, folder);
  for (let at = 0; at < nodes; at++) {
    // As `tunnel join` leaves it; a transaction for each would take minutes.
    const name = nameOf(at);
    Deno.writeTextFileSync(
      `${folder}/nodes/${name}.json`,
      JSON.stringify({
        name,
        state: "approved",
        publicKeySha256: "0".repeat(64),
        identifiers: "",
        joinedAt: "2026-01-02T03:04:05Z",
        tokenId: "t",
        joinedFrom: "10.0.0.7:4711",
        certificate: {
          serialNumber: "1",
          authority: "a",
          issuedAt: new Date(Date.now() - 3600_000).toISOString(),
          expiresAt: new Date(Date.now() + 86_400_000 + at).toISOString(),
        },
      }),
    );
  }
  // One in twenty is offline.
  const links = Array.from(
    { length: nodes },
    (_, at) => rig.link(nameOf(at)),
  ).filter((link, at) => {
    link.roundTripMs = 1 + at % 40;
    if (at % 20 !== 0) return true;
    rig.unlink(link, "the connection was reset");
    return false;
  });
  const fars = Array.from(
    { length: conduits },
    (_, at) =>
      rig.connect(at.toString(16).padStart(16, "0"), links[at % links.length]!),
  );
  const chunk = new Uint8Array(1024);
  setInterval(() => {
    // A tenth of them moves.
    for (let at = 0; at < fars.length; at += 10) fars[at]!.write(chunk);
  }, 500);
  return rig;
}

function nameOf(at: number): string {
  return `node-${`${at}`.padStart(5, "0")}`;
}

async function measure(
  rig: AdminRig,
  folder: string,
  tally: Tally,
): Promise<void> {
  const loads = Deno.loadavg()[0]!.toFixed(1);
  const { size } = rig.conduits;
  console.log(
    `${rig.registry.agents} agents, ${size} connections, load ${loads}`,
  );
  const first = performance.now();
  await (await rig.ask("/v1/nodes")).text();
  console.log(
    `     first question (reads all records): ${
      Math.round(performance.now() - first)
    } ms`,
  );
  for (
    const path of [
      "/v1/status",
      "/v1/nodes",
      `/v1/nodes/${nameOf(7)}`,
      "/v1/conduits?limit=100&sort=rate",
    ]
  ) await answers(rig, path, tally);
  await measureCommands(rig, folder, tally);
  await watched(rig, tally);
  rig.stop();
}

async function answers(
  rig: AdminRig,
  path: string,
  tally: Tally,
): Promise<void> {
  for (let round = 0; round < WARM_UP; round++) {
    await (await rig.ask(path)).text();
  }
  const loop = new LoopWatch();
  const fromMs = loop.take().cpuMs;
  const times: number[] = [];
  let bytes = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const startMs = performance.now();
    bytes = (await (await rig.ask(path)).text()).length;
    times.push(performance.now() - startMs);
    await sleep(20);
  }
  const { longestCpuMs, cpuMs } = loop.take();
  loop.stop();
  const wallMs = quantile(times, 0.5);
  console.log(
    `     ${path}: ${Math.round(bytes / 1024)} KiB, median ` +
      `${wallMs.toFixed(1)} ms by the clock`,
  );
  const ms = { unit: "ms" } as const;
  grade(tally, {
    ...{ name: `${path}, of the processor`, ...ms },
    ...{ seen: (cpuMs - fromMs) / ROUNDS, most: BARS.answerMs },
  });
  grade(tally, {
    ...{ name: "  longest turn", ...ms },
    ...{ seen: longestCpuMs, most: BARS.turnMs },
  });
}

async function watched(rig: AdminRig, tally: Tally): Promise<void> {
  const loop = new LoopWatch();
  const idleFromMs = loop.take().cpuMs;
  await sleep(WATCH_MS);
  const idle = loop.take();
  const gone = new AbortController();
  const path = "/v1/watch?lists=nodes,conduits,events";
  const response = await rig.ask(path, "GET", undefined, gone.signal);
  let bytes = 0;
  const reading = (async () => {
    for await (const piece of response.body!) bytes += piece.length;
  })();
  await sleep(3_000);
  const begun = loop.take();
  bytes = 0;
  await sleep(WATCH_MS);
  const report = loop.take();
  gone.abort();
  await reading.catch(() => {});
  loop.stop();
  // What runs here beside it is measured without it, in the same process.
  const without = (idle.cpuMs - idleFromMs) / WATCH_MS * 100;
  const cpu = (report.cpuMs - begun.cpuMs) / WATCH_MS * 100;
  console.log(
    `     a watcher reads ${Math.round(bytes / WATCH_MS)} KB/s and begins ` +
      `with a turn of ${begun.longestCpuMs.toFixed(1)} ms; the process takes ` +
      `${without.toFixed(1)} % without it, ${cpu.toFixed(1)} % with it`,
  );
  grade(tally, {
    name: "a watcher",
    ...{ seen: cpu - without, unit: "%", most: BARS.watchPercent },
  });
  grade(tally, {
    name: "  longest turn",
    ...{ seen: report.longestCpuMs, unit: "ms", most: BARS.turnMs },
  });
}
