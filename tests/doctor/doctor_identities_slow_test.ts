/**
 * Doctor names identities that are missing, or not let in.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { identityFaults } from "./agent_faults.ts";
import { examineAll } from "./doctor_runner.ts";
import { DoctorStage } from "./doctor_stage.ts";

Deno.test("doctor says why a node is not let in", async () => {
  await using stage = await DoctorStage.start();
  const faults = await identityFaults(stage);
  assertEquals(await examineAll(faults, stage.path("home")), "");
});
