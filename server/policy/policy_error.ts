/**
 * What is wrong with a policy file.
 *
 * @module
 */

import { FileError } from "../../platform/files/file_error.ts";

/** One sentence that names the file, the place in it and the remedy. */
export class PolicyError extends FileError {
  override readonly name = "PolicyError";
}
