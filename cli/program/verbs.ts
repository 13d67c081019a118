/**
 * Commands that take a verb: `tunnel token create`, `tunnel node revoke NAME`.
 *
 * @module
 */

import { UsageError } from "../flags/usage_error.ts";

/** What goes with a verb. */
export interface VerbRules {
  /** The word behind it, such as `NAME`; `ID…`: one or more; absent: none. */
  readonly operand?: string;
  /** Flags that only some verbs have; naming them with others is a mistake. */
  readonly flags?: readonly string[];
}

/**
 * Reads the verb and its operand.
 *
 * @param given Flags that were given.
 * @throws {UsageError} Naming the verbs, or what belongs to this one.
 */
export function readVerb<Verb extends string>(
  command: string,
  verbs: Readonly<Record<Verb, VerbRules>>,
  operands: readonly string[],
  given: ReadonlySet<string>,
): {
  readonly verb: Verb;
  readonly operand: string;
  /** Where there may be several. */
  readonly operands: readonly string[];
} {
  const [word, operand, ...others] = operands;
  const known = Object.keys(verbs) as Verb[];
  const verb = known.find((name) => name === word);
  if (verb === undefined) {
    throw new UsageError(
      (word === undefined
        ? `Nothing to do: tunnel ${command} wants`
        : `Cannot do "${word}": tunnel ${command} knows`) +
        ` ${known.join(", ")}`,
      "TUN108",
    );
  }
  const rules: VerbRules = verbs[verb];
  if ((operand !== undefined) !== (rules.operand !== undefined)) {
    throw new UsageError(
      rules.operand === undefined
        ? `Unexpected word "${operand}" behind ${command} ${verb}`
        : `Cannot ${verb}: wanted tunnel ${command} ${verb} ${rules.operand}`,
      "TUN109",
    );
  }
  const areMany = rules.operand?.endsWith("…") === true;
  if (others.length > 0 && !areMany) {
    throw new UsageError(`Unexpected word "${others[0]}"`, "TUN109");
  }
  for (const other of known) {
    const flag = (verbs[other].flags ?? [])
      .find((name) => given.has(name) && !rules.flags?.includes(name));
    if (flag === undefined) continue;
    throw new UsageError(
      `Cannot use --${flag} with ${command} ${verb}: it belongs to ${other}`,
      "TUN105",
    );
  }
  return { verb, operand: operand ?? "", operands: operands.slice(1) };
}
