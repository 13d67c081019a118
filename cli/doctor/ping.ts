/**
 * `tunnel ping`: how long a node's agent takes to answer, over each of its links,
 * and how much of it is the way to the server.
 *
 * @module
 */

import { type AdminClient, AdminError } from "../../admin/ask/admin_client.ts";
import type { PingAnswer } from "../../proto/admin/path_check.ts";
import { jsonText, printable } from "../../platform/text/printable.ts";
import {
  ANSWER_FLAGS,
  ASKED_SERVER_FLAGS,
  askedProgram,
  withWorkers,
} from "../flags/admin_flags.ts";
import { flag, type FlagValues, inGroup } from "../flags/flag.ts";
import { UsageError } from "../flags/usage_error.ts";
import { pongsOf } from "./asked.ts";
import { askedClient } from "../program/answer_output.ts";
import {
  type CommandContext,
  defineCommand,
  onlyOperand,
} from "../program/command.ts";
import { ExitCode } from "../program/exit_codes.ts";

const GROUP = "How often";

const FLAGS = {
  ...inGroup(GROUP, {
    "count": flag.count(5, 1, 1_000_000, {
      short: "c",
      help: "Pings to send.",
    }),
    "interval": flag.duration(1_000, 10, "Time between two pings."),
    "until": flag.boolean(false, {
      help:
        "Ping until the node answers, however long that takes, and end then.",
    }),
  }),
  ...ASKED_SERVER_FLAGS,
  "json": ANSWER_FLAGS["json"],
} as const;

/** One ping of one link. */
type Pong = Omit<PingAnswer["links"][number], "carrier">;

/** All pings of a run. */
interface PingTally {
  sent: number;
  answered: number;
  readonly times: number[];
}

/** See the module description. */
export const PING_COMMAND = defineCommand({
  name: "ping",
  operands: "NODE [flags]",
  about: [
    "The server pings the agent over each of its links: what answers is the " +
    "agent's program, not the kernel of its machine. A line for each reply; " +
    "at the end the statistics. Exits with 1 if no ping was answered.",
  ],
  examples: [
    "tunnel ping edge-7",
    "tunnel ping edge-7 -c 1",
    "tunnel ping edge-7 --until",
  ],
  rights: "network",
  flags: FLAGS,
  async run({ values, operands, given }, context) {
    const node = onlyOperand(
      operands,
      "Cannot ping: wanted one node, tunnel ping NODE; `tunnel node list` " +
        "shows them",
    );
    if (/:\d+$/.test(node)) {
      throw new UsageError(
        `Cannot ping "${node}": wanted a node's name; for a port behind it, ` +
          "tunnel trace [NODE] HOST:PORT",
      );
    }
    const clients = withWorkers(askedProgram(values, given, context))
      .map((asked) => askedClient(asked, context));
    const tally: PingTally = { sent: 0, answered: 0, times: [] };
    try {
      await pingAll(node, clients, values, tally, context);
    } finally {
      for (const client of clients) client.close();
    }
    const code = tally.answered > 0 ? ExitCode.OK : ExitCode.FAILURE;
    context.print(
      values["json"]
        ? `${jsonText({ node, ...summaryOf(tally) })}\n`
        : summaryText(node, tally),
    );
    return code;
  },
});

async function pingAll(
  node: string,
  clients: readonly AdminClient[],
  { count, interval, until, json }: FlagValues<typeof FLAGS>,
  tally: PingTally,
  { print }: Pick<CommandContext, "print">,
): Promise<void> {
  for (let at = 1; until || at <= count; at++) {
    if (at > 1) await new Promise((go) => setTimeout(go, interval));
    const beganMs = performance.now();
    tally.sent++;
    let pongs: readonly Pong[];
    try {
      pongs = await pongsOf(clients, node);
    } catch (error) {
      const isAbsent = error instanceof AdminError && error.status === 404;
      // It was not there to begin with: the next attempt finds the same.
      if (!isAbsent || tally.answered === 0 && !until) throw error;
      pongs = [{ address: "", problem: error.message }];
    }
    const wholeMs = performance.now() - beganMs;
    const times = pongs.flatMap(({ roundTripMs }) => roundTripMs ?? []);
    if (times.length > 0) tally.answered++;
    tally.times.push(...times);
    for (const pong of pongs) {
      print(
        json
          ? `${jsonText({ seq: at, ...pong, wholeMs })}\n`
          : `${lineOf(node, at, pong, wholeMs, clients[0]!.where)}\n`,
      );
    }
    if (until && times.length > 0) return;
  }
}

/** Limit on peers' words. */
const WORDS_LENGTH_MAX = 300;

function lineOf(
  node: string,
  at: number,
  { address, roundTripMs, problem }: Pong,
  wholeMs: number,
  where: string,
): string {
  const shown = (text: string) => printable(text, WORDS_LENGTH_MAX);
  if (roundTripMs === undefined) return `${at}: ${shown(problem ?? "")}`;
  return `${at}: ${shown(node)} answers over the link from ${
    shown(address)
  }: ` +
    `${roundTripMs} ms behind ${where}, ${wholeMs.toFixed(1)} ms in all`;
}

function summaryOf({ sent, answered, times }: PingTally) {
  if (times.length === 0) return { sent, answered };
  const sorted = [...times].sort((one, other) => one - other);
  const mean = sorted.reduce((sum, time) => sum + time, 0) / sorted.length;
  return {
    sent,
    answered,
    minMs: sorted[0]!,
    medianMs: sorted[Math.floor(sorted.length / 2)]!,
    meanMs: Math.round(mean * 100) / 100,
    maxMs: sorted.at(-1)!,
  };
}

function summaryText(node: string, tally: PingTally): string {
  const { sent, answered, ...times } = summaryOf(tally);
  const lost = Math.round((1 - answered / Math.max(1, sent)) * 100);
  const first =
    `${printable(node, WORDS_LENGTH_MAX)}: ${answered} of ${sent} ` +
    `pings answered (${lost} % lost)`;
  if (!("minMs" in times)) return `${first}; tunnel doctor node ${node}\n`;
  const { minMs, medianMs, meanMs, maxMs } = times;
  return `${first}; round trip min ${minMs}, median ${medianMs}, mean ` +
    `${meanMs}, max ${maxMs} ms\n`;
}
