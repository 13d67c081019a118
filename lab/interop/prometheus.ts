/**
 * Dashboards, rules and alerts before a real Prometheus that scrapes a real
 * server, agents and a proxy: each panel shows something, each rule is computed,
 * and no expression names a metric that there is not. The dashboards are held
 * against Grafana's own schema.
 *
 * Usage: `deno task lab prometheus`. Ends with `N passed, N failed, N skipped`.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { type Board, BOARDS } from "../../scripts/dashboard_panels.ts";
import { dashboards } from "../../scripts/dashboards.ts";
import { debianCommand } from "../../tests/support/program/debian.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { eventually } from "./kube_case.ts";
import { PrometheusRig } from "./prometheus_rig.ts";
import { counted } from "./case_runner.ts";
import { mustEnd } from "../../tests/support/program/run.ts";

/** Whose dashboards they are; its types are its schema. */
const SCHEMA = "npm:@grafana/schema@13.2.3";

/** What it is to do with our files. */
const PROMTOOL: readonly (readonly [sentence: string, ...string[]])[] = [
  [
    "promtool finds no fault in the rules",
    ...["check", "rules", "rules.yaml", "alerts.yaml"],
  ],
  ["promtool reads the configuration", "check", "config", "prometheus.yaml"],
  [
    "each alert fires for what it is there for",
    ...["test", "rules", "rules_test.yaml"],
  ],
];

const DEPLOY = new URL("../../deploy/prometheus/", import.meta.url).pathname;

/** As Grafana puts in for what stands above the panels, all of it chosen. */
function expanded(expr: string): string {
  return expr.replaceAll("$__rate_interval", "10s").replaceAll(
    "$instance",
    ".*",
  );
}

async function checkPanels(board: Board, rig: PrometheusRig): Promise<void> {
  const empty: string[] = [];
  for (const { title, queries } of board.panels) {
    for (const [, expr] of queries) {
      const series = await rig.query(expanded(expr));
      const hasNumber = series.some(({ value: [, text] }) => text !== "NaN");
      if (!hasNumber) empty.push(`${title}: ${expr}`);
    }
  }
  assertEquals(empty, [], "panels that show nothing");
  for (const [name, query] of board.variables) {
    const [, selector, label] = /^label_values\((.*), (\w+)\)$/.exec(query)!;
    const series = await rig.query(selector!);
    assert(series.some(({ metric }) => label! in metric), name);
  }
}

/** What is of servers with etcd, of `--workers`, or of faults alone. */
const NOT_HERE =
  /^tunnel_(?:server_state_reachable|worker_restarts_total|\w+_audit_dropped_lines_total|\w+_internal_errors_total)$/;

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly name: string;
      readonly query: string;
      readonly health: string;
      readonly lastError?: string;
      readonly state?: string;
    }[];
  }[];
}

async function checkRules(rig: PrometheusRig): Promise<void> {
  const known = new Set(await rig.get<string[]>("label/__name__/values"));
  const { groups } = await rig.get<Rules>("rules");
  const rules = groups.flatMap(({ rules }) => rules);
  assert(rules.length > 25);
  for (const { name, query, health, lastError, state } of rules) {
    assertEquals(health, "ok", `${name}: ${lastError}`);
    // All is well here, but for a dial in three that fails, and for a machine
    // that may have much to do.
    if (name !== "TunnelDialsFail" && name !== "TunnelLoopLags") {
      assert(state === undefined || state === "inactive", `${name}: ${state}`);
    }
    const names = query.replaceAll(/"[^"]*"/g, "")
      .match(/\b(?:tunnel|konnectivity|process)_[a-z0-9_:]+/g) ?? [];
    const unknown = names.filter((each) =>
      !known.has(each) && !NOT_HERE.test(each)
    );
    assertEquals(unknown, [], name);
    if (state !== undefined) continue;
    assert((await rig.query(name)).length > 0, `${name} has no series`);
  }
}

async function checkOffline(rig: PrometheusRig): Promise<void> {
  await rig.loseNode();
  await eventually("the alert is pending", async () => {
    const { groups } = await rig.get<Rules>("rules");
    return groups.flatMap(({ rules }) => rules)
      .some(({ name, state }) =>
        name === "TunnelNodeOffline" && state === "pending"
      );
  });
}

async function checkSchema(workspace: Workspace): Promise<void> {
  const folder = workspace.path("schema");
  await Deno.mkdir(folder);
  const files: string[] = [];
  for (const [path, json] of dashboards()) {
    const file = path.replace(/.*\//, "").replace(".json", ".ts");
    files.push(file);
    // The one enumeration in it, of which JSON has the value.
    const text = json.replaceAll(
      '"mode": "absolute"',
      '"mode": "absolute" as ThresholdsMode',
    );
    await Deno.writeTextFile(
      `${folder}/${file}`,
      `import type { Dashboard, ThresholdsMode } from "${SCHEMA}";\n` +
        `export const DASHBOARD: Dashboard = ${text};\n`,
    );
  }
  await mustEnd(
    [Deno.execPath(), "check", "--quiet", "--no-lock", "--no-config", ...files],
    { cwd: folder },
  );
}

async function main(): Promise<number> {
  return await counted("Prometheus starts", async (tally, workspace) => {
    const promtool = await debianCommand("promtool");
    const file = (name: string) => `${DEPLOY}${name}`;
    for (const [sentence, ...words] of PROMTOOL) {
      const files = words.map((word) => word.replace(/.*\.yaml$/, file));
      await tally.run(sentence, async () => {
        await mustEnd([...promtool, ...files]);
      });
    }
    await tally.run(
      "dashboards are as Grafana's schema has them",
      () => checkSchema(workspace),
    );
    await using rig = await PrometheusRig.start(workspace);
    await rig.traffic();
    for (const board of BOARDS) {
      await tally.run(
        `each panel of "${board.title}" shows something`,
        () => checkPanels(board, rig),
      );
    }
    await tally.run(
      "each rule is computed from metrics that there are",
      () => checkRules(rig),
    );
    await tally.run("a node that is lost is noticed", () => checkOffline(rig));
  });
}

if (import.meta.main) Deno.exit(await main());
