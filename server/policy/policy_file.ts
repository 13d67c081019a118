/**
 * The policy that is in use, from a file, reloadable. A new file that cannot be
 * used leaves the old policy in use.
 *
 * @module
 */

import {
  DocumentError,
  parseFile,
  withLine,
} from "../../platform/documents/document.ts";
import { FieldError } from "../../platform/documents/document_map.ts";
import { FileError, systemProblem } from "../../platform/files/file_error.ts";
import { Policy } from "./policy.ts";

/** Longer is no policy but a mistake. */
export const POLICY_BYTES_MAX = 1024 * 1024;

/** One sentence that names the file, the place in it and the remedy. */
export class PolicyError extends FileError {
  override readonly name = "PolicyError";
}

/** A policy file, and the policy that was read from it last. */
export class PolicyFile {
  readonly path: string;
  #text: string;
  #policy: Policy;

  private constructor(path: string) {
    this.path = path;
    this.#text = readText(path);
    this.#policy = readPolicy(path, this.#text);
  }

  /** @throws {PolicyError} */
  static load(path: string): PolicyFile {
    return new PolicyFile(path);
  }

  /** The policy that is in use now. */
  get current(): Policy {
    return this.#policy;
  }

  /**
   * Reads the file again.
   *
   * @returns Whether the policy has changed.
   * @throws {PolicyError} And the old policy stays in use.
   */
  reload(): boolean {
    const text = readText(this.path);
    if (text === this.#text) return false;
    this.#policy = readPolicy(this.path, text);
    this.#text = text;
    return true;
  }
}

function readText(path: string): string {
  try {
    const { size } = Deno.statSync(path);
    if (size > POLICY_BYTES_MAX) {
      throw refusal(path, `it is longer than ${POLICY_BYTES_MAX} bytes`);
    }
    return Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof PolicyError) throw error;
    throw refusal(path, systemProblem(error));
  }
}

/**
 * Reads a policy.
 *
 * @param path For messages; its ending says the form.
 * @throws {PolicyError}
 */
export function readPolicy(path: string, text: string): Policy {
  try {
    // An empty file must not open a door that was closed by one that was full.
    return new Policy(parseFile(path, text));
  } catch (error) {
    if (error instanceof DocumentError) throw refusal(path, error.message);
    if (!(error instanceof FieldError)) throw error;
    throw refusal(path, withLine(text, error));
  }
}

function refusal(path: string, problem: string): PolicyError {
  return new PolicyError(`Cannot use the policy file ${path}: ${problem}`);
}
