/**
 * kubectl before a real kubelet, through our kubelet port as it is bound by
 * default and through kube-apiserver's EgressSelector. For the port
 * kube-apiserver takes the server for the node, whose address is one of the
 * server's own; the kubelet with containerd and runc is in a network namespace
 * with that same address, where only its agent gets to it. Each way of
 * `ways.ts` has its rounds, and so has the chart of `deploy/kubernetes`, all of
 * whose Pods this kubelet starts.
 *
 * Usage: `deno task lab kubelet [ROUNDS [REGEX]]`; REGEX picks ways. Needs root.
 * Everything runs in namespaces of its own for processes, mounts and the
 * network, and goes with them. Before the rounds, which may be 0, the node moves
 * from yurttunnel and back.
 *
 * @module
 */

import {
  type DebianName,
  findDebianProgram,
} from "../../../tests/support/program/debian.ts";
import {
  findPeer,
  type PeerName,
} from "../../../tests/support/program/peers.ts";
import { programWords } from "../../../tests/support/program/program.ts";
import { runToEnd } from "../../../tests/support/program/run.ts";
import { Tally } from "../../../tests/support/watch/tally.ts";
import { byChart } from "./chart.ts";
import { CHECKS } from "./checks.ts";
import { Stage } from "./stage.ts";
import { WAYS } from "./ways.ts";
import { fromYurttunnelAndBack } from "./yurttunnel.ts";
import { counted, within } from "../case_runner.ts";

/** Set in the process that is inside of the namespaces. */
const INSIDE = "REAL_KUBELET_INSIDE";

const ROUNDS = 2;

const MIGRATION_MS = 90_000;

const BUILT: readonly PeerName[] = [
  ...["etcd", "kube-apiserver", "kube-controller-manager"] as const,
  ...["kube-scheduler", "kubectl", "kubelet", "kube-proxy", "helm"] as const,
  ...["yurt-tunnel-server", "yurt-tunnel-agent"] as const,
];
const PACKAGED: readonly DebianName[] = [
  ...["containerd", "containerd-shim-runc-v2", "ctr", "runc"] as const,
  ...["busybox", "conntrack", "ptp"] as const,
];

/** Starts this again in namespaces, once all is there that needs a network. */
async function enter(): Promise<number> {
  const namespaces = ["--net", "--mount", "--pid", "--fork", "--mount-proc"];
  const { success, stderr } = await new Deno.Command("unshare", {
    args: [...namespaces, "mount", "-t", "tmpfs", "none", "/run"],
    stderr: "piped",
  }).output();
  if (!success) {
    const tally = new Tally();
    tally.fail("containers are started", new TextDecoder().decode(stderr));
    return tally.end();
  }
  for (const name of BUILT) await findPeer(name);
  for (const name of PACKAGED) await findDebianProgram(name);
  programWords();
  const child = new Deno.Command("unshare", {
    args: [
      ...[...namespaces, "--kill-child", Deno.execPath(), "run"],
      ...["--allow-all", "--no-check", import.meta.filename!, ...Deno.args],
    ],
    env: { [INSIDE]: "yes" },
  }).spawn();
  const { code } = await child.status;
  // The namespaces have ended all but these; groups of others are in use.
  const groups = ["/sys/fs/cgroup", "-depth", "-path", "*/k8s.io*"];
  await runToEnd([
    "find",
    ...groups,
    "-type",
    "d",
    "-exec",
    "rmdir",
    "{}",
    "+",
  ]);
  return code;
}

async function main(): Promise<number> {
  const rounds = Number(Deno.args[0] ?? ROUNDS);
  const picked = new RegExp(Deno.args[1] ?? ".");
  return await counted("a real kubelet starts", async (tally, workspace) => {
    await using stage = await Stage.set(workspace);
    const migration = "from yurttunnel and back no request is lost";
    if (picked.test(migration)) {
      const migrating = () => fromYurttunnelAndBack(stage);
      await tally.run(migration, () => within(MIGRATION_MS, migrating()));
    }
    const ways = Object.entries({ ...WAYS, "the chart's own Pods": byChart })
      .filter(([way]) => rounds > 0 && picked.test(way));
    for (const [way, take] of ways) {
      const doAll = async (circumstance = "") => {
        for (let round = 1; round <= rounds; round++) {
          for (const [sentence, check] of Object.entries(CHECKS)) {
            const name = `${way}${circumstance}, round ${round}: ${sentence}`;
            await tally.run(name, () => check(stage));
          }
        }
      };
      await tally.run(
        `${way}: it has carried it all`,
        () => take(stage, doAll).finally(() => stage.endTunnel()),
      );
    }
  });
}

Deno.exit(await (Deno.env.has(INSIDE) ? main() : enter()));
