/**
 * Doctor names what is wrong: with a node's identity, the way to its server, the
 * server itself, a node as its server sees it, a dial's target.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { examine } from "./doctor_runner.ts";
import { DoctorStage } from "./doctor_stage.ts";
import { fault } from "./fault.ts";
import { SUBJECTS } from "./subjects.ts";
import { inMemoryFolder } from "../support/memory/memory_folder.ts";

for (const { name, faults, policy, ignore = false } of SUBJECTS) {
  Deno.test({
    name,
    ignore,
    fn: () =>
      inMemoryFolder(async (folder) => {
        const file = `${folder}/policy.yaml`;
        if (policy !== undefined) await Deno.writeTextFile(file, policy);
        const flags = policy === undefined ? [] : [`--policy-file=${file}`];
        await using stage = await DoctorStage.start(...flags);
        const wrong: string[] = [];
        for (const fault of await faults(stage)) {
          const { diagnosis, problem } = await examine(
            fault,
            stage.path("home"),
          );
          if (problem !== undefined) {
            wrong.push(`${fault.what}: ${problem}\n${diagnosis.text}`);
          }
        }
        assertEquals(wrong.join("\n"), "");
      }),
  });
}

Deno.test("a token that doctor has looked at is as good as before", async () => {
  await using stage = await DoctorStage.start();
  const token = await stage.identity.createToken("--uses=1");
  const words = ["agent", ...stage.fresh(token, "first")];
  const good = fault("a token that is good", "", "TUN302", "", /$/, words);
  const { diagnosis } = await examine(good, stage.path("home"));
  assertEquals([diagnosis.exit, diagnosis.fault], [0, undefined]);
  await stage.agent("first", `--join=${token}`, "--node=first");
});
