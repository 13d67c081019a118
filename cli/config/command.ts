/**
 * `tunnel config`: check files, print flags as they are in effect, print the
 * JSON Schema of a file for editors.
 *
 * @module
 */

import {
  DocumentError,
  parseFile,
  parseYamlOrJson,
} from "../../platform/documents/document.ts";
import { positionsIn } from "../../platform/documents/yaml.ts";
import {
  type Command,
  type CommandContext,
  defineCommand,
  type ListedCommand,
} from "../program/command.ts";
import { textOf, UsageError } from "../flags/usage_error.ts";
import {
  type ConfigKind,
  configKinds,
  documentKindOf,
  kindNamed,
  PROGRAMS,
} from "./kinds.ts";
import { printable } from "../../platform/text/printable.ts";
import { didYouMean } from "../../platform/text/nearest.ts";
import { ExitCode } from "../program/exit_codes.ts";
import { textTable } from "../../admin/ask/text_table.ts";
import { readVerb } from "../program/verbs.ts";
import { flag, type FlagTable, inGroup } from "../flags/flag.ts";
import { FORM_FLAG, GENERAL_FLAGS } from "../flags/program_flags.ts";
import { effectiveFlags } from "../flags/effective_flags.ts";

/** What is wrong in one place of a file. */
export interface ConfigProblem {
  readonly file: string;
  /** Counted from 1; absent: unknown. */
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
}

/** What was found out about a file. */
export interface CheckedFile {
  readonly file: string;
  /** Absent: the file could not be read that far. */
  readonly kind?: string;
  readonly problems: readonly ConfigProblem[];
}

/** A longer one is no configuration, but for services. */
const BYTES_MAX = 64 * 1024 * 1024;

/**
 * Checks a file.
 *
 * @param kind Absent: it is recognized.
 * @param context Its words are flags beside a file of flags.
 * @throws {UsageError} When it cannot be read, or its kind is unknown.
 */
export function checkFile(
  file: string,
  kinds: readonly ConfigKind[],
  kind: ConfigKind | undefined,
  { readFile, argv }: Pick<CommandContext, "readFile" | "argv">,
): CheckedFile {
  const text = readText(file, readFile);
  let document: unknown;
  try {
    document = /\.(?:json|ya?ml)$/.test(file)
      ? parseFile(file, text)
      : parseYamlOrJson(text);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    return { file, problems: [unreadable(file, error.message)] };
  }
  const found = kind ?? documentKindOf(kinds, document, file);
  if (found === undefined) {
    const names = kinds.filter(({ isRare }) => !isRare)
      .map(({ name }) => name).join(", ");
    throw new UsageError(
      `Cannot tell what ${file} is; say it by --kind (${names}; \`tunnel ` +
        "config schema` has all)",
    );
  }
  const positionOf = positionsIn(text);
  const problems = found.problems(document, text, argv).map(
    ({ place, message }): ConfigProblem => ({
      file,
      ...positionOf(place),
      message,
    }),
  );
  problems.sort((a, b) => a.line! - b.line! || a.column! - b.column!);
  return { file, kind: found.name, problems };
}

/** `FILE:LINE:COLUMN: problem`, in the form for editors. */
export function problemLine(
  { file, line, column, message }: ConfigProblem,
): string {
  const at = line === undefined ? file : `${file}:${line}:${column ?? 1}`;
  return `${at}: ${message}`;
}

function readText(path: string, readFile: (path: string) => string): string {
  const text = textOf(`Cannot read ${path}`, path, readFile);
  if (text.length <= BYTES_MAX) return text;
  throw new UsageError(
    `Cannot check ${path}: it is longer than ${BYTES_MAX} bytes`,
    "TUN114",
  );
}

/** Both parsers say where they stopped, at the end of their sentence. */
function unreadable(file: string, message: string): ConfigProblem {
  const match = /\bline (\d+),? column (\d+)/.exec(message);
  return {
    file,
    ...(match === null
      ? {}
      : { line: Number(match[1]), column: Number(match[2]) }),
    message,
  };
}

const LINE_LENGTH_MAX = 4_000;

const FLAGS = {
  "kind": flag.word("KIND", {
    group: "Files",
    help: "What the files of check are: server, agent, policy, services, " +
      "egress-selector, etcd-config …",
    defaultText: "recognized by their content",
  }),
  "all": flag.boolean(false, {
    group: "Output",
    help: "print: also show flags that have their default.",
  }),
  ...inGroup("Output", FORM_FLAG),
  "file": flag.word("FILE", {
    group: "Files",
    help: "print: the file that the program would get by --config.",
  }),
  "help": GENERAL_FLAGS["help"],
} as const;

const VERBS = {
  check: { operand: "FILE…", flags: ["kind", "output"] },
  print: { operand: "[WORD…]", flags: ["file", "all", "output"] },
  schema: { operand: "[KIND]" },
} as const;

type Programs = () => Promise<readonly ListedCommand[]>;

