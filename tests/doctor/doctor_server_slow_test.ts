/**
 * Doctor names what keeps a server from serving.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { examineAll } from "./doctor_runner.ts";
import { DoctorStage } from "./doctor_stage.ts";
import { settingFaults, stateFaults } from "./server_faults.ts";

Deno.test("doctor says what is wrong with a server's settings", async () => {
  await using stage = await DoctorStage.start();
  const faults = settingFaults(stage);
  assertEquals(await examineAll(faults, stage.path("home")), "");
});

Deno.test("doctor says what is wrong with a server's state and disk", async () => {
  await using stage = await DoctorStage.start();
  const faults = stateFaults(stage);
  assertEquals(await examineAll(faults, stage.path("home")), "");
});
