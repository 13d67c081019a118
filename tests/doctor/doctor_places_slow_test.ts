/**
 * Doctor names what is at a server's address in place of a server.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { placeFaults } from "./agent_faults.ts";
import { examineAll } from "./doctor_runner.ts";
import { DoctorStage } from "./doctor_stage.ts";

Deno.test("doctor says what keeps an agent from where its server should be", async () => {
  await using stage = await DoctorStage.start();
  const faults = await placeFaults(stage);
  assertEquals(await examineAll(faults, stage.path("home")), "");
});
