/**
 * `tunnel conn`: tunneled connections, and an end to some of them.
 *
 * @module
 */

import { AdminError } from "../../admin/ask/admin_client.ts";
import {
  type ActionAnswer,
  ADMIN_ACTIONS,
  ADMIN_PATHS,
} from "../../proto/admin/api.ts";
import {
  CONDUIT_SORTS,
  type ConduitInfo,
  type ConduitsAnswer,
} from "../../proto/admin/node_answer.ts";
import { rateText } from "../../platform/text/quantities.ts";
import {
  ADMIN_FLAGS,
  ANSWER_FLAGS,
  type AskedProgram,
} from "../flags/admin_flags.ts";
import { flag, inGroup } from "../flags/flag.ts";
import { type CommandContext, defineCommand } from "../program/command.ts";
import { failure } from "../program/exit_codes.ts";
import { ofOthers } from "../../admin/ask/text_table.ts";
import { readVerb } from "../program/verbs.ts";
import { type Answering, askAll, askedPrograms, printEach } from "./asked.ts";
import { conduitsText } from "../../admin/ask/answer_text.ts";
import { callerText, targetText } from "../../admin/view/conduits.ts";
import { conduitsPath } from "../../admin/ask/asked_conduits.ts";

const LIST = "tunnel conn list";

/** What a program answers at most. */
const CONDUITS_MAX = 10_000;

const FLAGS = {
  ...ADMIN_FLAGS,
  ...inGroup(LIST, {
    "node": flag.word("NAME", "Only those of this node."),
    "caller": flag.word("NAME", {
      help: "Only connections of this caller: a user or a node.",
    }),
    "target": flag.word("TEXT", {
      help: "Only connections with this text in their target, such as :5432.",
    }),
    "service": flag.word("NAME", "Only those of this service."),
    "sort": flag.choice(CONDUIT_SORTS, "rate", "The greatest of this first."),
    "limit": flag.count(100, 1, CONDUITS_MAX, "Most rows to show."),
  }),
  "yes": flag.boolean(false, {
    group: "tunnel conn kill",
    short: "y",
    help: "Do not ask on a terminal.",
  }),
} as const;

const VERBS = {
  list: {
    flags: [
      ...["node", "caller", "target", "service", "sort", "limit"],
      ...Object.keys(ANSWER_FLAGS),
    ],
  },
  kill: { operand: "ID…", flags: ["yes"] },
} as const;

/** See the module description. */
export const CONN_COMMAND = defineCommand({
  name: "conn",
  operands: "list | kill ID… [flags]",
  about: [
    "list shows who asked for each connection, its node, target, age, bytes, " +
    "rate, round trip, window, what waits in it, and why it does when it " +
    "does. Asks the server of this machine, or else its agent or proxy, " +
    "unless a flag names another one.",
    "kill resets connections: both ends see a reset, never an end. On a " +
    "terminal it asks before.",
  ],
  examples: [
    "tunnel conn list",
    "tunnel conn list --node edge-7 --sort queue --watch",
    "tunnel conn list --caller alice -o wide",
    "tunnel conn kill 7f3a9c0d12e4b586",
  ],
  rights: "network",
  flags: FLAGS,
  async run(reading, context) {
    const { values, given } = reading;
    const read = readVerb("conn", VERBS, reading);
    const programs = askedPrograms(values, given, context);
    if (read.verb === "kill") {
      const ids = [...new Set(read.operands)];
      return await killAll(programs, ids, values["yes"], context);
    }
    const path = conduitsPath(values);
    return await printEach(
      values,
      programs,
      context,
      (client) => client.get<ConduitsAnswer>(path),
      conduitsText,
    );
  },
});

/** Ends each; a failure with one does not stop the others. */
async function killAll(
  programs: readonly AskedProgram[],
  ids: readonly string[],
  isSure: boolean,
  context: CommandContext,
): Promise<void> {
  let failed = 0;
  for (const id of ids) {
    try {
      context.print(`${await killOne(programs, id, isSure, context)}\n`);
    } catch (error) {
      if (!(error instanceof AdminError) || ids.length === 1) throw error;
      failed++;
      context.printError(`tunnel conn: ${ofOthers(error.message)}\n`);
    }
  }
  if (failed === 0) return;
  throw failure(`Ended ${ids.length - failed} of ${ids.length}`, "TUN123");
}

/** By the program or worker that has it. @returns The result, one line. */
async function killOne(
  programs: readonly AskedProgram[],
  id: string,
  isSure: boolean,
  context: CommandContext,
): Promise<string> {
  const path = ADMIN_PATHS.conduit + encodeURIComponent(id);
  const [{ client, answer }] = await askAll(
    programs,
    context,
    (client) => client.get<ConduitInfo>(path),
  ) as [Answering<ConduitInfo>];
  const what = conduitText(answer);
  const { confirm } = context;
  const isMeant = isSure || confirm === undefined ||
    confirm(`End ${what}?`);
  if (!isMeant) return `Left ${what}`;
  await client.post<ActionAnswer>(`${path}/${ADMIN_ACTIONS.kill}`);
  return `Ended ${what}: both ends see a reset`;
}

/** Enough to know one again. */
function conduitText(conduit: ConduitInfo): string {
  const { id, node, service, toTargetRate, fromTargetRate } = conduit;
  const target = targetText(conduit);
  const where = node === undefined ? target : `${target} at ${node}`;
  const rate = rateText(toTargetRate + fromTargetRate);
  const of = service === undefined ? "" : `service ${service}, `;
  return ofOthers(
    `the connection ${id} of ${callerText(conduit)} to ${where} (${of}${rate})`,
  );
}
