import { assertEquals, assertMatch } from "@std/assert";
import { ADMIN_ACTIONS, ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { NodeDetail } from "../../proto/admin/node_answer.ts";
import type { PathStep } from "../../proto/admin/path_check.ts";
import { NODE, SERVER_STATUS } from "../../tests/support/rigs/ask_answers.ts";
import { FakeAdmin, runCommand } from "../../tests/support/rigs/fake_admin.ts";

const FINE: NodeDetail = {
  ...NODE,
  version: "tunnel/1.2.0",
  warnings: [],
  events: [],
  now: "2026-11-22T10:03:12.345Z",
};

/** What doctor says of a node of a server of version 1.2.0. */
async function stepsOf(
  node: NodeDetail,
): Promise<ReadonlyMap<string, PathStep>> {
  const path = `${ADMIN_PATHS.node}${node.name}`;
  const { program } = SERVER_STATUS;
  await using admin = await FakeAdmin.open({
    [ADMIN_PATHS.status]: {
      ...SERVER_STATUS,
      program: { ...program, version: "1.2.0" },
    },
    [path]: node,
    [`${path}/${ADMIN_ACTIONS.ping}`]: {
      node: node.name,
      links: [{ address: "a:1", carrier: "streams", roundTripMs: 1 }],
    },
  });
  const { stdout } = await runCommand([
    ...["doctor", "node", node.name, "-o", "json"],
    `--state-dir=${admin.directory}`,
  ]);
  const { steps } = JSON.parse(stdout);
  return new Map(steps.map((step: PathStep) => [step.hop, step]));
}

Deno.test("an agent of another version is odd, and who comes first is said", async () => {
  for (
    const [version, outcome, remedy] of [
      ["tunnel/1.2.0", "ok", undefined],
      ["tunnel/1.1.9", "warning", /on the node: .*tunnel upgrade/],
      ["tunnel/1.10.0", "warning", /servers come first/],
      ["konnectivity/0.30.3", "skipped", undefined],
    ] as const
  ) {
    const step = (await stepsOf({ ...FINE, version })).get("version")!;
    assertEquals(step.outcome, outcome, version);
    assertEquals(step.code, remedy === undefined ? undefined : "TUN422");
    if (remedy !== undefined) assertMatch(step.remedy!, remedy);
  }
});

Deno.test("descriptors are used up once a server has seen it, and said once", async () => {
  assertEquals((await stepsOf(FINE)).has("descriptors"), false);
  const failed = (at: string, times?: number) => ({
    ...{ at, kind: "dial-failed" as const, code: "TUN513" },
    ...{ message: "too many open files", node: "edge-7" },
    ...(times === undefined ? {} : { times }),
  });
  const warning = { severity: "warning" as const, message: "none left" };
  const known = {
    ...FINE,
    warnings: [
      { ...warning, code: "TUN513" },
      { ...warning, code: "TUN503", message: "connection refused" },
    ],
  };
  const steps = await stepsOf({
    ...known,
    events: [
      failed("2026-11-22T10:03:00.000Z", 4),
      failed("2026-11-22T10:02:00.000Z"),
    ],
  });
  const { outcome, code, message } = steps.get("descriptors")!;
  assertEquals([outcome, code], ["failed", "TUN513"]);
  assertMatch(message, /: 5 dials failed .*, the last 12 seconds ago$/);
  assertEquals(steps.get("warnings")!.code, "TUN503");
  // So many other events that those dials are not among the last ones.
  const pushedOut = (await stepsOf(known)).get("descriptors")!;
  assertMatch(pushedOut.message, /: dials failed with "too many open files"$/);
});
