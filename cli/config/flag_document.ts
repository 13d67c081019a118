/**
 * A file of `--config`, which is a map of a command's flags: its errors and its
 * schema, both from the table of flags.
 *
 * @module
 */

import { FieldError } from "../../platform/documents/field_error.ts";
import type { JsonSchema } from "../../platform/documents/json_schema.ts";
import { canonicalNames } from "../flags/arguments.ts";
import type { Flag, FlagTable } from "../flags/flag.ts";
import { flagEntries, readFlags, valueProblem } from "../flags/read_flags.ts";
import type { Command } from "../program/command.ts";
import { shownDefault } from "../flags/help_text.ts";

/** All that is wrong with such a document, in its order. */
export function flagProblems(table: FlagTable, value: unknown): FieldError[] {
  return [...flagEntries(table, value)].flatMap((entry) => {
    const problems = "problem" in entry
      ? [entry.problem]
      : entry.texts.flatMap((text) => textProblems(table[entry.name]!, text));
    const place = entry.key === undefined ? [] : [entry.key];
    return problems.map((problem) => new FieldError(place, problem));
  });
}

/** An empty text counts as not given. */
function textProblems(flag: Flag<unknown>, text: string): string[] {
  if (text === "") return [];
  try {
    const read = flag.parse(text);
    const isIdle = JSON.stringify(read) === JSON.stringify(flag.fallback);
    return flag.status.kind === "missing" && !isIdle
      ? [`${flag.status.because}; remove it`]
      : [];
  } catch (error) {
    return [valueProblem(error, text)];
  }
}

/**
 * Errors in the combination of a document's flags, when each value alone is
 * valid.
 *
 * @param argv Flags beside the file; the environment may differ where it is
 *   used.
 * @throws {UsageError} When those cannot be used.
 */
export function togetherProblems(
  { name, flags: table, flagProblems }: Pick<
    Command,
    "name" | "flags" | "flagProblems"
  >,
  document: unknown,
  argv: readonly string[],
): FieldError[] {
  const text = JSON.stringify(document ?? null);
  const sources = { environment: () => undefined, readFile: () => text };
  readFlags(name, table, { ...sources, argv });
  const names = canonicalNames(table);
  const keys = new Map(
    Object.keys(Object(document))
      .map((key) => [names.get(key.replaceAll("_", "-")), key] as const),
  );
  return flagProblems({ ...sources, argv: ["--config=it.json", ...argv] })
    .map(({ message }) => {
      const key = [...message.matchAll(/--([a-z0-9-]+)/g)]
        .map(([, flag]) => keys.get(flag))
        .find((found) => found !== undefined);
      return new FieldError(key === undefined ? [] : [key], message);
    });
}

/** The schema of a file for this table. */
export function flagSchema(table: FlagTable): JsonSchema {
  const properties: Record<string, JsonSchema> = {};
  for (const [name, flag] of Object.entries(table)) {
    if (name === "config" || name === "help") continue;
    const schema = valueSchema(flag);
    // deno-lint-ignore tunnel/own-keys -- names of our own flags.
    for (const each of [name, ...flag.aliases ?? []]) properties[each] = schema;
  }
  return { type: ["object", "null"], properties, additionalProperties: false };
}

function valueSchema(flag: Flag<unknown>): JsonSchema {
  const fallback = shownDefault(flag);
  return {
    description: flag.help +
      (fallback === "" ? "" : ` Default: ${fallback}.`),
    ...(flag.status.kind === "works" ? {} : { deprecated: true }),
    ...formSchema(flag),
  };
}

/** Values may be written as texts, and an empty one counts as not given. */
function formSchema({ kind, choices, range }: Flag<unknown>): JsonSchema {
  const nothing = [{ type: "null" }, { const: "" }];
  if (kind === "boolean") {
    const words = ["1", "0", "t", "f", "T", "F"];
    const spelled = ["true", "false", "TRUE", "FALSE", "True", "False"];
    return {
      anyOf: [
        { type: "boolean" },
        { enum: [0, 1, ...words, ...spelled] },
        ...nothing,
      ],
    };
  }
  if (range !== undefined) {
    const { least: minimum, most: maximum } = range;
    return {
      anyOf: [
        { type: "integer", minimum, maximum },
        { type: "string", pattern: "^\\d+$" },
        ...nothing,
      ],
    };
  }
  const scalar = { type: ["string", "number", "boolean"] };
  if (kind === "list") {
    const item = choices === undefined ? scalar : { type: "string" };
    return { anyOf: [item, { type: "array", items: item }, { type: "null" }] };
  }
  return choices === undefined
    ? { type: ["string", "number", "boolean", "null"] }
    : { anyOf: [{ enum: choices }, ...nothing] };
}
