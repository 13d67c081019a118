/**
 * A hundred and fifty mistakes, made with the real program: nearly every answer
 * is good, and none is bad.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { commandLineMistakes } from "./command_line.ts";
import { dialingMistakes } from "./dialing.ts";
import { joiningMistakes } from "./joining.ts";
import { type Mistake, rate, type Rating } from "./mistake.ts";
import { answerTo } from "./mistake_runner.ts";
import { MistakeStage } from "./mistake_stage.ts";
import { serviceMistakes } from "./services.ts";
import { servingMistakes } from "./serving.ts";
import { stateMistakes } from "./states.ts";

/** Of a hundred answers, how many must be good. */
const GOOD_PERCENT_MIN = 95;

/** Programs that run at once. */
const AT_ONCE = 3;

const AREAS = [
  commandLineMistakes,
  joiningMistakes,
  stateMistakes,
  dialingMistakes,
  servingMistakes,
  serviceMistakes,
];

/** One line for each answer that was not good, with what was said. */
interface Rated {
  readonly rating: Rating;
  readonly line: string;
}

async function rated(mistake: Mistake, home: string): Promise<Rated> {
  let answer: Awaited<ReturnType<typeof answerTo>> | undefined;
  const run = async () => void (answer = await answerTo(mistake, home));
  await (mistake.around === undefined ? run() : mistake.around(run));
  const rating = rate(mistake, answer!);
  const because = rating.kind === "good" ? "" : `: ${rating.because}`;
  return {
    rating,
    line: `${rating.kind} ${mistake.what}${because}\n` +
      `    ended with ${answer!.code}: ${answer!.stderr.trim().slice(0, 800)}`,
  };
}

Deno.test("who makes a mistake is told what is wrong and what to do", async () => {
  await using stage = await MistakeStage.start();
  const home = stage.directory("home");
  const mistakes = AREAS.flatMap((mistakesOf) => mistakesOf(stage));
  const names = new Set(mistakes.map(({ what }) => what));
  assertEquals(names.size, mistakes.length, "two mistakes of one name");
  const left = [...mistakes];
  const all: Rated[] = [];
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      all.push(await rated(next, home));
    }
  }));
  const of = (kind: Rating["kind"]) =>
    all.filter(({ rating }) => rating.kind === kind);
  const report = [...of("bad"), ...of("poor")]
    .map(({ line }) => line).join("\n");
  assertEquals(of("bad").length, 0, report);
  const percent = of("good").length / all.length * 100;
  assertEquals(percent >= GOOD_PERCENT_MIN, true, `${percent} %\n${report}`);
});
