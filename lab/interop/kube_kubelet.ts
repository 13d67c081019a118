/**
 * A node and a pod whose kubelet is a stand-in, which has nothing but its log: for
 * gateways and servers that come and go. All that people do with kubectl is tried
 * before a real one, by `real_kubelet/`.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { StandInKubelet } from "../../tests/support/peers/kubelet.ts";
import type { KubeCluster } from "../peers/kube_cluster.ts";
import { ran, Running } from "./kubectl.ts";

export const NODE = "edge-1";

/** Makes the node and its pod in a cluster that ends with the case. */
export async function startKubelet(
  cluster: KubeCluster,
): Promise<StandInKubelet> {
  const address = "127.0.0.1";
  const pair = await cluster.issue("kubelet", {
    commonName: `system:node:${NODE}`,
    organizations: ["system:nodes"],
    ...{ usage: "server", names: [address] },
  });
  const kubelet = new StandInKubelet({
    cert: await Deno.readTextFile(pair.cert),
    key: await Deno.readTextFile(pair.key),
    ca: await Deno.readTextFile(cluster.caFile),
  });
  const metadata = { name: "default", namespace: "default" };
  const spec = {
    nodeName: NODE,
    automountServiceAccountToken: false,
    containers: [{ name: "main", image: "none" }],
  };
  await cluster.apply([
    { kind: "Node", metadata: { name: NODE } },
    { kind: "ServiceAccount", metadata },
    { kind: "Pod", metadata: { ...metadata, name: "web" }, spec },
  ]);
  await cluster.patchStatus(`node/${NODE}`, {
    addresses: [{ type: "InternalIP", address }],
    daemonEndpoints: { kubeletEndpoint: { Port: kubelet.port } },
  });
  await cluster.patchStatus("pod/web", { phase: "Running" });
  return kubelet;
}

/** Reads a pod's log: once, and as it comes until its reader ends. */
export async function logs(
  cluster: KubeCluster,
  kubelet: StandInKubelet,
): Promise<void> {
  const once = await ran(cluster, ["logs", "web"]);
  assertEquals([once.stdout, once.stderr], ["the first line\n", ""]);
  {
    await using running = await Running.start(cluster, ["logs", "-f", "web"]);
    await running.until(/^the first line\n/);
    for (let line = 2; line < 5; line++) {
      await kubelet.log(`line ${line}`);
      await running.until(new RegExp(`^line ${line}\n`, "m"));
    }
  }
  await kubelet.followedBy(0);
}
