/**
 * `tunnel node list` and `describe`, as far as a running server answers them.
 *
 * @module
 */

import { AdminError } from "../../admin/ask/admin_client.ts";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { NodeDetail, NodesAnswer } from "../../proto/admin/node_answer.ts";
import {
  type ANSWER_FLAGS,
  type ASKED_SERVER_FLAGS,
  askedProgram,
  withWorkers,
} from "../flags/admin_flags.ts";
import type { FlagValues } from "../flags/flag.ts";
import type { CommandContext } from "../program/command.ts";
import type { ExitCode } from "../program/exit_codes.ts";
import { isNobodyThere, printEach } from "./asked.ts";
import { nodesText, nodeText } from "../../admin/ask/answer_text.ts";

/** In which nodes may be; the words of `?state=`. */
export const NODE_STATES = ["online", "offline", "pending", "revoked"] as const;

type AdminValues =
  & FlagValues<typeof ASKED_SERVER_FLAGS>
  & FlagValues<typeof ANSWER_FLAGS>;

/**
 * @returns Or why no server answers, where none runs and none was named: all
 * other failures are errors, as a server knows more than its state says.
 */
export async function listNodes(
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

/** `tunnel node describe NAME`. */
export async function showNode(
  name: string,
  values: AdminValues,
  given: ReadonlySet<string>,
  context: CommandContext,
): Promise<ExitCode> {
  const asked = withWorkers(askedProgram(values, given, context));
  const path = ADMIN_PATHS.node + encodeURIComponent(name);
  return await printEach(
    values,
    asked,
    context,
    (client) => client.get<NodeDetail>(path),
    (page, answer) => nodeText(page, answer, nowMs(answer)),
  );
}

/** Ages are by the clock of the machine that answered. */
function nowMs({ now }: { readonly now?: string }): number {
  return now === undefined ? Date.now() : Date.parse(now);
}
