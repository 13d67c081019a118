/**
 * Doctor sees that a node's identity was copied.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { examineAll } from "./doctor_runner.ts";
import { DoctorStage } from "./doctor_stage.ts";
import { copiedFaults } from "./target_faults.ts";

Deno.test("doctor says that two machines use one identity", async () => {
  await using stage = await DoctorStage.start();
  const faults = await copiedFaults(stage);
  assertEquals(await examineAll(faults, stage.path("home")), "");
});
