/**
 * Why a tunnel cannot be measured.
 *
 * @module
 */

/** One sentence for the caller. */
export class BenchError extends Error {
  override readonly name = "BenchError";
}
