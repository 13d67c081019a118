/**
 * Nodes that are away, revoked, pending, unknown, or stand still, as their server
 * sees them.
 *
 * @module
 */

import { whileStill } from "../mistakes/surroundings.ts";
import type { DoctorStage } from "./doctor_stage.ts";
import { type Fault, fault } from "./fault.ts";

/** See the module description. */
// deno-fmt-ignore: the columns are the point.
export async function nodeFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const [still] = await Promise.all([
    stage.agent("still"),
    stage.joined("away"),
    stage.joined("exile"),
    stage.waiting("waiting"),
  ]);
  await stage.change("node", "revoke", "exile");
  return [
    fault("the node was revoked, as its server sees it", "daily use: revoked node",
      "TUN311", "joined", /tunnel node approve exile/, ["node", "exile", stage.asked]),
    fault("the node is offline", "k0sproject/k0s#5809",
      "TUN402", "online", /tunnel doctor agent/, ["node", "away", stage.asked]),
    fault("the node waits for approval, as its server sees it", "daily use: pending node",
      "TUN310", "joined", /tunnel node approve waiting/, ["node", "waiting", stage.asked]),
    fault("the node stands still, as its server sees it", "kubernetes-sigs/apiserver-network-proxy#152",
      "TUN507", "links", /restart the agent/, ["node", "still", stage.asked], whileStill(() => still)),
    fault("the agent of this machine stands still", "kubernetes-sigs/apiserver-network-proxy#152",
      "TUN507", "agent", /restart/, ["agent", `--state-dir=${stage.nodeDirectory("still")}`], whileStill(() => still)),
    fault("the node never joined", "daily use: unknown node",
      "TUN312", "joined", /tunnel node list/, ["node", "warehouse", stage.asked]),
  ];
}
