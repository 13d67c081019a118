/**
 * `tunnel status`: how a server, an agent or a proxy is, at a glance.
 *
 * @module
 */

import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { AdminClient } from "../../admin/ask/admin_client.ts";
import type { HistoryAnswer } from "../../proto/admin/list_answers.ts";
import type { StatusAnswer } from "../../proto/admin/status_answer.ts";
import { ADMIN_FLAGS } from "../flags/admin_flags.ts";
import { flag } from "../flags/flag.ts";
import { printAnswer } from "../program/answer_output.ts";
import { defineCommand } from "../program/command.ts";
import { ExitCode } from "../program/exit_codes.ts";
import { pageOf } from "../../admin/ask/page.ts";
import { askAll, askedPrograms, isNamed } from "./asked.ts";
import { statusText } from "../../admin/ask/answer_text.ts";

const FLAGS = {
  ...ADMIN_FLAGS,
  "exit-code": flag.boolean(false, {
    group: "The answer",
    help: "End with 6 when a warning is an error; for scripts.",
  }),
  "since": flag.life(0, 0, {
    group: "The answer",
    help: "Also show a server's traffic over this time, such as 1h, the most " +
      "that it keeps.",
    defaultText: "now alone",
  }),
} as const;

/** See the module description. */
export const STATUS_COMMAND = defineCommand({
  name: "status",
  about: [
    "Asks the server, the agent and the proxy of this user on this machine, " +
    "whichever run, or the one that a flag names. What needs attention comes " +
    "first, each with its code and the next command; then servers and links, " +
    "nodes (which are offline since when, which are slow and why, who is " +
    "connected to those), connections, discovery, and what expires next.",
    "Ends with 1 when no program answers. With -o json there is one answer when a " +
    "flag names whom to ask, and else a list of all of them, in programs.",
  ],
  examples: [
    "tunnel status",
    "tunnel status --watch",
    "tunnel status --since 1h",
    "tunnel status --agent local",
    "tunnel status --exit-code -o json > status.json",
  ],
  rights: "network",
  flags: FLAGS,
  async run({ values, given }, context) {
    const programs = askedPrograms(values, given, context);
    const isOne = isNamed(values, given);
    return await printAnswer({
      form: values.output,
      intervalMs: values["watch"] ? values["interval"] : undefined,
      ask: () =>
        askAll(
          programs,
          context,
          (client) => askStatus(client, Number(values["since"])),
        ),
      table: (all, isWide) => {
        const page = pageOf(context, isWide);
        return all.map(({ answer }) => statusText(page, answer)).join("\n");
      },
      data: (all) => {
        const answers = all.map(({ answer }) => answer);
        return isOne && answers.length === 1
          ? answers[0]
          : { programs: answers };
      },
      exitCode: (all) =>
        values["exit-code"] && all.some(({ answer }) => hasError(answer))
          ? ExitCode.ATTENTION
          : ExitCode.OK,
    }, context);
  },
});

/** The status and the recent traffic; agents and proxies keep none. */
async function askStatus(
  client: AdminClient,
  sinceMs: number,
): Promise<StatusAnswer & { readonly history?: HistoryAnswer }> {
  const status = await client.get<StatusAnswer>(ADMIN_PATHS.status);
  if (sinceMs === 0 || status.program.program !== "server") return status;
  const since = new Date(Date.parse(status.program.now) - sinceMs);
  const history = await client.get<HistoryAnswer>(
    `${ADMIN_PATHS.history}?since=${since.toISOString()}`,
  );
  return { ...status, history };
}

function hasError({ warnings }: StatusAnswer): boolean {
  return warnings.some(({ severity }) => severity === "error");
}
