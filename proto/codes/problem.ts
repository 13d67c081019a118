/**
 * The text about a problem that has a code.
 *
 * A code never changes its meaning, because scripts and tickets name it. The
 * words of a row may improve; a code that is no longer used goes to
 * `retired.ts`, with the code that says the same now.
 *
 * @module
 */

/** One row of the table. Words in backticks are commands, flags and files. */
export interface Problem {
  /** What people may type instead of the code; stays as well. */
  readonly slug: string;
  /** One line, without a full stop. */
  readonly title: string;
  /** What was seen, and its consequences. */
  readonly means: string;
  /** The usual reasons, the most usual first. */
  readonly causes: readonly string[];
  /** What to do, in the order in which to try. */
  readonly mend: readonly string[];
  /** The page of `docs/` that says more. */
  readonly see: string;
}

/** The rows of one area, by code. */
export type Area = Readonly<Record<`TUN${number}`, Problem>>;
