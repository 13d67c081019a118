/**
 * A mistake that people make, what the program should answer, and whether what
 * it did answer was good.
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
  readonly stdin?: string;
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

/** What an answer must be; each is judged by itself. */
export const POINTS = [
  /** Names what was seen, and falls over nothing. */
  "understandable",
  /** In the same line, which can be read to its end, and alone. */
  "next step",
  "exit code",
  /** Where people and scripts look for it. */
  "stderr",
  "no hang",
] as const;

/** One of {@linkcode POINTS}. */
export type Point = typeof POINTS[number];

/**
 * - `poor`: one can find out what is wrong, but not what to do, or it is noisy.
 * - `bad`: it misleads, is silent, has the wrong exit code, hangs, or falls.
 */
export interface Rating {
  readonly kind: "good" | "poor" | "bad";
  /** The points that it lacks, and why. */
  readonly lacks: ReadonlyMap<Point, string>;
}

/** Of a hundred answers, how many must be good. */
export const GOOD_PERCENT_MIN = 95;

/** A line that nobody reads to its end. */
export const LINE_CHARACTERS_MAX = 320;

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

/** See the module description. */
export function rate(mistake: Mistake, answer: Answer): Rating {
  const lacks = new Map<Point, string>();
  const { code, stderr, tookMs } = answer;
  const wanted = mistake.exit === "runs on" ? undefined : mistake.exit;
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  // What a program did before is no answer, and may be said.
  const told = lines.filter((line) => !DONE.test(line));
  const reported = told.findLast((line) => mistake.says.test(line));
  if (lines.length === 0) lacks.set("stderr", "it says nothing");
  if (FALL.test(stderr)) lacks.set("understandable", "it fell");
  else if (reported === undefined) {
    lacks.set("understandable", `nothing says ${mistake.says}`);
  }
  if (code !== wanted) {
    lacks.set(
      code === undefined ? "no hang" : "exit code",
      `ended with ${code ?? "nothing"}, not ${wanted ?? "nothing"}`,
    );
  } else if (tookMs > ANSWER_MS_MAX) {
    lacks.set("no hang", `an answer after ${(tookMs / 1_000).toFixed(1)} s`);
  }
  if (reported !== undefined) {
    const others = wanted === undefined ? 0 : told.length - 1;
    const problem = stepProblem(mistake, reported, others);
    if (problem !== undefined) lacks.set("next step", problem);
  }
  const isBad = [...lacks.keys()].some((point) => point !== "next step");
  return { kind: isBad ? "bad" : lacks.size > 0 ? "poor" : "good", lacks };
}

/** @param others Lines beside the one that says what is wrong. */
function stepProblem(
  mistake: Mistake,
  line: string,
  others: number,
): string | undefined {
  if (!mistake.next.test(line)) return `no word of ${mistake.next}`;
  if (line.length > LINE_CHARACTERS_MAX) {
    return `a line of ${line.length} characters`;
  }
  return others > 0 ? `${others} more lines` : undefined;
}
