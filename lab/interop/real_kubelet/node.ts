/**
 * A node: a network namespace with a kubelet, containerd and runc. Has to be
 * made in namespaces for processes and mounts that end with the run: containers
 * outlive those who have started them, and their mounts do.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import { findDebianProgram } from "../../../tests/support/program/debian.ts";
import type { KubeCluster } from "../../peers/kube_cluster.ts";
import { findPeer } from "../../../tests/support/program/peers.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { eventually } from "../../../tests/support/watch/patience.ts";
import { IMAGE, makeImage } from "./image.ts";
import { API_ADDRESS, KUBELET_PORT, NODE, NODE_ADDRESS } from "./places.ts";
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
    // Sockets, shims and names of network namespaces are this run's alone.
    await mustEnd(["mount", "-t", "tmpfs", "none", "/run"]);
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
    await far("route", "add", API_ADDRESS, "via", serverAddress);
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
    const [containerd, shim, ctr, runc] = await Promise.all(
      (["containerd", "containerd-shim-runc-v2", "ctr", "runc"] as const).map(
        async (name) => (await findDebianProgram(name)).path,
      ),
    ) as [string, string, string, string];
    const config = `${folder}/config.toml`;
    await Deno.writeTextFile(config, containerdConfig(folder, runc));
    const folderOf = (path: string) => path.slice(0, path.lastIndexOf("/"));
    const path = [folderOf(shim), folderOf(runc), Deno.env.get("PATH")];
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
    const image = await makeImage(folder);
    const words = ["-n=k8s.io", "images", "import", image];
    await mustEnd([ctr, `--address=${SOCKET}`, ...words]);
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
    const kubeconfig = await cluster.user(
      `system:node:${NODE}`,
      ["system:nodes"],
      cluster.server.replace("127.0.0.1", API_ADDRESS),
    );
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
    this.#children.push(
      new Child({
        name: "kubelet",
        command: [
          ...this.prefix,
          await findPeer("kubelet"),
          `--config=${config}`,
          `--kubeconfig=${kubeconfig}`,
          `--root-dir=${folder}/root`,
          `--hostname-override=${NODE}`,
          `--node-ip=${NODE_ADDRESS}`,
        ],
        logFile: this.workspace.path("kubelet.log"),
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children.toReversed()) await child.stop();
  }
}

/** Without control groups: containers are bounded by the test's end alone. */
function containerdConfig(folder: string, runc: string): string {
  const cri = "io.containerd.grpc.v1.cri";
  return `version = 2
root = "${folder}/root"
state = "/run/containerd"
[grpc]
address = "${SOCKET}"
[plugins."${cri}"]
sandbox_image = "${IMAGE}"
disable_cgroup = true
disable_apparmor = true
restrict_oom_score_adj = true
[plugins."${cri}".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."${cri}".containerd.runtimes.runc.options]
BinaryName = "${runc}"
`;
}
