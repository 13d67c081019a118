/**
 * The definition of a subcommand, and the parts that all share: flags are read,
 * `--help` is answered, a failure becomes one line and an exit code.
 *
 * @module
 */

import { tunnelCodeOf, withCode } from "../../proto/codes/codes.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import { tellsMissingRight } from "../../platform/errors/missing_right.ts";
import { printable } from "../../platform/text/printable.ts";
import { CommandFailure, ExitCode } from "./exit_codes.ts";
import type { FlagTable } from "../flags/flag.ts";
import { helpText } from "../flags/help_text.ts";
import { GENERAL_FLAGS } from "../flags/program_flags.ts";
import {
  type FlagReading,
  type FlagSources,
  readFlags,
} from "../flags/read_flags.ts";
import { UsageError } from "../flags/usage_error.ts";
import type { Rights } from "./rights.ts";
import { takeVersion, versionText } from "./version.ts";

/** What a command uses of the process it runs in. */
export interface CommandContext {
  /** Words behind the command's name. */
  readonly argv: readonly string[];
  /** One environment variable. */
  readonly environment: (name: string) => string | undefined;
  /** The names of all of them. */
  readonly environmentNames?: () => readonly string[];
  /** A file's text; throws when it cannot be read. */
  readonly readFile: (path: string) => string;
  /** To stdout, unchanged. */
  readonly print: (text: string) => void;
  /** To stderr, unchanged. */
  readonly printError: (text: string) => void;
  /** Whether stdout still has a reader; absent: unknown. */
  readonly isRead?: () => boolean;
  /** Asks the person for a yes; absent: there is no person to ask. */
  readonly confirm?: (question: string) => boolean;
  /** The size of the terminal that stdout is; absent or `undefined`: it is none. */
  readonly terminal?: () =>
    | { readonly columns: number; readonly rows: number }
    | undefined;
}

/** What is told of a subcommand. */
interface CommandFacts<T extends FlagTable> {
  readonly name: string;
  readonly about: readonly string[];
  readonly examples: readonly string[];
  /** Its permissions, in the packaged program. */
  readonly rights: Rights;
  readonly flags: T;
}

/** A subcommand, ready to run. */
export interface Command extends CommandFacts<FlagTable> {
  /** Words behind the name in the usage line. */
  readonly operands: string;
  /** The page of `tunnel help NAME`. */
  help(isWhole?: boolean): string;
  /** What is wrong with flags, as far as {@linkcode FlagRule}s say it. */
  flagProblems(sources: FlagSources): readonly UsageError[];
  run(context: CommandContext): Promise<ExitCode>;
}

/** With its text in the list of commands. */
export interface ListedCommand extends Command {
  /** Less than a line. */
  readonly summary: string;
  /** For our own scripts: in no list. */
  readonly isHidden: boolean;
}

/**
 * The rules between flags; throws a {@linkcode UsageError}. It reads no file
 * and nothing else of the machine, because flags may be checked on another
 * machine.
 */
export type FlagRule = () => unknown;

/**
 * How a subcommand is written down. Those of its flags that all commands have
 * are left out, unless they stand elsewhere or it has fewer.
 */
export interface CommandDefinition<T extends FlagTable>
  extends CommandFacts<T> {
  /** Absent: it has flags alone, and refuses every other word. */
  readonly operands?: string;
  /** Each finds something else; absent: each flag is for itself. */
  readonly rules?: (reading: FlagReading<T>) => readonly FlagRule[];
  /** Without a code it has succeeded. */
  readonly run: (
    reading: FlagReading<T>,
    context: CommandContext,
  ) => ExitCode | void | Promise<ExitCode | void>;
}

/** Longest line about a failure. */
const MESSAGE_LENGTH_MAX = 4_000;

/** From this `--v` on, failures show their stack. */
const STACK_LEVEL = 6;

