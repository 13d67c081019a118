/**
 * `tunnel man`: manual pages in man(7), from the tables of commands and flags.
 *
 * @module
 */

import { UsageError } from "../flags/usage_error.ts";
import {
  type Command,
  defineCommand,
  type ListedCommand,
} from "../program/command.ts";
import { EXIT_CODES } from "../program/exit_codes.ts";
import { VERSION } from "../../platform/process/version.ts";
import type { Flag } from "../flags/flag.ts";
import { flagGroups, shownDefault } from "../flags/help_text.ts";
import { environmentName } from "../flags/read_flags.ts";

/** @param commands Handed in: they hold this one too. */
export function manCommand(
  commands: () => Promise<readonly ListedCommand[]>,
): Command {
  return defineCommand({
    name: "man",
    operands: "[COMMAND] [flags]",
    about: [
      "Without a command it prints tunnel(1), with one tunnel-COMMAND(1). The " +
      "package brings all of them in man/.",
    ],
    examples: ["tunnel man dial | man -l -"],
    rights: "look",
    flags: {},
    async run({ operands: [name, ...others] }, { print }) {
      const shown = (await commands()).filter(({ isHidden }) => !isHidden);
      if (others.length > 0) {
        throw new UsageError(
          `Unexpected word "${others[0]}"; wanted one command, as in ` +
            "tunnel man dial",
        );
      }
      if (name === undefined) return print(overviewPage(shown));
      const command = shown.find((each) => each.name === name);
      if (command === undefined) {
        throw new UsageError(
          `Unknown command "${name}" (tunnel help lists all)`,
        );
      }
      print(commandPage(command));
    },
  });
}

/** `tunnel(1)`: the commands. */
export function overviewPage(commands: readonly ListedCommand[]): string {
  return page(
    "tunnel",
    "carry connections into networks that cannot be dialed",
    [
      ".SH SYNOPSIS",
      ".B tunnel",
      ".I command",
      ".RI [ flags ]",
      ".SH DESCRIPTION",
      text(
        "Agents inside a network connect to a server outside, which sends " +
          "connections back through them.",
      ),
      ".SH COMMANDS",
      ...commands.flatMap(({ name, summary }) => [
        ".TP",
        `.BR tunnel\\-${text(name)} (1)`,
        text(summary),
      ]),
      ...configuration(),
      ...exitCodes(),
    ],
  );
}

/** `tunnel-NAME(1)`. */
export function commandPage(command: ListedCommand): string {
  const { name, summary, operands, about, examples, flags } = command;
  return page(`tunnel-${name}`, summary, [
    ".SH SYNOPSIS",
    `.B tunnel ${text(name)}`,
    ...operands === "" ? [] : [text(operands)],
    ".SH DESCRIPTION",
    ...about.flatMap((paragraph, at) => [
      ...at === 0 ? [] : [".PP"],
      text(paragraph),
    ]),
    ...[...flagGroups(flags)].flatMap(([group, flags], at) => [
      ...at === 0 ? [".SH OPTIONS"] : [],
      `.SS ${quoted(group)}`,
      ...flags.flatMap(([name, flag]) => option(name, flag)),
    ]),
    ...examples.length === 0 ? [] : [
      ".SH EXAMPLES",
      ".EX",
      ...examples.map((line) => text(line)),
      ".EE",
    ],
    ...configuration(),
    ...exitCodes(),
    ".SH SEE ALSO",
    ".BR tunnel (1)",
  ]);
}

/** Not today: the same version gives the same page. */
const PAGE_DATE = "2026-11-22";

function page(
  name: string,
  summary: string,
  lines: readonly string[],
): string {
  return [
    `.TH ${quoted(name.toUpperCase())} 1 ${PAGE_DATE} ${
      quoted(`tunnel ${VERSION}`)
    } "User Commands"`,
    ".SH NAME",
    `${text(name)} \\- ${text(summary)}`,
    ...lines,
  ].join("\n") + "\n";
}

function option(name: string, flag: Flag<unknown>): readonly string[] {
  const short = flag.short === undefined ? [] : [`-${flag.short}`];
  const long = [name, ...flag.aliases ?? []].map((each) => `--${each}`);
  const names = [...short, ...long].map((each) => `\\fB${text(each)}\\fR`);
  const value = flag.placeholder === ""
    ? ""
    : ` \\fI${text(flag.placeholder)}\\fR`;
  const fallback = shownDefault(flag);
  const status = flag.status.kind === "works"
    ? ""
    : ` ${flag.status.kind === "idle" ? "No effect" : "Not built yet"}: ` +
      `${flag.status.because}.`;
  return [
    ".TP",
    names.join(", ") + value,
    text(
      flag.help + (fallback === "" ? "" : ` Default: ${fallback}.`) + status,
    ),
  ];
}

function configuration(): readonly string[] {
  return [
    ".SH ENVIRONMENT",
    text(
      "Each flag may be given as a variable: --server-port as " +
        `${environmentName("server-port")}. The command line wins.`,
    ),
  ];
}

function exitCodes(): readonly string[] {
  return [
    ".SH EXIT STATUS",
    ...EXIT_CODES.flatMap(([code, , meaning]) => [
      ".TP",
      `.B ${code}`,
      text(meaning),
    ]),
  ];
}

function quoted(words: string): string {
  return `"${text(words).replaceAll('"', "\\(dq")}"`;
}

/** A dot or a quote at the beginning of a line would be an instruction. */
function text(words: string): string {
  const escaped = words.replaceAll("\\", "\\e").replaceAll("-", "\\-")
    .replaceAll("…", "...").replaceAll("–", "\\(en")
    .replaceAll("’", "\\(cq").replaceAll("~", "\\(ti").replaceAll("^", "\\(ha");
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped;
}
