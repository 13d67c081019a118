/**
 * Servers that have nothing in common but a real etcd, and forward dials to each
 * other.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { ForwardingServers } from "../../tests/support/rigs/forwarding_servers.ts";
import type { EtcdCases } from "./etcd_case.ts";
import { eventually } from "./kube_case.ts";

export const ETCD_FORWARDING_CASES: EtcdCases = {
  "a server forwards to the one that has the agent, as etcd says": async (
    { cluster, workspace },
  ) => {
    const keyFile = workspace.path("state.key");
    await Deno.writeFile(keyFile, crypto.getRandomValues(new Uint8Array(32)), {
      mode: 0o600,
    });
    const [url] = cluster.urls;
    await using rig = await ForwardingServers.start(
      [[], [], []],
      // The first tells agents nowhere to call, so none is linked there.
      (index, { address }) => [
        "--peer-forwarding",
        ...(index === 0 ? [] : [`--advertise-address=${address}`]),
      ],
      [
        `--state=etcd://${new URL(url!).host}/forwarding/`,
        `--state-key-file=${keyFile}`,
      ],
    );
    const [first, second] = rig.servers;
    await rig.link("edge-7", 1);
    const target = { protocol: "tcp", address: rig.target.address };
    const dial = () => first!.dial("grpc", { target, node: "edge-7" });
    await eventually("etcd says who has the agent", async () => {
      const conduit = await dial().catch(() => undefined);
      if (conduit !== undefined) await rig.target.next();
      return conduit !== undefined;
    });
    // What another one links to as well outlives the first of them.
    await rig.servers[2]!.child.untilPrinted(/agent linked/);
    await second!.child.stop("SIGKILL");
    // What the third has reaches the others once a second.
    await eventually("the third is asked", async () => {
      const conduit = await dial().catch(() => undefined);
      if (conduit !== undefined) await rig.target.next();
      return conduit !== undefined;
    });
    const { caller, target: far } = await rig.connect({ node: "edge-7" });
    caller.send("by the third");
    await far.received(12);
    assertEquals(far.text, "by the third");
  },
};
