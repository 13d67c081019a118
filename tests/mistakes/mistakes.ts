/**
 * Makes all mistakes and prints the table: `deno task lab mistakes`. It ends with 1
 * when an answer is bad, or when too few are good.
 *
 * With `--answers` it shows what the program said to each.
 *
 * @module
 */

import { textTable } from "../../admin/ask/text_table.ts";
import { countOf, judgeAll, type Judged, sayingOf } from "./mistake_table.ts";
import { GOOD_PERCENT_MIN, POINTS } from "./mistake.ts";
import { MistakeStage } from "./mistake_stage.ts";

function tableOf(judged: readonly Judged[]): string {
  return textTable(
    ["AREA", "MISTAKE", "EXIT", ...POINTS.map((point) => point.toUpperCase())]
      .concat("VERDICT").join(" | "),
    judged.map(({ area, mistake, answer, rating }) => [
      area,
      mistake.what,
      answer.code === undefined ? "-" : String(answer.code),
      ...POINTS.map((point) => rating.lacks.has(point) ? "NO" : "yes"),
      rating.kind,
    ]),
  );
}

if (import.meta.main) {
  const judged = await (async () => {
    await using stage = await MistakeStage.start();
    return await judgeAll(stage);
  })();
  // deno-lint-ignore no-console -- a program for people.
  const print = (text: string) => console.log(text);
  print(tableOf(judged));
  const shown = Deno.args.includes("--answers")
    ? judged
    : judged.filter(({ rating }) => rating.kind !== "good");
  for (const each of shown) print(sayingOf(each));
  const [good, poor, bad] = (["good", "poor", "bad"] as const)
    .map((kind) => countOf(judged, kind));
  const percent = (good! / judged.length * 100).toFixed(1);
  print(
    `${good} good, ${poor} poor, ${bad} bad of ${judged.length}: ${percent} % good`,
  );
  if (bad! > 0 || Number(percent) < GOOD_PERCENT_MIN) Deno.exit(1);
}
