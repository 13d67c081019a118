/**
 * What is wrong with a policy file.
 *
 * @module
 */

/** One sentence that names the file, the place in it and the remedy. */
export class PolicyError extends Error {
  override readonly name = "PolicyError";
}
