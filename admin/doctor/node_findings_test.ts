import { assertEquals, assertMatch } from "@std/assert";
import { ADMIN_ACTIONS, ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { NodeDetail } from "../../proto/admin/node_answer.ts";
import type { PathStep } from "../../proto/admin/path_check.ts";
import { NODE, SERVER_STATUS } from "../../tests/support/rigs/ask_answers.ts";
import { FakeAdmin } from "../../tests/support/rigs/fake_admin.ts";

/** What doctor says of a node of which a server says this. */
async function stepsOf(
  warnings: NodeDetail["warnings"],
): Promise<ReadonlyMap<string, PathStep>> {
  const path = `${ADMIN_PATHS.node}${NODE.name}`;
  await using admin = await FakeAdmin.open({
    [ADMIN_PATHS.status]: SERVER_STATUS,
    [path]: { ...NODE, warnings },
    [`${path}/${ADMIN_ACTIONS.ping}`]: {
      node: NODE.name,
      links: [{ address: "a:1", carrier: "streams", roundTripMs: 1 }],
    },
  });
  const words = ["doctor", "node", NODE.name, "-o", "json"];
  const { steps } = JSON.parse((await admin.tunnel(...words)).output);
  return new Map(steps.map((step: PathStep) => [step.hop, step]));
}

Deno.test("each warning of a node is read at its hop, with what mends it, and once", async () => {
  const hops = [
    ["identity", "TUN313", "warning", /empty the agent's state directory/],
    ["version", "TUN422", "warning", /servers first: .*tunnel upgrade FILE/],
    ["certificate", "TUN202", "warning", /renews it by itself/],
    ["descriptors", "TUN513", "failed", /conn list --node edge-7/],
    ["warnings", "TUN503", "warning", undefined],
  ] as const;
  const fine = await stepsOf([]);
  assertEquals(
    hops.map(([hop]) => fine.get(hop)?.outcome),
    [undefined, "ok", "ok", undefined, undefined],
  );
  const severity = "warning" as const;
  const steps = await stepsOf(
    hops.map(([hop, code]) => ({ code, severity, message: `so is ${hop}` })),
  );
  for (const [hop, code, outcome, remedy] of hops) {
    const step = steps.get(hop)!;
    assertEquals([step.outcome, step.code], [outcome, code]);
    assertMatch(step.message, new RegExp(`so is ${hop}$`));
    if (remedy !== undefined) assertMatch(step.remedy!, remedy);
  }
});
