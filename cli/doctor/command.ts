/**
 * `tunnel doctor`: walks a path hop by hop, and reports the first fault, its
 * cause and its remedy. Each subject takes the flags of its program, so that it
 * checks exactly what that program would use.
 *
 * @module
 */

import { parseHostPort } from "../flags/addresses.ts";
import { AGENT_FLAGS } from "../agent/flags.ts";
import { ANSWER_FLAGS, ASKED_SERVER_FLAGS } from "../flags/admin_flags.ts";
import { flag } from "../flags/flag.ts";
import { type FlagReading, readFlags } from "../flags/read_flags.ts";
import { hasUsableIdentity } from "../../agent/identity/agent_state.ts";
import { defaultStateDirectory } from "../flags/state_directory.ts";
import { UsageError } from "../flags/usage_error.ts";
import { printAnswer } from "../program/answer_output.ts";
import {
  type Command,
  type CommandContext,
  defineCommand,
  refuseOperands,
} from "../program/command.ts";
import type { ExitCode } from "../program/exit_codes.ts";
import { type CommandLine, idleFlag, isWritten } from "../program/verbs.ts";
import { SERVER_FLAGS } from "../server/flags.ts";
import { agentSubject, examineAgent } from "./agent.ts";
import { examineNode, examineTarget } from "./asked.ts";
import {
  type DoctorReport,
  exitCodeOf,
  reportOf,
  reportText,
} from "./report.ts";
import { serverHops } from "./server.ts";
import { walk } from "../../admin/doctor/walk/path_walk.ts";
import { mayBeDirectory } from "../../platform/files/kind_at.ts";

const ABOUT = "Walks the path hop by hop and says the first thing that is " +
  "wrong, why, and what mends it. It changes nothing, and no running program " +
  "notices it. Exits with 0 if nothing is wrong, with 1 if something is.";

const OUTPUT = {
  "output": ANSWER_FLAGS["output"],
  "json": ANSWER_FLAGS["json"],
} as const;

const ASKED = {
  "node": flag.word("NAME", {
    group: "The target",
    help: "tunnel doctor target: from this node, as tunnel dial --node.",
  }),
  "as": flag.word("NAME", {
    group: "The target",
    help: "tunnel doctor target: with the rights of this user, or of " +
      "node:NAME.",
  }),
  ...ASKED_SERVER_FLAGS,
  ...OUTPUT,
} as const;

type OutputValues = FlagReading<typeof OUTPUT>["values"];

/** Prints what is found with the flags of a program. */
function examined<Reading>(
  report: (reading: Reading, context: CommandContext) => Promise<DoctorReport>,
) {
  return (
    reading: Reading & FlagReading<typeof OUTPUT>,
    context: CommandContext,
  ): Promise<ExitCode> => {
    refuseOperands(reading.operands);
    return printed(reading.values, context, () => report(reading, context));
  };
}

const AGENT = defineCommand({
  name: "doctor agent",
  operands: "[flags of tunnel agent]",
  about: [
    ABOUT,
    "From the node's identity over DNS, TCP, proxy and TLS to the server's " +
    "hello, as the agent itself would connect, and no further: nothing is " +
    "linked.",
  ],
  examples: ["tunnel doctor agent", "tunnel doctor agent --server a.example"],
  rights: "network",
  flags: { ...AGENT_FLAGS, ...OUTPUT },
  run: examined(agentReport),
});

const SERVER = defineCommand({
  name: "doctor server",
  operands: "[flags of tunnel server]",
  about: [
    ABOUT,
    "State, ports, certificates, policy, limits and health of the server that " +
    "runs, or would run, with these flags.",
  ],
  examples: ["tunnel doctor server", "tunnel doctor server --config s.yaml"],
  rights: "network",
  flags: { ...SERVER_FLAGS, ...OUTPUT },
  run: examined(serverReport),
});

const WHOLE = defineCommand({
  name: "doctor",
  operands: "[server | agent | node NAME | target HOST:PORT] [flags]",
  about: [
    ABOUT,
    "Without a word it looks at what this machine is: a server, an agent, or " +
    "both. server and agent take the flags of tunnel server and tunnel agent " +
    "(tunnel doctor agent --help) and work whether the program runs or not. " +
    "node and target ask a running server.",
  ],
  examples: [
    "tunnel doctor",
    "tunnel doctor agent --server tunnel.example:8091",
    "tunnel doctor node edge-7",
    "tunnel doctor target 10.0.0.7:5432 --node edge-7 --as alice",
  ],
  rights: "network",
  flags: ASKED,
  run: async (reading, context) => {
    const [subject, operand, ...others] = reading.operands;
    const { values } = reading;
    refuseOperands(others);
    refuseIdle(subject, reading.origins);
    if (subject === undefined) {
      return await printed(values, context, () => examineMachine(context));
    }
    if (subject !== "node" && subject !== "target") {
      throw new UsageError(
        `Cannot examine "${subject}": wanted server, agent, node NAME or ` +
          "target HOST:PORT",
      );
    }
    if (operand === undefined) {
      throw new UsageError(
        subject === "node"
          ? "Cannot examine a node: tunnel doctor node NAME; `tunnel node " +
            "list` shows them"
          : "Cannot examine a target: tunnel doctor target HOST:PORT",
      );
    }
    if (subject === "target") parseHostPort("the target", operand);
    const steps = subject === "node"
      ? () => examineNode(operand, reading, context)
      : () => examineTarget(operand, reading, context);
    return await printed(
      values,
      context,
      async () => reportOf(`${subject} ${operand}`, await steps()),
    );
  },
});

