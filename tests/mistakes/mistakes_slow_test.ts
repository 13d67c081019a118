/**
 * More than two hundred mistakes, made with the real program: nearly every
 * answer is good, and none is bad.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { countOf, judgeAll, sayingOf } from "./mistake_table.ts";
import { GOOD_PERCENT_MIN } from "./mistake.ts";
import { MistakeStage } from "./mistake_stage.ts";

Deno.test("who makes a mistake is told what is wrong and what to do", async () => {
  await using stage = await MistakeStage.start();
  const judged = await judgeAll(stage);
  const report = judged.filter(({ rating }) => rating.kind !== "good")
    .map(sayingOf).join("\n");
  assertEquals(countOf(judged, "bad"), 0, report);
  const percent = countOf(judged, "good") / judged.length * 100;
  assertEquals(percent >= GOOD_PERCENT_MIN, true, `${percent} %\n${report}`);
});
