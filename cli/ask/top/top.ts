/**
 * `tunnel top`: connections as they are now, the biggest first.
 *
 * @module
 */

import { ANSWER_FLAGS, ASKED_FLAGS } from "../../flags/admin_flags.ts";
import { flag, inGroup } from "../../flags/flag.ts";
import { defineCommand } from "../../program/command.ts";
import { pageOf } from "../../../admin/ask/page.ts";
import { printAnswer } from "../../program/answer_output.ts";
import { joinedFacts } from "../../../admin/ask/asked_conduits.ts";
import { type Answering, askedPrograms, askFirst } from "../asked.ts";
import { LiveTop, ROWS_ASKED, topFacts } from "./live_top.ts";
import { FullScreen } from "./terminal.ts";
import { firstState } from "../../../admin/ask/top_state.ts";
import { CONDUIT_SORTS } from "../../../proto/admin/node_answer.ts";
import { blockText, type TopFacts } from "../../../admin/ask/top_text.ts";

const SHOWN = "What is shown";

const FLAGS = {
  ...ASKED_FLAGS,
  "output": ANSWER_FLAGS.output,
  ...inGroup(SHOWN, {
    "interval": flag.duration(1_000, 200, "Time between two questions."),
    "count": flag.count(0, 0, 1_000_000, {
      help: "End after this many screens; in a pipe, or with --output.",
      defaultText: "until Ctrl-C",
    }),
    "sort": flag.choice(CONDUIT_SORTS, "rate", "The greatest of this first."),
    "node": flag.word("NAME", "Only connections of this node."),
    "limit": flag.count(20, 1, 10_000, {
      help: "Most connections to show; in a pipe, or with --output.",
    }),
  }),
} as const;

/** See the module description. */
export const TOP_COMMAND = defineCommand({
  name: "top",
  about: [
    "On a terminal: a full screen of any width. Arrows and page keys choose " +
    "a connection, k ends it after a y; r, b, a, i and u sort by rate, " +
    "bytes, age, idle time and queue; f shows one node's; ? lists keys; q " +
    "quits. Asks the server of this machine, or else its agent or proxy.",
    "In a pipe it prints a block each time, with -o json a line of JSON.",
  ],
  examples: [
    "tunnel top",
    "tunnel top --node edge-7 --sort queue",
    "tunnel top -o json --count 1",
  ],
  rights: "network",
  flags: FLAGS,
  async run({ values, given }, context) {
    const { sort, node, limit, output: form, interval, count } = values;
    const isScreen = context.terminal?.() !== undefined &&
      Deno.stdin.isTerminal() &&
      !given.has("output") && !given.has("count");
    const programs = askedPrograms(values, given, context);
    const facts = (rows: number) =>
      askFirst(
        programs,
        context,
        (client) => topFacts(client, { sort, node }, rows),
      );
    const joined = (all: readonly Answering<TopFacts>[], rows: number) =>
      joinedFacts(all.map(({ answer }) => answer), sort, rows);
    if (!isScreen) {
      return await printAnswer({
        form,
        intervalMs: interval,
        ...count === 0 ? {} : { times: count },
        ask: async () => joined(await facts(limit), limit),
        table: (answer, isWide) =>
          blockText(pageOf(context, isWide), answer, { sort, node }),
      }, context);
    }
    const all = await facts(ROWS_ASKED);
    return await new LiveTop({
      clients: all.map(({ client }) => client),
      screen: new FullScreen(context.print),
      pageOf: () => pageOf(context),
      intervalMs: interval,
      first: firstState(sort, node),
      firstFacts: joined(all, ROWS_ASKED),
    }).run();
  },
});