/** @param programs All commands. */
export function configCommand(programs: Programs): Command {
  return defineCommand({
    name: "config",
    operands: "check FILE… | print [COMMAND] [-- FLAGS] | schema [KIND]",
    about: [
      "check reports all faults of files: file:line:column, what was " +
      "seen and what was wanted. It finds out what each one is. A file of " +
      "flags is looked at as if it were alone, but for flags behind --: " +
      "which ones exclude or lack each other is said, and no variable, file " +
      "or address of this machine is looked at. Ends with 1 if anything is " +
      "wrong.",
      "print shows the flags of server, agent, proxy or another command as " +
      "they would be in effect here, and where each is from: the command line " +
      "(behind --), TUNNEL_* variables, the file, or the default. Secrets " +
      "are hidden.",
      "schema prints the JSON Schema of a kind of file, for editors; alone " +
      "it lists the kinds.",
    ],
    examples: [
      "tunnel config check /etc/tunnel/*.yaml",
      "tunnel config check server.yaml -- --server-id hub-1",
      "tunnel config print agent --file /etc/tunnel/agent.yaml",
      "tunnel config print proxy -- --config services.yaml",
      "tunnel config schema policy > policy.schema.json",
    ],
    rights: "look",
    flags: FLAGS,
    async run(reading, context) {
      const { values } = reading;
      const { verb, operands } = readVerb("config", VERBS, reading);
      const commands = (await programs()).filter(({ isHidden }) => !isHidden);
      const kinds = configKinds(commands);
      const isJson = values["output"] === "json";
      switch (verb) {
        case "check": {
          const kind = values["kind"] === ""
            ? undefined
            : kindNamed(kinds, values["kind"]);
          return check(operands, kinds, kind, isJson, context);
        }
        case "print": {
          const { file, all } = values;
          return print(
            operands,
            flagTables(commands),
            { file, all, isJson },
            context,
          );
        }
        case "schema":
          return schema(operands, kinds, context);
      }
    },
  });
}

/** Flags of commands with such a file; a proxy's file lists services. */
function flagTables(
  commands: readonly Command[],
): ReadonlyMap<string, FlagTable> {
  return new Map(
    commands.filter(({ flags }) => Object.hasOwn(flags, "config"))
      .map(({ name, flags }) => [name, flags]),
  );
}

function check(
  words: readonly string[],
  kinds: readonly ConfigKind[],
  kind: ConfigKind | undefined,
  isJson: boolean,
  { print, readFile }: CommandContext,
): ExitCode {
  const flags = words.findIndex((word) => word.startsWith("-"));
  const files = flags < 0 ? words : words.slice(0, flags);
  const argv = flags < 0 ? [] : words.slice(flags);
  if (files.length === 0) {
    throw new UsageError(
      "Cannot check nothing: wanted tunnel config check FILE…",
    );
  }
  const checked = files.map((file) =>
    checkFile(file, kinds, kind, { readFile, argv })
  );
  const lines = checked.flatMap(({ file, kind, problems }) =>
    problems.length === 0
      ? [`${file}: ok (${kind})`]
      : problems.map(problemLine)
  );
  print(
    isJson
      ? `${JSON.stringify(checked, null, 2)}\n`
      : lines.map((line) => `${printable(line, LINE_LENGTH_MAX)}\n`).join(""),
  );
  return checked.every(({ problems }) => problems.length === 0)
    ? ExitCode.OK
    : ExitCode.FAILURE;
}

function print(
  [name = "server", ...argv]: readonly string[],
  tables: ReadonlyMap<string, FlagTable>,
  how: {
    readonly file: string;
    readonly all: boolean;
    readonly isJson: boolean;
  },
  context: CommandContext,
): void {
  const table = tables.get(name);
  if (table === undefined) {
    throw new UsageError(
      `Cannot print the flags of "${name}"${didYouMean(name, tables.keys())} ` +
        `(wanted one of ${PROGRAMS.join(", ")}, proxy, or another command ` +
        "that has --config; tunnel help lists them)",
    );
  }
  const given = how.file === "" ? [] : [`--config=${how.file}`];
  const flags = effectiveFlags(name, table, {
    ...context,
    argv: [...given, ...argv],
  });
  const shown = how.all || how.isJson
    ? flags
    : flags.filter(({ from }) => from !== "default");
  context.print(
    how.isJson
      ? `${JSON.stringify(shown, null, 2)}\n`
      : shown.length === 0
      ? "All flags have their defaults; --all shows them\n"
      : textTable(
        "FLAG | VALUE | FROM",
        shown.map(({ flag, value, from }) => [flag, value, from]),
      ),
  );
}

function schema(
  [name]: readonly string[],
  kinds: readonly ConfigKind[],
  { print }: CommandContext,
): void {
  print(
    name === undefined
      ? textTable(
        "KIND | WHAT",
        kinds.map((kind) => [kind.name, kind.summary]),
      )
      : `${JSON.stringify(kindNamed(kinds, name).schema(), null, 2)}\n`,
  );
}
