/**
 * What attacks cost, as the table of `docs/reference/attacks.md` and the words above it.
 *
 * @module
 */

import type { Latency } from "./neighbour.ts";

/** What a neighbour's p99 may become, in multiples of what it was. */
const RATIO_MAX = 1.5;

const BEGIN = "<!-- attacks: begin -->\n";
const END = "<!-- attacks: end -->\n";
const DOCUMENT = new URL("../../docs/reference/attacks.md", import.meta.url);

/** What one attack came to. */
export interface Row {
  readonly name: string;
  readonly known: string;
  readonly wanted: string;
  readonly endings: Readonly<Record<string, number>>;
  readonly reason: string;
  readonly connections: number;
  readonly peak: number | undefined;
  readonly closedMs: number | undefined;
  readonly rssMib: readonly [before: number, peak: number, after: number];
  readonly cpuSeconds: number;
  readonly attackSeconds: number;
  readonly calm: Latency;
  readonly attacked: Latency;
  /** Of the neighbour's p99, by round. */
  readonly ratios: readonly number[];
  readonly counters: readonly string[];
}

/** A line of the table in docs/reference/attacks.md. */
export function tableLine(row: Row): string {
  const endings = Object.entries(row.endings)
    .map(([what, count]) => `${what} ×${count}`).join(", ");
  const ratio = row.ratios[Math.floor(row.ratios.length / 2)]!;
  const cells = [
    `\`${row.name}\` ${row.known}`,
    row.counters.join(", ") || "none",
    endings || row.wanted,
    row.closedMs === undefined ? "" : duration(row.closedMs),
    row.rssMib.join(" / "),
    `${row.cpuSeconds.toFixed(1)} of ${row.attackSeconds}`,
    `${row.calm.p99Ms.toFixed(1)} / ${row.attacked.p99Ms.toFixed(1)} ms`,
    `${ratio.toFixed(2)} (${row.ratios.join(", ")})`,
  ];
  return `| ${cells.join(" | ")} |`;
}

function duration(ms: number): string {
  return ms >= 1_000 ? `${(ms / 1_000).toFixed(1)} s` : `${ms.toFixed(0)} ms`;
}

/** The first two lines of the table. */
export function tableHead(): string {
  return "| attack | counters that moved | what the attacker saw | closed after " +
    "(median) | RSS before / peak / after, MiB | CPU s | " +
    "neighbour's p99 without / with | ratio (by round) |\n" +
    "|---|---|---|---|---|---|---|---|";
}

/** How many stayed below the bar, and which did not. */
export function summary(rows: readonly Row[], rounds: number): string {
  const overs = rows.map(({ name, ratios }) => ({
    name,
    over: ratios.filter((ratio) => ratio > RATIO_MAX).length,
  }));
  const never = overs.filter(({ over }) => over === 0).length;
  const always = overs.filter(({ over }) => over === rounds);
  const worst = [...rows].map(({ name, ratios }) => ({
    name,
    ratio: ratios[Math.floor(ratios.length / 2)]!,
  })).sort((one, other) => other.ratio - one.ratio).slice(0, 5);
  const calm = rows.map((row) => row.calm.p99Ms).sort((a, b) => a - b);
  const peak = Math.max(...rows.map(({ rssMib }) => rssMib[1]));
  const listed = always.length === 0
    ? ""
    : ` (${always.map(({ name }) => `\`${name}\``).join(", ")})`;
  return [
    `Measured on ${new Date().toISOString().slice(0, 10)}, Deno ` +
    `${Deno.version.deno}, ${navigator.hardwareConcurrency} cores, ` +
    `${rounds} rounds. Without an attack p99 is ` +
    `${calm[Math.floor(calm.length / 2)]!.toFixed(1)} ms there, and server, ` +
    "agent, neighbour and attacker share the machine, so whatever uses a core " +
    "shows.",
    `The bar is ${RATIO_MAX}: of ${rows.length} attacks ${never} stayed below ` +
    `it in every round, ${rows.length - never - always.length} in some, and ` +
    `**${always.length} in none**${listed}. The largest medians: ` +
    worst.map(({ name, ratio }) => `\`${name}\` ${ratio.toFixed(1)}`)
      .join(", ") +
    `. The server never had more than ${peak} MiB.`,
    "`attacker` is `nice`d, for it stands in for another machine; all attacks " +
    "but crowds come from one address or process, which is slowed down by the " +
    "first of them and stays so; ×N is how many connections ended so, over all " +
    "rounds.",
  ].join("\n");
}

/** Puts both where the old ones are. */
export async function writeReport(
  rows: readonly Row[],
  rounds: number,
): Promise<void> {
  const text = await Deno.readTextFile(DOCUMENT);
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin === -1 || end < begin) {
    throw new Error(
      "Cannot write the table: docs/reference/attacks.md has no place",
    );
  }
  const table = [tableHead(), ...rows.map(tableLine)].join("\n");
  await Deno.writeTextFile(
    DOCUMENT,
    text.slice(0, begin + BEGIN.length) +
      `${summary(rows, rounds)}\n\n${table}\n` + text.slice(end),
  );
}
