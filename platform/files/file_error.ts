/**
 * What is wrong with a file that the user gave us, in one sentence.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";

export { systemProblem } from "../errors/error_code.ts";

/** The machine's fault, such as a full disk: not a peer's, and no bug. */
export function isSystemError(
  error: unknown,
): error is Error & { readonly code: string } {
  return error instanceof Error && "code" in error &&
    typeof error.code === "string" && /^E[A-Z]+$/.test(error.code);
}

/** How it went with a file; `undefined`: there is no such file. */
export async function ifThere<Result>(
  doing: Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await doing;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** A file that cannot be used. `message` names it and the remedy. */
export class FileError extends Error {
  override readonly name: string = "FileError";
  readonly tunnelCode: Code = "TUN114";
  /** When it becomes usable, in Unix milliseconds; absent: never. */
  readonly goodFromMs?: number;

  constructor(
    message: string,
    options?: ErrorOptions & { readonly goodFromMs?: number },
  ) {
    super(message, options);
    const { goodFromMs } = options ?? {};
    if (goodFromMs !== undefined) this.goodFromMs = goodFromMs;
  }
}
