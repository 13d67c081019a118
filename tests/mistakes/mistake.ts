/**
 * A mistake that people make, what the program should answer, and what an
 * answer lacks.
 *
 * An answer is good when it says what was seen and what to do, in one line that
 * can be read, ends with the exit code that scripts rely on, and comes in time.
 *
 * @module
 */

import type { Surroundings } from "./surroundings.ts";

/** One mistake. */
export interface Mistake extends Surroundings {
  /** What somebody did, in words; unique. */
  readonly what: string;
  /** The words behind `tunnel`. */
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** 2: how it was called. 1: the world. 3: somebody refused. */
  readonly exit: number | "runs on";
  /** What is wrong, in the answer. */
  readonly says: RegExp;
  /** What to do about it. */
  readonly next: RegExp;
}

/** Ports of an agent that nobody asks at. */
export const QUIET_AGENT = [
  "agent",
  "--health-server-port=0",
  "--admin-server-port=0",
] as const;

/** A server on ports of its own choice. */
export const ANY_SERVER = [
  "server",
  "--agent-port=0",
  "--health-port=0",
  "--admin-port=0",
] as const;

/** Words, or one text of them with blanks between. */
type Words = string | readonly string[];

/** What a table says of a mistake behind its name, in this order. */
type Row = [words: Words, says: RegExp, next: RegExp, more?: Partial<Mistake>];

/**
 * Makes the rows of a table of mistakes that end in the same way.
 *
 * @param argsOf The whole command line, of the words of a row.
 */
export function ending(
  exit: Mistake["exit"],
  argsOf: (words: readonly string[]) => readonly string[] = (words) => words,
): (what: string, ...row: Row) => Mistake {
  return (what, words, says, next, more) => {
    const split = typeof words === "string" ? words.split(" ") : words;
    return { what, args: argsOf(split), exit, says, next, ...more };
  };
}

/** How a command was called: words that end with exit code 2. */
export const usage = ending(2);

/** What came of it. */
export interface Answer {
  /** `undefined`: it had to be ended. */
  readonly code: number | undefined;
  readonly stderr: string;
  /** How long it took to end, or to say what is wrong. */
  readonly tookMs: number;
}

/** A line that nobody reads to its end. */
const LINE_CHARACTERS_MAX = 320;

/**
 * The longest dial of ours is given up after ten seconds; the rest is for a
 * machine on which much runs.
 */
const ANSWER_MS_MAX = 30_000;

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

/** @returns What the answer lacks; nothing: it is good. */
export function lacksOf(
  mistake: Mistake,
  { code, stderr, tookMs }: Answer,
): readonly string[] {
  const wanted = mistake.exit === "runs on" ? undefined : mistake.exit;
  // What a program did before is no answer, and may be said.
  const told = stderr.split("\n")
    .filter((line) => line.trim() !== "" && !DONE.test(line));
  const reported = told.findLast((line) => mistake.says.test(line));
  const lacks: readonly (readonly [boolean, string])[] = [
    [FALL.test(stderr), "it fell"],
    [reported === undefined, `nothing says ${mistake.says}`],
    [code !== wanted, `it ended with ${code}, not ${wanted}`],
    [tookMs > ANSWER_MS_MAX, `an answer after ${Math.round(tookMs)} ms`],
    [!mistake.next.test(reported ?? ""), `no word of ${mistake.next}`],
    [
      reported !== undefined && reported.length > LINE_CHARACTERS_MAX,
      `a line of ${reported?.length} characters`,
    ],
    [
      wanted !== undefined && told.length > 1,
      `${told.length - 1} lines beside that`,
    ],
  ];
  return lacks.flatMap(([isSo, what]) => isSo ? [what] : []);
}