const ABOUT_TARGET = ["node", "as"] as const;

/** @throws {UsageError} For a flag that is about another subject. */
function refuseIdle(
  subject: string | undefined,
  origins: CommandLine["origins"],
): void {
  const idle = (names: readonly string[]) =>
    names.find((name) => isWritten(name, origins));
  const command = `doctor ${subject ?? "of this machine"}`;
  const target = subject === "target" ? undefined : idle(ABOUT_TARGET);
  if (target !== undefined) throw idleFlag(target, command, "doctor target");
  if (subject !== undefined) return;
  const asked = idle(Object.keys(ASKED_SERVER_FLAGS));
  if (asked === undefined) return;
  throw idleFlag(
    asked,
    command,
    "doctor with a subject: server, agent, node or target",
  );
}

/** See the module description. */
export const DOCTOR_COMMAND: Command = {
  ...WHOLE,
  run(context) {
    const [subject, ...argv] = context.argv;
    if (subject === "agent") return AGENT.run({ ...context, argv });
    if (subject !== "server") return WHOLE.run(context);
    return runServer({ ...context, argv });
  },
};

/** A file that cannot be used is a finding; a flag that cannot is a mistake. */
async function runServer(context: CommandContext): Promise<ExitCode> {
  const [problem] = SERVER.flagProblems(context);
  if (problem === undefined) return await SERVER.run(context);
  try {
    const argv = withoutConfig(context.argv);
    const flags = { ...SERVER_FLAGS, ...OUTPUT };
    const reading = readFlags("doctor server", flags, { ...context, argv });
    const steps = await walk(serverHops(reading, context, problem.message));
    const report = reportOf("server", steps);
    return await printed(reading.values, context, () => report);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return await SERVER.run(context);
  }
}

function withoutConfig(argv: readonly string[]): readonly string[] {
  return argv.filter((word, at) =>
    !/^--?config(=|$)/.test(word) && !/^--?config$/.test(argv[at - 1] ?? "")
  );
}

/** Every program with its directory here. */
async function examineMachine(
  context: CommandContext,
): Promise<readonly DoctorReport[]> {
  const { environment } = context;
  // Of another user's directory the examination says so.
  const isServer = mayBeDirectory(defaultStateDirectory("server", environment));
  const agentRoot = defaultStateDirectory("agent", environment);
  const isAgent = hasUsableIdentity(agentRoot) || mayBeDirectory(agentRoot);
  if (!isServer && !isAgent) {
    throw new UsageError(
      "Cannot see what this machine is: there is neither a server's nor an " +
        "agent's state directory; say tunnel doctor server or tunnel doctor " +
        "agent, with the flags of the program",
    );
  }
  const none = { ...context, argv: [] };
  const reports: DoctorReport[] = [];
  if (isServer) {
    const reading = readFlags("doctor server", SERVER_FLAGS, none);
    reports.push(await serverReport(reading, context));
  }
  if (isAgent) {
    const reading = readFlags("doctor agent", AGENT_FLAGS, none);
    reports.push(await agentReport(reading, context));
  }
  return reports;
}

async function serverReport(
  reading: FlagReading<typeof SERVER_FLAGS>,
  context: CommandContext,
): Promise<DoctorReport> {
  return reportOf("server", await walk(serverHops(reading, context)));
}

async function agentReport(
  reading: FlagReading<typeof AGENT_FLAGS>,
  context: CommandContext,
): Promise<DoctorReport> {
  const steps = await examineAgent(reading, context);
  return reportOf(agentSubject(reading, context), steps);
}

type Reports = DoctorReport | readonly DoctorReport[];

function printed(
  values: OutputValues,
  context: CommandContext,
  examine: () => Reports | Promise<Reports>,
): Promise<ExitCode> {
  return printAnswer({
    ask: async () => [await examine()].flat(),
    form: values.output,
    table: (reports, isWide) =>
      reports.map((report) => reportText(report, isWide)).join("\n"),
    data: (reports) => reports.length === 1 ? reports[0] : reports,
    exitCode: exitCodeOf,
  }, context);
}
