/**
 * A node: a network namespace with a kubelet, containerd and runc. Has to be
 * made in namespaces for processes and mounts that end with the run: containers
 * outlive those who have started them, and their mounts do.
 *
 * @module
 */

import { dirname } from "node:path";
import { Child } from "../../../tests/support/program/child.ts";
import { findDebianProgram } from "../../../tests/support/program/debian.ts";
import {
  findPeer,
  type PeerName,
} from "../../../tests/support/program/peers.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { eventually } from "../../../tests/support/watch/patience.ts";
import { type KubeCluster, SERVICE_RANGE } from "../../peers/kube_cluster.ts";
import { archiveOf, BOX, makeBox } from "./image.ts";
import {
  API_ADDRESS,
  KUBELET_PORT,
  NODE,
  NODE_ADDRESS,
  POD_NETWORK,
} from "./places.ts";
import { mustEnd } from "../../../tests/support/program/run.ts";

const SOCKET = "/run/containerd/containerd.sock";

/** In memory, and with all that is mounted below it gone at the end. */
const STATE = "/run/node";

const START_TIMEOUT_MS = 60_000;

/** See the module description. */
export class RealNode implements AsyncDisposable {
  readonly #children: Child[] = [];

  private constructor(readonly workspace: Workspace) {}

  /**
   * @param serverAddress Ours, on the way to the node; of a network of /24,
   *   where the node is the second.
   */
  static async make(
    workspace: Workspace,
    serverAddress: string,
  ): Promise<RealNode> {
    const node = serverAddress.replace(/\d+$/, "2");
    const ip = (...words: string[]) => mustEnd(["ip", ...words]);
    const far = (...words: string[]) => ip("-n", NODE, ...words);
    // Sockets, shims and names of network namespaces are this run's alone, and
    // what plugins and the kubelet remember and log.
    for (const each of ["/run", "/var/lib", "/var/log"]) {
      await mustEnd(["mount", "-t", "tmpfs", "none", each]);
    }
    await ip("link", "set", "lo", "up");
    await ip("netns", "add", NODE);
    await ip(
      ...["link", "add", "cable", "type", "veth"],
      ...["peer", "name", "cable", "netns", NODE],
    );
    await ip("addr", "add", `${serverAddress}/24`, "dev", "cable");
    await ip("link", "set", "cable", "up");
    await far("link", "set", "lo", "up");
    await far("addr", "add", `${node}/24`, "dev", "cable");
    await far("link", "set", "cable", "up");
    await far("route", "add", SERVICE_RANGE, "via", serverAddress);
    await ip("route", "add", POD_NETWORK, "via", node);
    await ip("addr", "add", `${API_ADDRESS}/32`, "dev", "lo");
    // Both have it, and so only the agent's own dial leads to the kubelet.
    await ip("addr", "add", `${NODE_ADDRESS}/32`, "dev", "lo");
    await far("addr", "add", `${NODE_ADDRESS}/32`, "dev", "cable");
    return new RealNode(workspace);
  }

  /** `ip netns exec` would hide the control groups behind a /sys of its own. */
  get prefix(): readonly string[] {
    return ["nsenter", `--net=/run/netns/${NODE}`];
  }

  /** Makes an image known to the node. */
  async load(image: Parameters<typeof archiveOf>[0]): Promise<void> {
    const ctr = (await findDebianProgram("ctr")).path;
    const words = ["-n=k8s.io", "images", "import", await archiveOf(image)];
    await mustEnd([ctr, `--address=${SOCKET}`, ...words]);
  }

  /** A line of its hosts, of which Pods get a copy: what a name service says. */
  async knows(line: string): Promise<void> {
    const hosts = `${STATE}/hosts`;
    await Deno.writeTextFile(hosts, `127.0.0.1 localhost\n${line}\n`);
    await mustEnd(["mount", "--bind", hosts, "/etc/hosts"]);
  }

