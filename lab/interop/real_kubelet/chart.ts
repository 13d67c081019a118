/**
 * The way of docs/start.md, by its own lines: helm installs the chart, the
 * cluster's controllers and scheduler make Pods of it, the kubelet starts them
 * from our image, and kube-apiserver is led to the socket that their server has
 * made. Of a cluster only its name service is wanting: a line of the node's
 * hosts stands for it.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { eventually } from "../../../tests/support/watch/patience.ts";
import type { KubeCluster } from "../../peers/kube_cluster.ts";
import { groupMemory } from "../../peers/memory_group.ts";
import { FOLDER, helm } from "../kube_manifests.ts";
import { ran } from "../kubectl.ts";
import { bytesOf } from "../pods/manifest.ts";
import { CHECKS } from "./checks.ts";
import { makeOurs } from "./image.ts";
import { NODE } from "./places.ts";
import type { Stage } from "./stage.ts";
import { lead, type Way } from "./ways.ts";

const HERE = "--namespace=tunnel-state";

/** A kubelet tries longer and longer apart whether what Pods mount is there. */
const PODS_MS = 180_000;

/** See the module description. */
export async function byChart(
  stage: Stage,
  doAll: Parameters<Way>[1],
): Promise<void> {
  const { cluster, node, workspace } = stage;
  const install = await typed("start", "helm install ");
  const folder = workspace.path("ours");
  await Deno.mkdir(folder);
  const image = install.find((word) => word.startsWith("image="))!.slice(6);
  await node.load(await makeOurs(folder, image));
  await node.startProxy(cluster);
  try {
    await helm(stage, ...install.map((word) => word === CHART ? FOLDER : word));
    // Servers wait for a node that is theirs, and agents for a server.
    const path = "jsonpath={.spec.clusterIP}";
    const get = ["get", "service", "tunnel-server", HERE, "-o", path];
    await node.knows(
      `${await cluster.kubectl(get)} tunnel-server.tunnel-state.svc`,
    );
    const plane = "node-role.kubernetes.io/control-plane=";
    await cluster.kubectl(["label", "node", NODE, plane]);
    // Before kube-apiserver goes for as long as it takes to start anew: a server
    // that starts waits 15 s for its state, and ends then.
    await isReady(stage, "deployment/tunnel-server", "readyReplicas");
    const [, ...at] = await typed("kubernetes", "tunnel egress-config ");
    await lead(stage, at, "grpc");
    await isReady(stage, "daemonset/tunnel-agent", "numberReady");
    const status = await typed("start", "kubectl -n tunnel-state exec ");
    assertMatch(await cluster.kubectl(status), /\b1 online\b/);
    await doAll();
    await isBounded(stage, "tunnel-server", "1Gi");
    await isBounded(stage, "tunnel-agent", "512Mi");
    await scale(stage, 0);
    const { code, stdout, stderr } = await ran(cluster, ["logs", "web"]);
    assertEquals([code, stdout], [1, ""], "without a server");
    assert(stderr.includes(at[1]!), stderr);
    await scale(stage, 2);
    const again = async () => (await ran(cluster, ["logs", "web"])).code === 0;
    await eventually("the agent has linked again", again, PODS_MS);
    await CHECKS["logs"]!(stage);
  } finally {
    // Or the error of an installation would be lost.
    const whole = ["--ignore-not-found", "--cascade=foreground", "--wait"];
    await helm(stage, "uninstall", "tunnel", HERE, ...whole);
  }
}

/** As the page names it. */
const CHART = "deploy/kubernetes";

/** What a page types behind the program's name. */
async function typed(page: string, start: string): Promise<readonly string[]> {
  const file = new URL(`../../../docs/${page}.md`, import.meta.url);
  const [line] = new RegExp(`(?<=^(\\$ )?)${start}[^>]*?(?=( >.*)?$)`, "m")
    .exec(await Deno.readTextFile(file))!;
  return line.split(" ").slice(1);
}

/** One Pod is: a server that serves, an agent that has a link. The kubelet asks. */
async function isReady(
  { cluster }: Stage,
  what: string,
  field: "readyReplicas" | "numberReady",
): Promise<void> {
  const get = ["get", what, HERE, "-o", `jsonpath={.status.${field}}`];
  await eventually(
    `${what} is ready`,
    async () => await cluster.kubectl(get) === "1",
    PODS_MS,
  );
}

/** It runs since its first start, in what the chart gives it. */
async function isBounded(
  { cluster }: Stage,
  app: string,
  limit: string,
): Promise<void> {
  const path = 'jsonpath={.items[?(@.status.phase=="Running")]' +
    ".status.containerStatuses[0]['containerID','restartCount']}";
  const get = ["get", "pods", `-l=app=${app}`, HERE, "-o", path];
  const [id, restarts] = (await cluster.kubectl(get)).split(" ");
  const { limitMegabytes, kills } = await groupMemory(
    id!.replace("containerd://", "k8s.io/"),
  );
  const wanted = Math.round(bytesOf(limit) / 1e6);
  const is = [limitMegabytes, kills, restarts];
  const before = restarts === "0" ? app : await lastWords(cluster, app);
  assertEquals(is, [wanted, 0, "0"], before);
}

/** Why those of an app are not in their first start. */
async function lastWords(cluster: KubeCluster, app: string): Promise<string> {
  const those = [`-l=app=${app}`, HERE];
  const { stdout } = await ran(cluster, ["describe", "pods", ...those]);
  const log = await ran(cluster, ["logs", "--previous", ...those]);
  return `${app}\n${stdout}\n${log.stdout}${log.stderr}`;
}

/** How many servers there are to be; those that are too many are gone then. */
async function scale({ cluster }: Stage, count: number): Promise<void> {
  const what = "deployment/tunnel-server";
  await cluster.kubectl(["scale", what, HERE, `--replicas=${count}`]);
  const pods = ["get", "pods", "-l=app=tunnel-server", HERE, "-o=name"];
  await eventually(
    "servers come and go",
    async () =>
      (await cluster.kubectl(pods)).split("\n").filter(Boolean).length ===
        count,
    PODS_MS,
  );
}