/** Makes a command of its definition. */
export function defineCommand<T extends FlagTable>(
  definition: CommandDefinition<T>,
): Command {
  const { name, operands = "[flags]", about, examples, rights } = definition;
  const hasGeneral = Object.hasOwn(definition.flags, "help");
  const flags = hasGeneral
    ? definition.flags
    : { ...definition.flags, ...GENERAL_FLAGS };
  const help = (isWhole?: boolean) => {
    const usage = `tunnel ${name} ${operands}`.trimEnd();
    return helpText({ usage, about, examples, flags }, isWhole);
  };
  return {
    name,
    rights,
    flags,
    operands,
    about,
    examples,
    help,
    flagProblems(sources) {
      const rules: FlagRule[] = [];
      const read = problemsOf([() => {
        const reading = readFlags(name, flags, sources);
        rules.push(...definition.rules?.(reading) ?? []);
      }]);
      return [...read, ...problemsOf(rules)];
    },
    async run(context) {
      let level = 0;
      try {
        if (wantsHelp(context.argv)) {
          context.print(help(context.argv.includes("--all")));
          return ExitCode.OK;
        }
        const { form, argv } = Object.hasOwn(flags, "version")
          ? { form: undefined, argv: context.argv }
          : takeVersion(context.argv);
        if (form !== undefined) {
          context.print(versionText(form));
          return ExitCode.OK;
        }
        const reading = readFlags(name, flags, { ...context, argv });
        const values: Readonly<Record<string, unknown>> = reading.values;
        if (typeof values["v"] === "number") level = values["v"];
        if (definition.operands === undefined) refuseOperands(reading.operands);
        return await definition.run(reading, context) ?? ExitCode.OK;
      } catch (error) {
        return reportFailure(name, error, level, context);
      }
    },
  };
}

/** Refuses operands, where none are taken. */
export function refuseOperands(operands: readonly string[]): void {
  const [first] = operands;
  if (first === undefined) return;
  throw new UsageError(
    /^(?:true|false)$/.test(first)
      ? `Unexpected word "${first}"; a boolean is written --flag=${first}`
      : `Unexpected word "${first}"; flags begin with --`,
  );
}

/** The one word that a command wants. @throws {UsageError} As `wanted` says. */
export function onlyOperand(
  operands: readonly string[],
  wanted: string,
): string {
  const [word] = operands;
  if (word !== undefined && operands.length === 1) return word;
  throw new UsageError(wanted);
}

/** Each sentence once: a rule may be a part of another one. */
function problemsOf(rules: readonly FlagRule[]): readonly UsageError[] {
  const found = new Map<string, UsageError>();
  for (const rule of rules) {
    try {
      rule();
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      if (!found.has(error.message)) found.set(error.message, error);
    }
  }
  return [...found.values()];
}

/** `--help` is answered even if the rest of the line is wrong. */
function wantsHelp(argv: readonly string[]): boolean {
  const dashes = argv.indexOf("--");
  const words = dashes < 0 ? argv : argv.slice(0, dashes);
  return ["--help", "-help", "-h"].some((word) => words.includes(word));
}

function reportFailure(
  name: string,
  error: unknown,
  level: number,
  context: CommandContext,
): ExitCode {
  const message = messageOf(error);
  // The text may come from a peer, and a terminal obeys control characters.
  const line = printable(
    message.replaceAll(/\s*\n\s*/g, " "),
    MESSAGE_LENGTH_MAX,
  );
  // Also for an error that marks a failed check by its own code.
  const code = tellsMissingRight(message) ? "TUN907" : tunnelCodeOf(error);
  const coded = withCode(line, code ?? "TUN119");
  context.printError(`tunnel ${name}: ${coded}\n`);
  if (error instanceof UsageError) return ExitCode.USAGE;
  if (error instanceof CommandFailure) return error.code;
  if (level >= STACK_LEVEL && error instanceof Error) {
    context.printError(`${error.stack ?? ""}\n`);
  }
  return ExitCode.FAILURE;
}