  /** Starts what leads the node's own and its Pods to Services. */
  async startProxy(cluster: KubeCluster): Promise<void> {
    const access = await userOf(cluster, "system:kube-proxy");
    await this.#launch("kube-proxy", [
      `--kubeconfig=${access}`,
      `--hostname-override=${NODE}`,
      // The namespace of a node may not say how much the machine remembers.
      "--conntrack-max-per-core=0",
    ]);
  }

  /** Starts containerd and the kubelet, and waits until the Node is there. */
  async start(cluster: KubeCluster): Promise<void> {
    await this.#startContainerd();
    await this.#startKubelet(cluster);
    await eventually("the kubelet has written its Node", async () => {
      this.#allRun();
      const path = "jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}";
      const said = await cluster.kubectl(["get", "node", NODE, "-o", path])
        .catch(() => "");
      return said === String(KUBELET_PORT);
    }, START_TIMEOUT_MS);
    await eventually("pods have their ServiceAccount", async () => {
      const words = ["get", "serviceaccount", "default", "-o", "name"];
      return await cluster.kubectl(words).catch(() => "") !== "";
    }, START_TIMEOUT_MS);
  }

  #allRun(): void {
    const ended = this.#children.find(({ hasEnded }) => hasEnded);
    if (ended !== undefined) throw new Error(`${ended.name} has ended`);
  }

  async #startContainerd(): Promise<void> {
    const folder = `${STATE}/containerd`;
    await Deno.mkdir(folder, { recursive: true });
    const [containerd, shim, runc, ptp] = await Promise.all(
      (["containerd", "containerd-shim-runc-v2", "runc", "ptp"] as const).map(
        async (name) => (await findDebianProgram(name)).path,
      ),
    ) as [string, string, string, string];
    const config = `${folder}/config.toml`;
    const plugins = dirname(ptp);
    await Deno.writeTextFile(config, containerdConfig(folder, runc, plugins));
    await Deno.writeTextFile(
      `${folder}/pods.conflist`,
      JSON.stringify(NETWORK),
    );
    const path = [dirname(shim), dirname(runc), Deno.env.get("PATH")];
    this.#children.push(
      new Child({
        name: "containerd",
        command: [...this.prefix, containerd, `--config=${config}`],
        logFile: this.workspace.path("containerd.log"),
        env: { PATH: path.join(":") },
      }),
    );
    await eventually("containerd listens", async () => {
      this.#allRun();
      return await Deno.stat(SOCKET).then(() => true, () => false);
    }, START_TIMEOUT_MS);
    await this.load(await makeBox(folder));
  }

  async #startKubelet(cluster: KubeCluster): Promise<void> {
    const folder = `${STATE}/kubelet`;
    await Deno.mkdir(folder, { recursive: true });
    const serving = await cluster.issue("kubelet", {
      commonName: `system:node:${NODE}`,
      organizations: ["system:nodes"],
      usage: "server",
      names: [NODE, NODE_ADDRESS],
    });
    const access = await userOf(cluster, `system:node:${NODE}`, "system:nodes");
    const config = `${folder}/config.json`;
    await Deno.writeTextFile(
      config,
      JSON.stringify({
        apiVersion: "kubelet.config.k8s.io/v1beta1",
        kind: "KubeletConfiguration",
        port: KUBELET_PORT,
        containerRuntimeEndpoint: `unix://${SOCKET}`,
        authentication: {
          anonymous: { enabled: false },
          webhook: { enabled: true },
          x509: { clientCAFile: cluster.caFile },
        },
        authorization: { mode: "Webhook" },
        tlsCertFile: serving.cert,
        tlsPrivateKeyFile: serving.key,
        // What the machine of a test has to spare is nobody's business here.
        cgroupDriver: "cgroupfs",
        cgroupsPerQOS: false,
        enforceNodeAllocatable: [],
        failCgroupV1: false,
        failSwapOn: false,
        localStorageCapacityIsolation: false,
        makeIPTablesUtilChains: false,
        evictionHard: { "memory.available": "0%" },
        resolvConf: "",
      }),
    );
    await this.#launch("kubelet", [
      `--config=${config}`,
      `--kubeconfig=${access}`,
      `--root-dir=${folder}/root`,
      `--hostname-override=${NODE}`,
      `--node-ip=${NODE_ADDRESS}`,
    ]);
  }

  /** A program of Kubernetes, on the node. */
  async #launch(name: PeerName, flags: readonly string[]): Promise<void> {
    this.#children.push(
      new Child({
        name,
        command: [...this.prefix, await findPeer(name), ...flags],
        logFile: this.workspace.path(`${name}.log`),
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children.toReversed()) await child.stop();
  }
}

/** The kubeconfig of a user on the node. */
function userOf(cluster: KubeCluster, user: string, ...groups: string[]) {
  const there = cluster.server.replace("127.0.0.1", API_ADDRESS);
  return cluster.user(user, groups, there);
}

/** Of Pods, each at the end of a cable of its own. */
const NETWORK = {
  cniVersion: "1.0.0",
  name: "pods",
  plugins: [{
    type: "ptp",
    ipam: {
      type: "host-local",
      ranges: [[{ subnet: POD_NETWORK }]],
      routes: [{ dst: "0.0.0.0/0" }],
    },
  }],
};

function containerdConfig(folder: string, runc: string, cni: string): string {
  const cri = "io.containerd.grpc.v1.cri";
  return `version = 2
root = "${folder}/root"
state = "/run/containerd"
[grpc]
address = "${SOCKET}"
[plugins."${cri}"]
sandbox_image = "${BOX}"
disable_apparmor = true
restrict_oom_score_adj = true
[plugins."${cri}".cni]
bin_dir = "${cni}"
conf_dir = "${folder}"
[plugins."${cri}".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."${cri}".containerd.runtimes.runc.options]
BinaryName = "${runc}"
`;
}
