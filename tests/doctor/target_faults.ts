/**
 * What keeps a dial from its target: no such node, a node that is away or stands
 * still, a rule, a target that refuses.
 *
 * @module
 */

import type { DoctorStage } from "./doctor_stage.ts";
import type { Fault } from "./fault.ts";

/** Of the server that {@linkcode targetFaults} are made on. */
export function policyFlags(stage: { path(name: string): string }): string {
  const path = stage.path("policy.yaml");
  Deno.writeTextFileSync(
    path,
    "frontends:\n" +
      '- socket: "*"\n  allow: ["*:*:*"]\n' +
      '- commonName: alice\n  allow: ["tcp:10.0.0.7:5432"]\n' +
      '- commonName: bob\n  allow: ["*:*:*"]\n  deny: ["tcp:127.0.0.1:*"]\n',
    { mode: 0o600 },
  );
  return path;
}

/** See the module description. */
// deno-lint-ignore tunnel/function-length -- it is a table.
export async function targetFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  const [, , still] = await Promise.all([
    stage.agent("node1", "--deny=tcp:127.0.0.1:9"),
    stage.agent("node2"),
    stage.agent("still"),
    stage.joined("away"),
  ]);
  const target = (
    what: string,
    source: string,
    address: string,
    words: readonly string[],
    rest: Pick<Fault, "code" | "hop" | "remedy"> & Partial<Fault>,
  ): Fault => ({
    what,
    source,
    args: ["target", address, ...words, ...stage.asked],
    ...rest,
  });
  const port = stage.closedPort;
  const there = stage.identity.healthPort;
  const deaf = await stage.deafPort();
  return [
    target(
      "nothing listens at the target",
      "cloudflare/cloudflared#976",
      `127.0.0.1:${port}`,
      ["--node=node1"],
      { code: "TUN503", hop: "target", remedy: /on node1: ss -ltn/ },
    ),
    target(
      "the target's program accepts nothing",
      "fatedier/frp#4687",
      `127.0.0.1:${deaf}`,
      ["--node=node1"],
      { code: "TUN502", hop: "target", remedy: /ss -ltnp.*restart it/ },
    ),
    target(
      "what has the target's port hangs up at once",
      "daily use: an allow-list, a balancer without a live program",
      `127.0.0.1:${stage.service(() => Promise.resolve())}`,
      ["--node=node1"],
      { code: "TUN515", hop: "target", remedy: /allow-list/ },
    ),
    target(
      "the target's program listens on ::1 alone",
      "daily use: localhost is ::1 for one program, 127.0.0.1 for another",
      `127.0.0.1:${stage.onlyOn("::1")}`,
      ["--node=node1"],
      { code: "TUN503", hop: "target", remedy: /dial \[::1\]:/ },
    ),
    target(
      "the target's program listens on 127.0.0.1 alone",
      "daily use: bind-address 127.0.0.1",
      `127.0.0.2:${stage.onlyOn("127.0.0.1")}`,
      ["--node=node1"],
      { code: "TUN503", hop: "target", remedy: /dial 127\.0\.0\.1:/ },
    ),
    target(
      "the target's name is none on the node",
      "daily use: DNS fails on the node",
      "no-such-host.invalid:80",
      ["--node=node1"],
      { code: "TUN505", hop: "target", remedy: /on node1: getent hosts/ },
    ),
    target(
      "the agent's own rule denies it",
      "daily use: --deny blocks",
      "127.0.0.1:9",
      ["--node=node1"],
      { code: "TUN603", hop: "target", remedy: /--allow and --deny/ },
    ),
    target(
      "no rule of the policy allows it",
      "daily use: policy blocks",
      `127.0.0.1:${there}`,
      ["--node=node1", "--as=alice"],
      { code: "TUN601", hop: "policy", remedy: /allow rule/ },
    ),
    target(
      "a rule of the policy denies it",
      "daily use: policy blocks",
      `127.0.0.1:${there}`,
      ["--node=node1", "--as=bob"],
      { code: "TUN601", hop: "policy", remedy: /policy file/ },
    ),
    target(
      "loopback of nobody's",
      "daily use: loopback target, several agents",
      `127.0.0.1:${there}`,
      [],
      { code: "TUN508", hop: "node", remedy: /--node NAME/ },
    ),
    target(
      "the node's name has a slip",
      "daily use: node name typo",
      `127.0.0.1:${there}`,
      ["--node=nod1"],
      { code: "TUN501", hop: "node", remedy: /tunnel doctor node nod1/ },
    ),
    target(
      "no agent of the node is linked",
      "k0sproject/k0s#5809",
      `127.0.0.1:${there}`,
      ["--node=away"],
      { code: "TUN501", hop: "node", remedy: /tunnel doctor node away/ },
    ),
    target(
      "the agent stands still",
      "kubernetes-sigs/apiserver-network-proxy#152",
      `127.0.0.1:${there}`,
      ["--node=still"],
      {
        code: "TUN507",
        hop: "link",
        remedy: /stands still/,
        around: async (run) => {
          still.signal("SIGSTOP");
          await run().finally(() => still.signal("SIGCONT"));
        },
      },
    ),
  ];
}

/** Two machines with the identity of one: found after ten seconds. */
export async function copiedFaults(
  stage: DoctorStage,
): Promise<readonly Fault[]> {
  await stage.agent("node1");
  const copy = stage.copy("node1");
  await stage.agent("clone", `--state-dir=${copy}`);
  await stage.identity.child.untilPrinted(/is linked by 2 processes/);
  return [{
    what: "a machine was cloned, with its identity",
    source: "tailscale/tailscale#506",
    args: ["agent", `--state-dir=${copy}`],
    code: "TUN313",
    hop: "identity",
    remedy: /remove the copy.*join with a new token/,
    isOdd: true,
  }];
}
