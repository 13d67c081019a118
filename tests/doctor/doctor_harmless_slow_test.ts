/**
 * Doctor changes nothing, and is noticed by no program that runs.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { UNFINISHED } from "../../platform/files/atomic_file.ts";
import { examine } from "./doctor_runner.ts";
import { DoctorStage } from "./doctor_stage.ts";
import { type Fault, fault } from "./fault.ts";

/** Every file below a directory, with what is in it; sockets by name. */
function contentOf(root: string): readonly string[] {
  return [...Deno.readDirSync(root)].flatMap(
    ({ name, isDirectory, isFile }) => {
      const path = `${root}/${name}`;
      if (name.startsWith(UNFINISHED)) return []; // It may be gone by now.
      if (isDirectory) return contentOf(path);
      return [`${path}: ${isFile ? Deno.readTextFileSync(path) : ""}`];
    },
  ).sort();
}

Deno.test("doctor writes nothing, links nothing, and is in no log", async () => {
  await using stage = await DoctorStage.start();
  const agent = await stage.agent("node1");
  await agent.untilPrinted(/links=2/);
  await agent.untilPrinted(/admin API opened/);
  const server = stage.identity.child;
  await server.untilPrinted(/(agent linked[^]*){2}/);
  const root = stage.nodeDirectory("node1");
  const { stateDirectory } = stage.identity;
  // What servers and agents write now and then by themselves is no matter here.
  const seen = () =>
    [...contentOf(root), ...contentOf(stateDirectory)]
      .filter((line) => !/nodes-seen|servers\.json|\/peers\//.test(line));
  const log = async () =>
    (await Promise.all(
      [server, agent].map((child) => Deno.readTextFile(child.logFile)),
    )).join("\n").split("\n").filter((line) => !/admin: /.test(line));
  const before = [seen(), await log()];
  const ask = (args: readonly string[]): Fault =>
    fault("nothing", "", "TUN401", "", /$/, args);
  for (
    const args of [
      ["agent", `--state-dir=${root}`],
      ["server", ...stage.ownFlags],
      ["node", "node1", stage.asked],
    ]
  ) {
    const { diagnosis } = await examine(ask(args), stage.path("home"));
    assertEquals([diagnosis.exit, diagnosis.fault], [0, undefined]);
  }
  assertEquals([seen(), await log()], before);
});
