/**
 * What keeps a dial from its target: no such node, a node that is away or stands
 * still, a rule, a target that refuses.
 *
 * @module
 */

import { whileStill } from "../mistakes/surroundings.ts";
import type { DoctorStage } from "./doctor_stage.ts";
import { type Fault, fault } from "./fault.ts";

/** Of the server that {@linkcode targetFaults} are made on. */
export const POLICY = `frontends:
- socket: "*"
  allow: ["*:*:*"]
- commonName: alice
  allow: ["tcp:10.0.0.7:5432"]
- commonName: bob
  allow: ["*:*:*"]
  deny: ["tcp:127.0.0.1:*"]
`;

/** See the module description. */
// deno-fmt-ignore: the columns are the point.
export async function targetFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const [, , still] = await Promise.all([
    stage.agent("node1", "--deny=tcp:127.0.0.1:9"),
    stage.agent("node2"),
    stage.agent("still"),
    stage.joined("away"),
  ]);
  const of = (address: string, ...words: readonly string[]) => ["target", address, ...words, stage.asked];
  const at1 = (address: string, ...words: readonly string[]) => of(address, "--node=node1", ...words);
  const port = stage.closedPort;
  const there = `127.0.0.1:${stage.identity.healthPort}`;
  const deaf = await stage.deafPort();
  return [
    fault("nothing listens at the target", "cloudflare/cloudflared#976",
      "TUN503", "target", /on node1: ss -ltn/, at1(`127.0.0.1:${port}`)),
    fault("the target's program accepts nothing", "fatedier/frp#4687",
      "TUN502", "target", /ss -ltnp.*restart it/, at1(`127.0.0.1:${deaf}`)),
    fault("what has the target's port hangs up at once", "daily use: an allow-list, a balancer without a live program",
      "TUN515", "target", /allow-list/,
      at1(`127.0.0.1:${stage.service(() => Promise.resolve())}`)),
    fault("the target's program listens on ::1 alone",
      "daily use: localhost is ::1 for one program, 127.0.0.1 for another",
      "TUN503", "target", /dial \[::1\]:/, at1(`127.0.0.1:${stage.onlyOn("::1")}`)),
    fault("the target's program listens on 127.0.0.1 alone", "daily use: bind-address 127.0.0.1",
      "TUN503", "target", /dial 127\.0\.0\.1:/, at1(`127.0.0.2:${stage.onlyOn("127.0.0.1")}`)),
    fault("the target's name is none on the node", "daily use: DNS fails on the node",
      "TUN505", "target", /on node1: getent hosts/, at1("no-such-host.invalid:80")),
    fault("the agent's own rule denies it", "daily use: --deny blocks",
      "TUN603", "target", /--allow and --deny/, at1("127.0.0.1:9")),
    fault("no rule of the policy allows it", "daily use: policy blocks",
      "TUN601", "policy", /allow rule/, at1(there, "--as=alice")),
    fault("a rule of the policy denies it", "daily use: policy blocks",
      "TUN601", "policy", /policy file/, at1(there, "--as=bob")),
    fault("loopback of nobody's", "daily use: loopback target, several agents",
      "TUN508", "node", /--node NAME/, of(there)),
    fault("the node's name has a slip", "daily use: node name typo",
      "TUN501", "node", /tunnel doctor node nod1/, of(there, "--node=nod1")),
    fault("no agent of the node is linked", "k0sproject/k0s#5809",
      "TUN501", "node", /tunnel doctor node away/, of(there, "--node=away")),
    fault("the agent stands still", "kubernetes-sigs/apiserver-network-proxy#152",
      "TUN507", "link", /hangs/, of(there, "--node=still"), whileStill(() => still)),
  ];
}

/** Two machines with the identity of one: found after ten seconds. */
// deno-fmt-ignore: the columns are the point.
export async function copiedFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  await stage.agent("node1");
  const copy = stage.copyOfNode("copy");
  await stage.agent("clone", `--state-dir=${copy}`);
  await stage.identity.child.untilPrinted(/is linked by 2 processes/);
  const args = ["agent", `--state-dir=${copy}`];
  const remedy = /remove the copy.*join with a new token/;
  return [
    fault("a machine was cloned, with its identity", "tailscale/tailscale#506",
      "TUN313", "identity", remedy, args, { isOdd: true }),
  ];
}
