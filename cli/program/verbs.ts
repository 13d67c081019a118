/**
 * Commands that take a verb: `tunnel token create`, `tunnel node revoke NAME`.
 *
 * @module
 */

import type { FlagReading } from "../flags/read_flags.ts";
import type { FlagTable } from "../flags/flag.ts";
import { nearest } from "../../platform/text/nearest.ts";
import { UsageError } from "../flags/usage_error.ts";

/** What goes with a verb. */
export interface VerbRules {
  /**
   * The words behind it, such as `NAME` or `FROM TO`; `ID…`: one or more;
   * `[KIND]`, `[WORD…]`: optional; absent: none.
   */
  readonly operand?: string;
  /** Flags that only some verbs have; naming them with others is a mistake. */
  readonly flags?: readonly string[];
}

/** What is read of a command line; see `readFlags`. */
export type CommandLine = Pick<
  FlagReading<FlagTable>,
  "operands" | "origins"
>;

/**
 * Whether a flag stands on the command line itself. A variable or a file of
 * flags is there for several commands, and need not fit each of them.
 */
export function isWritten(
  flag: string,
  origins: CommandLine["origins"],
): boolean {
  return origins.get(flag)?.startsWith("--") === true;
}

/** What other programs call such verbs; the first that a command has. */
const VERBS: Readonly<Record<string, readonly string[]>> = {
  add: ["create", "register"],
  delete: ["revoke", "kill", "forget"],
  get: ["describe", "show", "list"],
  info: ["describe", "show"],
  ls: ["list"],
  new: ["create"],
  remove: ["forget", "revoke", "kill"],
  rm: ["forget", "revoke", "kill"],
  show: ["describe", "list"],
  view: ["show", "print", "describe"],
};

function meantVerb(word: string, known: readonly string[]): string {
  const meant = Object.hasOwn(VERBS, word) ? VERBS[word] : undefined;
  const near = meant?.find((verb) => known.includes(verb)) ??
    nearest(word, known);
  return near === undefined ? "" : `; did you mean ${near}?`;
}

/** The refusal of a flag that does nothing. */
export function idleFlag(
  flag: string,
  command: string,
  owner: string,
): UsageError {
  return new UsageError(
    `Cannot use --${flag} with ${command}: it belongs to ${owner}`,
  );
}

function usageOf(verb: string, { operand }: VerbRules): string {
  return operand === undefined ? verb : `${verb} ${operand}`;
}

/**
 * Reads the verb and its operand.
 *
 * @throws {UsageError} Naming the verbs, or the operands of this one.
 */
export function readVerb<Verb extends string>(
  command: string,
  verbs: Readonly<Record<Verb, VerbRules>>,
  { operands, origins }: CommandLine,
): {
  readonly verb: Verb;
  readonly operand: string;
  /** Used when there may be several. */
  readonly operands: readonly string[];
} {
  const [word, ...rest] = operands;
  const known = Object.keys(verbs) as Verb[];
  const verb = known.find((name) => name === word);
  if (verb === undefined) {
    throw new UsageError(
      (word === undefined
        ? `Nothing to do: tunnel ${command} wants`
        : `Cannot do "${word}": tunnel ${command} knows`) +
        ` ${known.map((name) => usageOf(name, verbs[name])).join(", ")}` +
        meantVerb(word ?? "", known),
    );
  }
  const rules: VerbRules = verbs[verb];
  const wanted = rules.operand?.split(" ") ?? [];
  if (rest.length < wanted.length && !rules.operand?.startsWith("[")) {
    const seen = rest.length === 0 ? " nothing" : "";
    throw new UsageError(
      `Cannot ${verb}${seen}: wanted tunnel ${command} ` +
        usageOf(verb, rules),
    );
  }
  if (rest.length > wanted.length && !/…\]?$/.test(rules.operand ?? "")) {
    const behind = wanted.length === 0 ? ` behind ${command} ${verb}` : "";
    throw new UsageError(`Unexpected word "${rest[wanted.length]}"${behind}`);
  }
  for (const other of known) {
    const flag = (verbs[other].flags ?? [])
      .find((name) => isWritten(name, origins) && !rules.flags?.includes(name));
    if (flag === undefined) continue;
    throw idleFlag(flag, `${command} ${verb}`, other);
  }
  return { verb, operand: rest[0] ?? "", operands: rest };
}
