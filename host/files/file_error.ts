/**
 * What is wrong with a file that somebody gave us, in one sentence.
 *
 * @module
 */

/** A file that cannot be used. `message` names it and the remedy. */
export class FileError extends Error {
  override readonly name: string = "FileError";
}
