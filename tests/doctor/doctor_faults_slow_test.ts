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
import { examineSubject, SUBJECTS } from "./subjects.ts";

for (const subject of SUBJECTS) {
  const { name, ignore = false } = subject;
  Deno.test({
    name,
    ignore,
    async fn() {
      const wrong: string[] = [];
      for await (const examined of examineSubject(subject)) {
        const { fault: { what }, diagnosis, problem } = examined;
        if (problem !== undefined) {
          wrong.push(`${what}: ${problem}\n${diagnosis.text}`);
        }
      }
      assertEquals(wrong.join("\n"), "");
    },
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
