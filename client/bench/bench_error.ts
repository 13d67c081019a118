/**
 * Why a tunnel cannot be measured.
 *
 * @module
 */

/** One sentence for whoever asked. */
export class BenchError extends Error {
  override readonly name = "BenchError";
}
