/**
 * Doctor names tokens that no node will join with, and uses none.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { tokenFaults } from "./agent_faults.ts";
import { examine, examineAll } from "./doctor_runner.ts";
import { DoctorStage } from "./doctor_stage.ts";

Deno.test("doctor says what is wrong with a token without using it", async () => {
  await using stage = await DoctorStage.start();
  const faults = await tokenFaults(stage);
  assertEquals(await examineAll(faults, stage.path("home")), "");
});

Deno.test("a token that doctor has looked at is as good as before", async () => {
  await using stage = await DoctorStage.start();
  const token = await stage.identity.createToken("--uses=1");
  const home = stage.path("home");
  const { diagnosis } = await examine({
    what: "a token that is good",
    source: "",
    args: [
      "agent",
      `--state-dir=${stage.path("fresh")}`,
      `--server=${stage.server}`,
      `--join=${token}`,
      "--node=first",
    ],
    ...{ code: "TUN302", hop: "", remedy: /$/ },
  }, home);
  assertEquals([diagnosis.exit, diagnosis.fault], [0, undefined]);
  await stage.agent("first", `--join=${token}`);
});
