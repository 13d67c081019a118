/**
 * Doctor names what is wrong: with a node's identity, the way to its server, the
 * server itself, a node as its server sees it, a dial's target.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import {
  certificateFaults,
  identityFaults,
  placeFaults,
  tokenFaults,
} from "./agent_faults.ts";
import { descriptorFaults } from "./descriptor_faults.ts";
import { examine, examineAll } from "./doctor_runner.ts";
import { DoctorStage } from "./doctor_stage.ts";
import type { Fault } from "./fault.ts";
import { lineFaults } from "./line_faults.ts";
import { networkFaults, whyNoNetworks } from "./network_faults.ts";
import { nodeFaults } from "./node_faults.ts";
import { settingFaults, stateFaults } from "./server_faults.ts";
import { copiedFaults, policyFlags, targetFaults } from "./target_faults.ts";

type Faults = (
  stage: DoctorStage,
) => readonly Fault[] | Promise<readonly Fault[]>;

const SUBJECTS: readonly (readonly [name: string, Faults])[] = [
  [
    "doctor tells certificates, keys and clocks that are wrong apart",
    certificateFaults,
  ],
  ["doctor says that two machines use one identity", copiedFaults],
  ["doctor says whose descriptors are used up", descriptorFaults],
  ["doctor says why a node is not let in", identityFaults],
  ["doctor says why a node is not online", nodeFaults],
  [
    "doctor says what keeps an agent from where its server should be",
    placeFaults,
  ],
  ["doctor says what is wrong with a server's settings", settingFaults],
  ["doctor says what is wrong with a server's state and disk", stateFaults],
  ["doctor says what is wrong with a token without using it", tokenFaults],
];

const IN_NETWORKS: typeof SUBJECTS = [
  ["doctor tells lines that lose, swallow, reject or cut apart", lineFaults],
  [
    "doctor tells filtered, unroutable and nameless servers apart",
    networkFaults,
  ],
];

async function examined(faults: Faults, ...flags: string[]): Promise<void> {
  await using stage = await DoctorStage.start(...flags);
  const found = await examineAll(await faults(stage), stage.path("home"));
  assertEquals(found, "");
}

for (const [name, faults] of SUBJECTS) {
  Deno.test(name, () => examined(faults));
}

for (const [name, faults] of IN_NETWORKS) {
  const ignore = whyNoNetworks() !== undefined;
  Deno.test({ name, ignore, fn: () => examined(faults) });
}

Deno.test("doctor says where a dial ends, and what mends it", async () => {
  const folder = await Deno.makeTempDir();
  const policy = policyFlags({ path: (name) => `${folder}/${name}` });
  try {
    await examined(targetFaults, `--policy-file=${policy}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
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
