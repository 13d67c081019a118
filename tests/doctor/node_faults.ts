/**
 * Nodes that are away, revoked, pending, unknown, or stand still, as their server
 * sees them.
 *
 * @module
 */

import type { DoctorStage } from "./doctor_stage.ts";
import type { Fault } from "./fault.ts";

/** See the module description. */
export async function nodeFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const [still] = await Promise.all([
    stage.agent("still"),
    stage.joined("away"),
    stage.joined("exile"),
    stage.waiting("waiting"),
  ]);
  await stage.run("node", "revoke", "exile");
  return [
    {
      what: "the node was revoked, as its server sees it",
      source: "daily use: revoked node",
      args: ["node", "exile", ...stage.asked],
      code: "TUN311",
      hop: "joined",
      remedy: /tunnel node approve exile/,
    },
    {
      what: "the node is offline",
      source: "k0sproject/k0s#5809",
      args: ["node", "away", ...stage.asked],
      code: "TUN402",
      hop: "online",
      remedy: /tunnel doctor agent/,
    },
    {
      what: "the node waits for approval, as its server sees it",
      source: "daily use: pending node",
      args: ["node", "waiting", ...stage.asked],
      code: "TUN310",
      hop: "joined",
      remedy: /tunnel node approve waiting/,
    },
    {
      what: "the node stands still, as its server sees it",
      source: "kubernetes-sigs/apiserver-network-proxy#152",
      args: ["node", "still", ...stage.asked],
      code: "TUN507",
      hop: "links",
      remedy: /restart the agent/,
      around: async (run) => {
        still.signal("SIGSTOP");
        await run().finally(() => still.signal("SIGCONT"));
      },
    },
    {
      what: "the agent of this machine stands still",
      source: "kubernetes-sigs/apiserver-network-proxy#152",
      args: ["agent", `--state-dir=${stage.nodeDirectory("still")}`],
      code: "TUN507",
      hop: "agent",
      remedy: /restart/,
      around: async (run) => {
        still.signal("SIGSTOP");
        await run().finally(() => still.signal("SIGCONT"));
      },
    },
    {
      what: "the node never joined",
      source: "daily use: unknown node",
      args: ["node", "warehouse", ...stage.asked],
      code: "TUN312",
      hop: "joined",
      remedy: /tunnel node list/,
    },
  ];
}
