/**
 * kubectl before a real kubelet, through our kubelet port as it is bound by
 * default and through kube-apiserver's EgressSelector. For the port
 * kube-apiserver takes the server for the node, whose address is one of the
 * server's own; the kubelet with containerd and runc is in a network namespace
 * with that same address, where only its agent gets to it. Each way of
 * `ways.ts` has its rounds.
 *
 * Usage: `deno task lab kubelet [ROUNDS]`. Needs root. Everything runs in
 * namespaces of its own for processes, mounts and the network, and goes with
 * them. Before the rounds, which may be 0, the node moves from yurttunnel and
 * back.
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
import { Tally } from "../../../tests/support/watch/tally.ts";
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
  ...["kubectl", "kubelet"] as const,
  ...["yurt-tunnel-server", "yurt-tunnel-agent"] as const,
];
const PACKAGED: readonly DebianName[] = [
  ...["containerd", "containerd-shim-runc-v2", "ctr", "runc"] as const,
  ...["busybox", "conntrack"] as const,
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
    const said = new TextDecoder().decode(stderr).trim();
    tally.skip(
      "kubectl before a real kubelet",
      `containers cannot be started here: ${said}`,
    );
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
  return (await child.status).code;
}

async function main(): Promise<number> {
  const rounds = Number(Deno.args[0] ?? ROUNDS);
  return await counted("a real kubelet starts", async (tally, workspace) => {
    await using stage = await Stage.set(workspace);
    await tally.run(
      "from yurttunnel and back no request is lost",
      () => within(MIGRATION_MS, fromYurttunnelAndBack(stage)),
    );
    for (const [way, take] of rounds > 0 ? Object.entries(WAYS) : []) {
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
