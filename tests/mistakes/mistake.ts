/**
 * A mistake that people make, what the program should answer, and whether what
 * it did answer was good.
 *
 * An answer is good when it says what was seen and what to do, in one line that
 * can be read, ends with the exit code that scripts rely on, and comes in time.
 *
 * @module
 */

/** One mistake. */
export interface Mistake {
  /** What somebody did, in words; unique. */
  readonly what: string;
  /** The words behind `tunnel`. */
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** 2: how it was called. 1: the world. 3: somebody refused. */
  readonly exit: number | "runs on";
  /** What is wrong, in the answer. */
  readonly says: RegExp;
  /** What to do about it. */
  readonly next: RegExp;
  /** What is prepared, and undone. */
  readonly around?: (run: () => Promise<void>) => Promise<void>;
  /** Words in front of the program, such as a shell that sets a limit. */
  readonly prefix?: readonly string[];
}

/** What came of it. */
export interface Answer {
  /** `undefined`: it had to be ended. */
  readonly code: number | undefined;
  readonly stderr: string;
}

/**
 * - `poor`: one can find out what is wrong, but not what to do, or it is noisy.
 * - `bad`: it misleads, is silent, has the wrong exit code, hangs, or falls.
 */
export type Rating =
  | { readonly kind: "good" }
  | { readonly kind: "poor" | "bad"; readonly because: string };

/** A line that nobody reads to its end. */
export const LINE_CHARACTERS_MAX = 320;

/** Reports of our own faults, and of the platform's. */
const FALL = new RegExp(
  [
    String.raw`TypeError|RangeError|ReferenceError|AssertionError|Uncaught`,
    String.raw`\bundefined\b|\[object |panicked|This is a bug`,
    String.raw`^\s+at .*:\d+:\d+`,
  ].join("|"),
  "m",
);

/** A line of the log about what went well. */
const DONE = /^\S+Z INFO (?!.*(?:Cannot|trying again))|^\S+Z INFO joining/;

/** See the module description. */
export function rate(mistake: Mistake, answer: Answer): Rating {
  const bad = (because: string): Rating => ({ kind: "bad", because });
  const poor = (because: string): Rating => ({ kind: "poor", because });
  const { code, stderr } = answer;
  const wanted = mistake.exit === "runs on" ? undefined : mistake.exit;
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  // What a program did before is no answer, and may be said.
  const reported = lines.filter((line) => !DONE.test(line))
    .findLast((line) => mistake.says.test(line));
  if (FALL.test(stderr)) return bad("it fell");
  if (lines.length === 0) return bad("it says nothing");
  if (reported === undefined) return bad(`nothing says ${mistake.says}`);
  if (code !== wanted) {
    return bad(`ended with ${code ?? "nothing"}, not ${wanted ?? "nothing"}`);
  }
  if (!mistake.next.test(reported)) return poor(`no word of ${mistake.next}`);
  if (reported.length > LINE_CHARACTERS_MAX) {
    return poor(`a line of ${reported.length} characters`);
  }
  const others = lines.filter((line) => !DONE.test(line)).length - 1;
  if (mistake.exit !== "runs on" && others > 0) {
    return poor(`${others} more lines`);
  }
  return { kind: "good" };
}
