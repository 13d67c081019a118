/**
 * `tunnel explain`: what a code means, why it happens, and what to do.
 *
 * @module
 */

import { AREAS, type Code, CODES, knownCode } from "../proto/codes/codes.ts";
import { RETIRED } from "../proto/codes/retired.ts";
import { nearest } from "../platform/text/nearest.ts";
import { defineCommand } from "./program/command.ts";
import { textTable } from "../admin/ask/text_table.ts";
import { flag, inGroup } from "./flags/flag.ts";
import { HELP_COLUMNS } from "./flags/help_text.ts";
import { wrapped } from "../platform/text/columns.ts";
import { FORM_FLAG, GENERAL_FLAGS } from "./flags/program_flags.ts";
import { UsageError } from "./flags/usage_error.ts";

/** See the module description. */
export const EXPLAIN_COMMAND = defineCommand({
  name: "explain",
  operands: "CODE | LOG LINE… | --all",
  about: [
    "Each refusal, warning and error ends with a code: [TUN503] behind what a " +
    "command says, code=TUN503 in a log line. Give the code, its name such " +
    "as target-refused, the whole line, or words of it.",
  ],
  examples: [
    "tunnel explain TUN503",
    "tunnel explain target-refused",
    "journalctl -u tunnel-agent -n1 | xargs -0 tunnel explain",
    "tunnel explain --all",
  ],
  rights: "look",
  flags: {
    "all": flag.boolean(false, {
      group: "Output",
      help: "List all codes with a line for each.",
    }),
    ...inGroup("Output", FORM_FLAG),
    "help": GENERAL_FLAGS["help"],
  },
  run({ values, operands }, { print }) {
    const isJson = values["output"] === "json";
    if (values["all"]) {
      if (operands.length > 0) {
        throw new UsageError(
          `Cannot explain --all and "${operands[0]}": give one of them`,
        );
      }
      return print(isJson ? asJson(allCodes()) : codeTable());
    }
    const codes = codesIn(operands);
    print(isJson ? asJson(codes) : codes.map(page).join("\n"));
  },
});

/** Limit on pasted text, such as a screen of a log. */
const EXPLAINED_MAX = 10;

const QUOTE_LENGTH_MAX = 60;

/**
 * The codes in typed or pasted words.
 *
 * @throws {UsageError} When there is none.
 */
export function codesIn(words: readonly string[]): Code[] {
  const text = words.join(" ");
  if (text.trim() === "") {
    throw new UsageError(
      "Cannot explain nothing: wanted a code such as TUN503, or --all",
    );
  }
  const found = [...text.matchAll(/(?<![a-z0-9])tun[-_ ]?(\d{3})(?!\d)/gi)]
    .map(([, digits]) => `TUN${digits}`);
  const known = found.flatMap((text) => knownCode(text) ?? []);
  const slugged = known.length > 0 ? known : withSlugs(text);
  const named = slugged.length > 0 ? slugged : speakingOf(text);
  if (named.length > 0) return [...new Set(named)].slice(0, EXPLAINED_MAX);
  const shown = JSON.stringify(text.slice(0, QUOTE_LENGTH_MAX));
  throw new UsageError(
    `Cannot explain ${shown}: no code of this version is in it` +
      `${hint(found[0] ?? text.trim())} (tunnel explain --all lists all)`,
  );
}

/** Bare digits and names are what people type from memory. */
function withSlugs(text: string): Code[] {
  const words = new Set(text.toLowerCase().match(/[a-z0-9]+(-[a-z0-9]+)*/g));
  const named = allCodes().filter((code) =>
    words.has(CODES[code].slug) || text.trim() === code.slice(3)
  );
  const retired = Object.values(RETIRED)
    .flatMap(([slug, code]) => words.has(slug) ? [code as Code] : []);
  return [...named, ...retired];
}

/** Codes in whose texts all the words are, those with all in the title first. */
function speakingOf(text: string): Code[] {
  const wordsOf = (said: string) =>
    said.toLowerCase().match(/[a-z]{3,}/g) ?? [];
  const words = wordsOf(text);
  const having = (said: (code: Code) => string) =>
    words.length === 0 ? [] : allCodes().filter((code) => {
      const there = new Set(wordsOf(said(code)));
      return words.every((word) => there.has(word));
    });
  const titled = having((code) => CODES[code].title);
  return titled.length > 0 ? titled : having((code) => {
    const { slug, means, causes } = CODES[code];
    return [slug, means, ...causes].join(" ");
  });
}

function hint(seen: string): string {
  const slugs = new Map(allCodes().map((code) => [CODES[code].slug, code]));
  const near = nearest(seen, [...slugs.keys(), ...allCodes()]);
  if (near === undefined) return "";
  const code = slugs.get(near);
  return `; did you mean ${code === undefined ? near : `${near}, ${code}`}?`;
}

function allCodes(): Code[] {
  return Object.keys(CODES) as Code[];
}

function asJson(codes: readonly Code[]): string {
  const rows = codes.map((code) => ({ code, ...CODES[code] }));
  return `${JSON.stringify(rows, null, 2)}\n`;
}

function codeTable(): string {
  return textTable(
    "CODE | NAME | MEANS",
    allCodes().map((code) => [code, CODES[code].slug, CODES[code].title]),
  );
}

/** All that is known of one code. */
function page(code: Code): string {
  const { slug, title, means, causes, mend, see } = CODES[code];
  const list = (items: readonly string[]) =>
    items.flatMap((item) =>
      wrapped(item, HELP_COLUMNS - 4)
        .map((line, index) => `${index === 0 ? "  - " : "    "}${line}`)
    );
  return [
    `${code}  ${title}`,
    `(${slug}; ${AREAS[code[3]!]})`,
    "",
    ...wrapped(means, HELP_COLUMNS),
    "",
    "Why:",
    ...list(causes),
    "What to do:",
    ...list(mend),
    "",
    `More: docs/${see}`,
    "",
  ].join("\n");
}
