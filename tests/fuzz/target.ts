/**
 * What one fuzz target is. Pure data and functions: running, choosing inputs
 * and keeping crashes is the runner's business.
 *
 * @module
 */

/** One thing to be fed with bytes. */
export interface FuzzTarget {
  /** Also the folder below `corpus/`; lower case. */
  readonly name: string;
  /** Well-formed inputs, to be mutated. */
  readonly seeds: readonly Uint8Array[];
  /** Bytes that mean something to the target, inserted by mutators. */
  readonly dictionary: readonly Uint8Array[];

  /**
   * Cuts an input into its records (frames, messages, lines), of which it is
   * the concatenation. Must cope with any bytes.
   */
  split(input: Uint8Array): Uint8Array[];

  /** Makes a record that was changed inside well-framed again. */
  repair(record: Uint8Array): Uint8Array;

  /**
   * Runs the code under test and checks it. Must depend on nothing but `input`,
   * so that a stored crash is a crash tomorrow; where randomness is needed it is
   * drawn from `prngOf(input)`.
   *
   * @returns A short word for what happened. Inputs with a new one are kept and
   *   mutated further.
   * @throws {Error} Anything thrown is a finding.
   */
  run(input: Uint8Array): string;
}
