/**
 * A file of `--config`, which is a map of a command's flags: what is wrong with
 * it, and its schema, both from the table of flags.
 *
 * @module
 */

import {
  FieldError,
  kindOfValue,
} from "../../platform/documents/document_map.ts";
import type { JsonSchema } from "../../platform/documents/json_schema.ts";
import { clipped } from "../../proto/peer/quoted.ts";
import { canonicalNames } from "../flags/arguments.ts";
import { didYouMean } from "../../platform/text/nearest.ts";
import { type Flag, type FlagTable, FlagValueError } from "../flags/flag.ts";
import { readFlags } from "../flags/read_flags.ts";
import type { Command } from "../program/command.ts";
import { shownDefault } from "../flags/help_text.ts";

/** All that is wrong with such a document, in its order. */
export function flagProblems(table: FlagTable, value: unknown): FieldError[] {
  if (value === null || value === undefined) return [];
  if (typeof value !== "object" || Array.isArray(value)) {
    const seen = kindOfValue(value);
    return [
      new FieldError([], `saw ${seen}, wanted a map of flag names to values`),
    ];
  }
  const names = canonicalNames(table);
  const seen = new Set<string>();
  return Object.entries(value).flatMap(([key, given]) => {
    const say = (problem: string) => [new FieldError([key], problem)];
    const name = names.get(key.replaceAll("_", "-"));
    if (name === undefined || name === "config") {
      const hint = didYouMean(key.slice(0, 100), names.keys());
      return say(`there is no such flag${hint}`);
    }
    if (seen.has(name)) return say(`--${name} is there twice; keep one`);
    seen.add(name);
    return valueProblems(table[name]!, given).flatMap(say);
  });
}

/**
 * What is wrong with a document's flags together, each value being right.
 *
 * @param argv Flags beside the file; variables may be others where it is used.
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

function valueProblems(flag: Flag<unknown>, given: unknown): string[] {
  if (given === null || given === "") return [];
  const items = (Array.isArray(given) ? given : [given]).flat(Infinity);
  return items.flatMap((item) => {
    if (!["string", "number", "boolean"].includes(typeof item)) {
      return [
        `saw ${
          kindOfValue(item)
        }, wanted a text, a number, a boolean or a list`,
      ];
    }
    const text = String(item);
    try {
      const read = flag.parse(text);
      const isIdle = JSON.stringify(read) === JSON.stringify(flag.fallback);
      return flag.status.kind === "missing" && !isIdle
        ? [`${flag.status.because}; remove it`]
        : [];
    } catch (error) {
      if (!(error instanceof FlagValueError)) throw error;
      const seen = error.quotes ? "" : `saw "${clipped(text)}", `;
      return [`${seen}${error.message}`];
    }
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
