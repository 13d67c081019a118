/**
 * `tunnel node`: nodes, as a running server sees them, and as its state keeps
 * them.
 *
 * @module
 */

import { AdminError } from "../admin/ask/admin_client.ts";
import { ADMIN_PATHS } from "../proto/admin/api.ts";
import type { NodeDetail, NodesAnswer } from "../proto/admin/node_answer.ts";
import {
  ANSWER_FLAGS,
  ASKED_SERVER_FLAGS,
  askedProgram,
  withWorkers,
} from "./flags/admin_flags.ts";
import { flag, type FlagValues, inGroup } from "./flags/flag.ts";
import { type CommandContext, defineCommand } from "./program/command.ts";
import type { ExitCode } from "./program/exit_codes.ts";
import { isNobodyThere, printEach } from "./ask/asked.ts";
import { nodesText, nodeText } from "../admin/ask/answer_text.ts";
import { grantsFlag, NO_GRANTS } from "./flags/join_flags.ts";
import { STATE_COMMAND_FLAGS } from "./flags/state_flags.ts";
import { ofOthers } from "../admin/ask/text_table.ts";
import { refuseFlags } from "./flags/usage_error.ts";
import { isWritten, readVerb } from "./program/verbs.ts";

/** The words of `?state=`. */
const NODE_STATES = ["online", "offline", "pending", "revoked"] as const;

type AdminValues =
  & FlagValues<typeof ASKED_SERVER_FLAGS>
  & FlagValues<typeof ANSWER_FLAGS>;

/**
 * @returns Or why no server answers, when none runs and none was named. All
 *   other failures are errors, because a server knows more than its state.
 */
async function listNodes(
  values: AdminValues & { readonly only: string },
  given: ReadonlySet<string>,
  context: CommandContext,
): Promise<{ readonly code: ExitCode } | { readonly unanswered: AdminError }> {
  const asked = withWorkers(askedProgram(values, given, context));
  const query = values.only === "" ? "" : `?state=${values.only}`;
  const path = ADMIN_PATHS.nodes + query;
  try {
    const code = await printEach(
      values,
      asked,
      context,
      (client) => client.get<NodesAnswer>(path),
      (page, answer, isWide) =>
        nodesText(page, answer, { isWide, nowMs: nowMs(answer) }),
    );
    return { code };
  } catch (error) {
    const isAway = error instanceof AdminError && isNobodyThere(error);
    if (!isAway || given.has("server")) throw error;
    return { unanswered: error };
  }
}

/** Ages are by the clock of the machine that answered. */
function nowMs({ now }: { readonly now?: string | undefined }): number {
  return now === undefined ? Date.now() : Date.parse(now);
}

const LIST = "tunnel node list";

const { "state-dir": _, ...ABOUT } = STATE_COMMAND_FLAGS;
const STATE_FLAGS = inGroup("The state, where no server is asked", ABOUT);

const FLAGS = {
  ...ASKED_SERVER_FLAGS,
  ...ANSWER_FLAGS,
  ...STATE_FLAGS,
  "json": flag.boolean(false, {
    group: LIST,
    help: "Print the state's records as JSON, without a server's answer; " +
      "--output json has that.",
  }),
  "only": flag.choice(["", ...NODE_STATES], "", {
    group: LIST,
    help: "Only nodes in this state.",
    defaultText: "all",
  }),
  "identifiers": grantsFlag({
    group: "tunnel node approve",
    help: "What the node may call itself besides its name from now on, such " +
      "as ipv4=10.0.0.7&default-route=true; none: --identifiers=-.",
  }, NO_GRANTS),
  "reason": flag.text("", {
    group: "tunnel node revoke",
    help: "Reason that is sent to the node.",
  }),
} as const;

/** Flags of questions to a server; --state-dir also names the state. */
const ASKING = [
  ...Object.keys(ASKED_SERVER_FLAGS).filter((name) => name !== "state-dir"),
  ...Object.keys(ANSWER_FLAGS).filter((name) => name !== "json"),
];
const QUESTIONS = ["only", ...ASKING];
const ABOUT_STATE = Object.keys(STATE_FLAGS);

const VERBS = {
  list: { flags: ["json", ...QUESTIONS, ...ABOUT_STATE] },
  describe: { operand: "NAME", flags: ASKING },
  approve: { operand: "NAME", flags: ["identifiers", ...ABOUT_STATE] },
  revoke: { operand: "NAME", flags: ["reason", ...ABOUT_STATE] },
  forget: { operand: "NAME", flags: ABOUT_STATE },
} as const;

/** See the module description. */
export const NODE_COMMAND = defineCommand({
  name: "node",
  operands: "list | describe|approve|revoke|forget NAME [flags]",
  about: [
    "list and describe ask the server of this machine, or the one that " +
    "--server names, which nodes are online, since when, from where, over " +
    "how many links and with which traffic. Where no server answers, list " +
    "shows what its state says of the nodes that joined.",
    "approve, revoke and forget work on the state: they run where the server " +
    "runs, as its user; a running server notices at once. A name is bound to " +
    "the key that joined with it. Revoking a node ends its links and keeps " +
    "its name taken; approving takes that back. Forgetting a node ends its " +
    "links too, and lets another key join by that name.",
  ],
  examples: [
    "tunnel node list",
    "tunnel node list --only offline --watch",
    "tunnel node describe edge-7",
    "tunnel node revoke edge-7 --reason stolen",
    "tunnel node approve edge-7 --identifiers 'cidr=10.1.0.0/16'",
  ],
  rights: "network",
  flags: FLAGS,
  async run(reading, context) {
    const { values, given, origins } = reading;
    const { verb, operand } = readVerb("node", VERBS, reading);
    if (verb === "describe") {
      const path = ADMIN_PATHS.node + encodeURIComponent(operand);
      return await printEach(
        values,
        withWorkers(askedProgram(values, given, context)),
        context,
        (client) => client.get<NodeDetail>(path),
        (page, answer) => nodeText(page, answer, nowMs(answer)),
      );
    }
    const place = ["json", ...ABOUT_STATE].find((name) => given.has(name));
    if (verb === "list" && place !== undefined) {
      refuseFlags(
        QUESTIONS,
        (name) => isWritten(name, origins),
        `with --${place}: that lists what the state keeps, and no server is ` +
          "asked; keep one of them",
      );
    }
    let note: string | undefined;
    if (verb === "list" && place === undefined) {
      const listed = await listNodes(values, given, context);
      if ("code" in listed) return listed.code;
      // The state does not contain the answer.
      if (QUESTIONS.some((name) => isWritten(name, origins))) {
        throw listed.unanswered;
      }
      note = `No server answers, so this is what its state says: who is ` +
        `online is not known (${ofOthers(listed.unanswered.message)})`;
    }
    // Loaded when wanted: a server that answers needs none of it.
    const { changeNode, listFromState } = await import("./node_state.ts");
    return verb === "list"
      ? await listFromState(values, { note }, context)
      : await changeNode(operand, verb, values, context);
  },
});
