/**
 * What can be wrong with the state, in sentences that name the record and the
 * way out; and how a record is read that must be whole.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import type { StateRecords } from "./state_engine.ts";

/** A state, or a record of it, that cannot be used. */
export class StateError extends Error {
  override readonly name: string = "StateError";

  constructor(
    message: string,
    readonly tunnelCode: Code = "TUN801",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** What the state is kept in cannot be reached now: nothing is changed. */
export class StateAwayError extends StateError {
  override readonly name = "StateAwayError";
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

/** How sentences name records. */
type Named = Pick<StateRecords, "noun" | "where">;

/**
 * A record's text.
 *
 * @param how `look`: a change does not depend on it.
 * @throws {StateError} When it is there and empty.
 */
export async function readRecord(
  records: StateRecords,
  key: string,
  how: "read" | "look" = "read",
): Promise<string | undefined> {
  const text = await records[how](key);
  if (text === "") throw damaged(records, key, "it is empty");
  return text;
}

/** A record's text. @throws {StateError} When there is none. */
export async function needRecord(
  records: StateRecords,
  key: string,
  secrecy?: "secret",
): Promise<string> {
  const text = await records.read(key, secrecy);
  if (text === undefined) {
    throw new StateError(
      `Cannot use ${records.where(key)}: there is no such record; ` +
        restore(records),
    );
  }
  if (text === "") throw damaged(records, key, "it is empty");
  return text;
}

/** A record's text as JSON. @throws {StateError} */
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

/** Something in the state that is not as it was written. */
export function damaged(
  records: Named,
  key: string,
  seen: string,
): StateError {
  // One token or node is no reason to go back to a backup.
  const [, what, name] = /^(token|node)s\/([^/]+?)(?:\.json|\.use-\d+)$/
    .exec(key) ?? [];
  const remedy = what === "token"
    ? `\`tunnel token revoke ${name}\` removes it`
    : what === "node"
    ? `\`tunnel node forget ${name}\` removes it, and the node joins again`
    : restore(records);
  return new StateError(
    `Cannot use ${records.where(key)}: ${seen}; ${remedy}. Nothing was changed`,
  );
}

function restore({ noun }: Named): string {
  return `restore ${noun} from a backup (docs/identity.md)`;
}
