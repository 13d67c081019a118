/**
 * Files that a person names on a command line are read before anything is
 * served: a slip ends the program in place of serving nothing.
 *
 * @module
 */

import {
  type Source,
  SourceUnusableError,
} from "../../catalog/model/source.ts";
import { CommandFailure, ExitCode } from "./exit_codes.ts";

/** @throws {CommandFailure} For the first that cannot be used. */
export async function readFirst(sources: readonly Source[]): Promise<void> {
  for (const source of sources) {
    try {
      await source.prepare?.();
    } catch (error) {
      if (!(error instanceof SourceUnusableError)) throw error;
      throw new CommandFailure(ExitCode.FAILURE, error.message, error);
    }
  }
}
