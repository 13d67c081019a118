/**
 * Doctor names what keeps a dial from its target.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { examineAll } from "./doctor_runner.ts";
import { DoctorStage } from "./doctor_stage.ts";
import { policyFlags, targetFaults } from "./target_faults.ts";

Deno.test("doctor says where a dial ends, and what mends it", async () => {
  const folder = await Deno.makeTempDir();
  const policy = policyFlags({ path: (name) => `${folder}/${name}` });
  try {
    await using stage = await DoctorStage.start(`--policy-file=${policy}`);
    const faults = await targetFaults(stage);
    assertEquals(await examineAll(faults, stage.path("home")), "");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
