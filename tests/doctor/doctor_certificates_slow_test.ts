/**
 * Doctor names certificates and clocks that are wrong.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { certificateFaults } from "./agent_faults.ts";
import { examineAll } from "./doctor_runner.ts";
import { DoctorStage } from "./doctor_stage.ts";

Deno.test("doctor tells certificates, keys and clocks that are wrong apart", async () => {
  await using stage = await DoctorStage.start();
  const faults = await certificateFaults(stage);
  assertEquals(await examineAll(faults, stage.path("home")), "");
});
