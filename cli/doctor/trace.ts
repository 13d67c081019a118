/**
 * `tunnel trace`: where the time of a dial goes, hop by hop, from this command
 * over the server to the target.
 *
 * @module
 */

import type { AdminClient } from "../../admin/ask/admin_client.ts";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { PathStep, TraceQuestion } from "../../proto/admin/path_check.ts";
import {
  ANSWER_FLAGS,
  ASKED_SERVER_FLAGS,
  askedProgram,
} from "../flags/admin_flags.ts";
import { parseHostPort } from "../flags/addresses.ts";
import { flag } from "../flags/flag.ts";
import { UsageError } from "../flags/usage_error.ts";
import { askedClient, printAnswer } from "../program/answer_output.ts";
import { defineCommand } from "../program/command.ts";
import { ExitCode } from "../program/exit_codes.ts";
import { fittedTable } from "../../admin/ask/text_table.ts";
import { traced } from "./asked.ts";
import { reportOf, verdictText } from "./report.ts";

const FLAGS = {
  "as": flag.word("NAME", {
    group: "The target",
    help: "With the rights of this user, or of node:NAME.",
  }),
  ...ASKED_SERVER_FLAGS,
  "output": ANSWER_FLAGS["output"],
  "json": ANSWER_FLAGS["json"],
} as const;

/** See the module description. */
export const TRACE_COMMAND = defineCommand({
  name: "trace",
  operands: "[NODE] HOST:PORT [flags]",
  about: [
    "Asks the server for a dial that carries nothing, and shows what each hop " +
    "says and how long it takes: the server, the choice of a node, the policy, " +
    "the agent's link, the target. Exits with 1 if a hop fails.",
  ],
  examples: [
    "tunnel trace edge-7 10.0.0.7:5432",
    "tunnel trace db.internal:5432 --as alice",
  ],
  rights: "network",
  flags: FLAGS,
  async run({ values, operands, given }, context) {
    const target = operands.at(-1);
    const node = operands.length === 2 ? operands[0] : undefined;
    if (target === undefined || operands.length > 2) {
      throw new UsageError(
        "Cannot trace: wanted tunnel trace [NODE] HOST:PORT",
      );
    }
    parseHostPort("the target", target);
    const asked = askedProgram(values, given, context);
    using client = askedClient(asked, context);
    const question = { target, node, as: values["as"] };
    return await printAnswer({
      ask: () => trace(client, question),
      form: values.output,
      table: (steps) => traceText(steps),
      data: (steps) => ({ steps }),
      exitCode: (steps) =>
        steps.some(({ outcome }) => outcome === "failed")
          ? ExitCode.FAILURE
          : ExitCode.OK,
    }, context);
  },
});

async function trace(
  client: AdminClient,
  question: TraceQuestion,
): Promise<readonly PathStep[]> {
  const beganMs = performance.now();
  await client.get(`${ADMIN_PATHS.conduits}?limit=1`);
  const tookMs = Math.round((performance.now() - beganMs) * 10) / 10;
  const steps = await traced(client, question);
  const server: PathStep = {
    hop: "server",
    outcome: "ok",
    message: `${client.where} answers`,
    tookMs,
  };
  return [server, ...steps];
}

const BAR_COLUMNS = 24;

/** A table with bars, each as long as its part of the whole. */
export function traceText(steps: readonly PathStep[]): string {
  const whole = steps.reduce((sum, { tookMs = 0 }) => sum + tookMs, 0);
  let before = 0;
  const rows = steps.map(({ hop, outcome, message, tookMs }) => {
    const bar = tookMs === undefined ? "" : barOf(before, tookMs, whole);
    before += tookMs ?? 0;
    return [
      hop,
      tookMs === undefined ? "-" : `${tookMs.toFixed(1)} ms`,
      bar,
      outcome === "failed" ? `FAILED: ${message}` : message,
    ];
  });
  const columns = [
    { heading: "HOP" },
    { heading: "TIME", side: "right" as const },
    { heading: "" },
    { heading: "WHAT" },
  ];
  const table = fittedTable(columns, rows).map((line) => `${line}\n`).join("");
  const { fault } = reportOf("", steps);
  return table +
    (fault === undefined
      ? `${whole.toFixed(1)} ms in all\n`
      : verdictText(fault));
}

function barOf(before: number, took: number, whole: number): string {
  if (whole <= 0) return "";
  const scale = BAR_COLUMNS / whole;
  const from = Math.floor(before * scale);
  const width = Math.max(1, Math.round(took * scale));
  return " ".repeat(Math.min(from, BAR_COLUMNS - 1)) +
    "█".repeat(Math.min(width, BAR_COLUMNS - Math.min(from, BAR_COLUMNS - 1)));
}
