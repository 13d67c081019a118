/**
 * Doctor tells lines apart that lose, swallow, reject or cut.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { examineAll } from "./doctor_runner.ts";
import { DoctorStage } from "./doctor_stage.ts";
import { lineFaults } from "./line_faults.ts";
import { whyNoNetworks } from "./network_faults.ts";

Deno.test({
  name: "doctor tells lines that lose, swallow, reject or cut apart",
  ignore: whyNoNetworks() !== undefined,
  async fn() {
    await using stage = await DoctorStage.start();
    const faults = await lineFaults(stage);
    assertEquals(await examineAll(faults, stage.path("home")), "");
  },
});
