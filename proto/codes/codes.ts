/**
 * The table of all problems that users can be told of, by code: `TUN` and three
 * digits, of which the first is the area. `tunnel explain` and docs/reference/errors.md
 * say what stands here.
 *
 * @module
 */

import { COMMAND_LINE } from "./command_line.ts";
import { DIALS } from "./dials.ts";
import { JOINING } from "./joining.ts";
import { LINKS } from "./links.ts";
import { MACHINE } from "./machine.ts";
import type { Problem } from "./problem.ts";
import { RETIRED } from "./retired.ts";
import { DISCOVERY, POLICY, SERVERS } from "./servers.ts";
import { TLS } from "./tls.ts";

const TABLE = {
  ...COMMAND_LINE,
  ...TLS,
  ...JOINING,
  ...LINKS,
  ...DIALS,
  ...POLICY,
  ...DISCOVERY,
  ...SERVERS,
  ...MACHINE,
} as const;

/** A code that is in the table. */
export type Code = keyof typeof TABLE;

/** The table. */
export const CODES: Readonly<Record<Code, Problem>> = TABLE;

/** What the first digit means. */
export const AREAS: Readonly<Record<string, string>> = {
  1: "Command line and configuration",
  2: "TLS and certificates",
  3: "Identity and joining",
  4: "Links",
  5: "Dials and targets",
  6: "Policy",
  7: "Services and discovery",
  8: "Servers and state",
  9: "The machine",
};

/**
 * The code that `text` names, which may be a peer's; of a retired one the code
 * that says the same now.
 */
export function knownCode(text: string): Code | undefined {
  if (Object.hasOwn(CODES, text)) return text as Code;
  return Object.hasOwn(RETIRED, text) ? RETIRED[text]![1] as Code : undefined;
}

// How a code travels: on the error itself.
//
// An error that users may see has a `tunnelCode`. `code` was taken: it is the
// system's `E…`, gRPC's status and a command's exit code already.

/** What an error has whose problem is in the table. */
interface Coded {
  readonly tunnelCode?: Code | undefined;
}

/** More causes than any error of ours has. */
const CAUSES_MAX = 8;

/** The code of an error, or of its cause; undefined if none has one. */
export function tunnelCodeOf(error: unknown): Code | undefined {
  let at: unknown = error;
  for (let depth = 0; depth < CAUSES_MAX; depth++) {
    if (!(at instanceof Error)) return undefined;
    const { tunnelCode } = at as Coded;
    const known = typeof tunnelCode === "string"
      ? knownCode(tunnelCode)
      : undefined;
    if (known !== undefined) return known;
    at = at.cause;
  }
  return undefined;
}

/** A sentence followed by its code, as at the end of commands: `… [TUN503]`. */
export function withCode(message: string, code: Code | undefined): string {
  return code === undefined ? message : `${message} [${code}]`;
}
