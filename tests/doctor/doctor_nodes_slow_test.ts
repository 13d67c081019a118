/**
 * Doctor names what is wrong with a node, as its server sees it.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { nodeFaults } from "./node_faults.ts";
import { examineAll } from "./doctor_runner.ts";
import { DoctorStage } from "./doctor_stage.ts";

Deno.test("doctor says why a node is not online", async () => {
  await using stage = await DoctorStage.start();
  const faults = await nodeFaults(stage);
  assertEquals(await examineAll(faults, stage.path("home")), "");
});
