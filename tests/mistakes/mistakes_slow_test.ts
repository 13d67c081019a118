/**
 * Each of the mistakes that people make gets a good answer.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { badAnswers } from "./mistake_table.ts";
import { MistakeStage } from "./mistake_stage.ts";

Deno.test("who makes a mistake is told what is wrong and what to do", async () => {
  await using stage = await MistakeStage.start();
  assertEquals((await badAnswers(stage)).join("\n"), "");
});
