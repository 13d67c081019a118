/**
 * Doctor says that descriptors are used up, of an agent and of a server, from
 * each place where somebody would ask.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { descriptorFaults } from "./descriptor_faults.ts";
import { examineAll } from "./doctor_runner.ts";
import { DoctorStage } from "./doctor_stage.ts";

Deno.test("doctor says whose descriptors are used up", async () => {
  await using stage = await DoctorStage.start();
  const faults = await descriptorFaults(stage);
  assertEquals(await examineAll(faults, stage.path("home")), "");
});
