/**
 * `--agent-identifiers`, read strictly: this is the agent's own flag, and a
 * mistake here makes a node unreachable without any other sign.
 *
 * @module
 */

import {
  IdentifiersError,
  NO_IDENTIFIERS,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";
import type { Identifiers } from "../../proto/peer/identifiers.ts";
import {
  type Flag,
  type FlagDetails,
  FlagValueError,
  parsedFlag,
} from "./flag.ts";

/** A URL query of what an agent serves. */
export function identifiersFlag(details: FlagDetails): Flag<Identifiers> {
  return parsedFlag(NO_IDENTIFIERS, (text) => {
    try {
      return parseIdentifiers(text, "flag");
    } catch (error) {
      if (!(error instanceof IdentifiersError)) throw error;
      throw new FlagValueError(
        `wanted key=value pairs joined by &. ${error.message}`,
      );
    }
  }, details);
}
