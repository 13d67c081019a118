/**
 * Doctor tells networks apart that lose packets, lead nowhere or know no names.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { examineAll } from "./doctor_runner.ts";
import { DoctorStage } from "./doctor_stage.ts";
import { networkFaults, whyNoNetworks } from "./network_faults.ts";

Deno.test({
  name: "doctor tells filtered, unroutable and nameless servers apart",
  ignore: whyNoNetworks() !== undefined,
  async fn() {
    await using stage = await DoctorStage.start();
    const faults = await networkFaults(stage);
    assertEquals(await examineAll(faults, stage.path("home")), "");
  },
});
