// deno-lint-ignore-file no-console -- a command that prints its results.
/**
 * Where the time of our server, agent or proxy goes under one of the bench's
 * loads.
 *
 * Usage: `deno task lab profile server|agent|proxy METRIC [--quick] [--rows N]
 * [--save FILE.cpuprofile]`
 *
 * Only the main thread is seen: V8's compilers, its collectors and the
 * resolver's threads are not. The process has warmed up with the same load.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import {
  Child,
  endChildrenOnSignals,
} from "../../tests/support/program/child.ts";
import { findPeer } from "../peers/peers.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { Contender } from "./contender.ts";
import type { Sample } from "./generator.ts";
import { Inspector } from "./inspector.ts";
import { FULL, type Metric, QUICK, type Scale } from "./metric.ts";
import { METRICS } from "./metrics.ts";
import { summarize } from "./profile_summary.ts";
import { loopback } from "./tunnels/site.ts";

const ROOT = new URL("../../", import.meta.url);

const ROLES = ["server", "agent", "proxy"] as const;

interface Plan {
  readonly role: typeof ROLES[number];
  readonly metric: Metric;
  readonly scale: Scale;
  readonly rows: number;
  readonly saveFile: string | undefined;
}

/** What the command line asks for, or what is wrong with it. */
function readPlan(args: readonly string[]): Plan | string {
  const flags = parseArgs([...args], {
    boolean: ["quick"],
    string: ["rows", "save"],
  });
  const [word, name, ...others] = flags._.map(String);
  const role = ROLES.find((known) => known === word);
  if (role === undefined || others.length > 0) {
    return `usage: profile ${ROLES.join("|")} METRIC [--quick] [--rows N] ` +
      "[--save FILE]";
  }
  const metric = METRICS[name ?? ""];
  if (metric === undefined || metric.isFresh) {
    const names = Object.keys(METRICS).filter((key) => !METRICS[key]!.isFresh);
    return `cannot profile '${name ?? ""}': ${names.join(" ")}`;
  }
  const rows = Number(flags.rows ?? 25);
  if (!Number.isInteger(rows) || rows < 1) return "--rows wants 1 or more";
  const scale = flags.quick ? QUICK : FULL;
  const saveFile = flags.save === undefined ? undefined : String(flags.save);
  return { role, metric, scale, rows, saveFile };
}

/**
 * Writes a program that starts ours, the one named `role` with its inspector
 * open, and has the bench start that one.
 */
async function makeInspectable(
  role: Plan["role"],
  port: number,
  workspace: Workspace,
): Promise<void> {
  // From source: the profile then names our files, and the launcher hands on no
  // `--inspect`.
  Deno.env.set("TUNNEL_PROGRAM", "source");
  const [program, ...words] = ourCommand();
  const quoted = words.map((word) => `'${word}'`);
  const inspected = quoted.with(0, `${quoted[0]} --inspect=127.0.0.1:${port}`);
  const file = workspace.path("tunnel.sh");
  await Deno.writeTextFile(
    file,
    `#!/bin/sh
case "$1" in
${role}) exec '${program}' ${inspected.join(" ")} "$@" ;;
*) exec '${program}' ${quoted.join(" ")} "$@" ;;
esac
`,
    { mode: 0o755 },
  );
  Deno.env.set("TUNNEL_PROGRAM", file);
}

/** What the load did, to show times per one of it. */
function workOf(sample: Sample) {
  const { count, bytes } = sample;
  if (count !== undefined) return { count, unit: "request or connection" };
  if (bytes === undefined) return undefined;
  return { count: bytes / 2 ** 16, unit: "64 KiB" };
}

async function main(): Promise<number> {
  const plan = readPlan(Deno.args);
  if (typeof plan === "string") {
    console.error(plan);
    return 2;
  }
  const workspace = await Workspace.make();
  endChildrenOnSignals(() => workspace.remove());
  const port = freePort();
  await makeInspectable(plan.role, port, workspace);
  const targetAddress = `127.0.0.1:${freePort()}`;
  const target = new Child({
    name: "target",
    command: [await findPeer("loadgen"), "target", targetAddress],
    logFile: workspace.path("target.log"),
  });
  const contender = new Contender(
    "ours",
    loopback(workspace, targetAddress),
  );
  await contender.measure(plan.metric, QUICK);
  const inspector = await Inspector.open(port);
  const { profile, value } = await inspector.profile(() =>
    contender.measure(plan.metric, plan.scale)
  );
  inspector.close();
  await plan.metric.close?.();
  await Promise.all([contender.stop(), target.stop()]);
  await workspace.remove();
  if (plan.saveFile !== undefined) {
    await Deno.writeTextFile(plan.saveFile, JSON.stringify(profile));
  }
  const work = workOf(value);
  console.log(`${plan.role}, ${plan.metric.title}\n${JSON.stringify(value)}`);
  console.log(summarize(profile, {
    root: ROOT.href,
    rows: plan.rows,
    ...(work === undefined ? {} : { work }),
  }));
  return 0;
}

if (import.meta.main) Deno.exit(await main());
