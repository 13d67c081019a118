/**
 * What can be wrong with the state, in sentences that name the record and the
 * way out; and how a record is read that must be whole.
 *
 * @module
 */

import type { Log } from "../../platform/log/log.ts";
import { type Code, tunnelCodeOf } from "../../proto/codes/codes.ts";
import type { Records } from "./store.ts";

/** A state, or a record of it, that cannot be used. */
export class StoreError extends Error {
  override readonly name: string = "StoreError";

  constructor(
    message: string,
    readonly tunnelCode: Code = "TUN801",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The store cannot be reached now: nothing is changed. */
export class StoreAwayError extends StoreError {
  override readonly name = "StoreAwayError";
  /** A change was sent, and whether it was made is not known. */
  readonly isOpen: boolean;

  constructor(
    message: string,
    { isOpen = false, ...options }: ErrorOptions & { isOpen?: boolean } = {},
  ) {
    super(message, "TUN802", options);
    this.isOpen = isOpen;
  }
}

/** One line for the log. */
export function awayLine({ noun }: Named, why: string): string {
  return `${noun} is away: ${why}; known nodes go on, no node joins ` +
    "and nothing is changed until it is back";
}

/** One line for the log. @param awayMs For how long it was. */
export function backLine({ noun }: Named, awayMs: number): string {
  const seconds = Math.round(awayMs / 1_000);
  return `${noun} is back after ${seconds} s, and was read again`;
}

/** Logs the problems of a server's state. */
export function logState(
  log: Pick<Log, "error">,
  error: Error,
  more = "",
): void {
  log.error(error.message + more, { code: tunnelCodeOf(error) ?? "TUN801" });
}

/** What another program answered. @throws What `worded` makes of its error. */
export async function inWords<Result>(
  worded: (error: unknown) => unknown,
  answer: Promise<Result>,
): Promise<Result> {
  try {
    return await answer;
  } catch (error) {
    throw worded(error);
  }
}

/** How sentences name records. */
type Named = Pick<Records, "noun" | "where">;

/**
 * A record's text.
 *
 * @param how `look`: a change does not depend on it.
 * @throws {StoreError} When it is there and empty.
 */
export async function readRecord(
  records: Records,
  key: string,
  how: "read" | "look" = "read",
): Promise<string | undefined> {
  const text = await records[how](key);
  if (text === "") throw damaged(records, key, "it is empty");
  return text;
}

/** A record's text. @throws {StoreError} When there is none. */
export async function needRecord(
  records: Records,
  key: string,
  secrecy?: "secret",
): Promise<string> {
  const text = await records.read(key, secrecy);
  if (text === undefined) {
    throw new StoreError(
      `Cannot use ${records.where(key)}: there is no such record; ` +
        restore(records),
    );
  }
  if (text === "") throw damaged(records, key, "it is empty");
  return text;
}

/** A record's text as JSON. @throws {StoreError} */
export function parseRecord(
  records: Named,
  key: string,
  text: string,
): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The platform's message is about a character; the reader wants the file.
    throw damaged(records, key, "it is no whole JSON document");
  }
}

/** A damaged part of the state. */
export function damaged(
  records: Named,
  key: string,
  seen: string,
): StoreError {
  // One token or node is no reason to go back to a backup.
  const [, what, name] = /^(token|node)s\/([^/]+?)(?:\.json|\.use-\d+)$/
    .exec(key) ?? [];
  const remedy = what === "token"
    ? `\`tunnel token revoke ${name}\` removes it`
    : what === "node"
    ? `\`tunnel node forget ${name}\` removes it, and the node joins again`
    : restore(records);
  return new StoreError(
    `Cannot use ${records.where(key)}: ${seen}; ${remedy}. Nothing was changed`,
  );
}

function restore({ noun }: Named): string {
  return `restore ${noun} from a backup (docs/identity.md)`;
}
