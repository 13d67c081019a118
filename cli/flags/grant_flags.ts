/**
 * Flags about nodes: which names, and what they serve or may announce. Checked here, so that a mistake is one of the command line.
 *
 * @module
 */

import {
  type Identifiers,
  IdentifiersError,
  NO_IDENTIFIERS,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";
import {
  isNamePattern,
  NAME_PATTERN_RULE,
} from "../../server/identity/claims.ts";
import {
  type Flag,
  type FlagDetails,
  FlagValueError,
  parsedFlag,
} from "./flag.ts";

/** A pattern of node names; `*`, which all have, if not given. */
export function namePatternFlag(details: FlagDetails): Flag<string> {
  return parsedFlag("*", (text) => {
    if (isNamePattern(text)) return text;
    throw new FlagValueError(`wanted ${NAME_PATTERN_RULE}`);
  }, { placeholder: "PATTERN", defaultText: "*", ...details });
}

/** A URL query of what an agent serves. */
export function identifiersFlag(details: FlagDetails): Flag<Identifiers> {
  return parsedFlag(NO_IDENTIFIERS, readIdentifiers, details);
}

/**
 * The same, kept as it was written.
 *
 * @param none A text that stands for no identifiers at all.
 */
export function grantsFlag(details: FlagDetails, none?: string): Flag<string> {
  return parsedFlag("", (text) => {
    if (text !== none) readIdentifiers(text);
    return text;
  }, { placeholder: "QUERY", ...details });
}

/** @throws {FlagValueError} */
function readIdentifiers(text: string): Identifiers {
  try {
    return parseIdentifiers(text, "flag");
  } catch (error) {
    if (!(error instanceof IdentifiersError)) throw error;
    throw new FlagValueError(
      `wanted key=value pairs joined by &. ${error.message}`,
    );
  }
}
