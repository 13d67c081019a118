/**
 * A cluster of one node that is reached through the tunnel alone: etcd,
 * kube-apiserver and a tunnel server here, a kubelet with its containers and a
 * tunnel agent in the node's network namespace.
 *
 * @module
 */

import { KubeCluster } from "../../peers/kube_cluster.ts";
import {
  type RunningAgent,
  type RunningServer,
  startAgent,
  startServer,
} from "../../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { eventually } from "../../../tests/support/watch/patience.ts";
import { IMAGE } from "./image.ts";
import { KUBELET_PORT, NODE, NODE_ADDRESS } from "./places.ts";
import { RealNode } from "./node.ts";

/** The same certificate's address as the bench's lines have. */
export const SERVER_ADDRESS = "10.99.0.1";

/** The whole time that a pod has to be ready, images being there. */
const POD_TIMEOUT_MS = 90_000;

/** How the server comes to know which node is meant. */
export const WAYS = ["address", "lookup"] as const;
export type Way = (typeof WAYS)[number];

/** See the module description. */
export class Stage implements AsyncDisposable {
  #server: RunningServer | undefined;
  #agent: RunningAgent | undefined;

  private constructor(
    readonly workspace: Workspace,
    readonly cluster: KubeCluster,
    readonly node: RealNode,
  ) {}

  /** Starts everything but the tunnel. */
  static async set(workspace: Workspace): Promise<Stage> {
    const node = await RealNode.make(workspace, SERVER_ADDRESS);
    const cluster = await KubeCluster.start(workspace.folder, {
      controllerManager: true,
      flags: ["--bind-address=0.0.0.0"],
    });
    await node.start(cluster);
    const stage = new Stage(workspace, cluster, node);
    await stage.#fill();
    return stage;
  }

  /** Starts the tunnel, in the place of the one there was. */
  async serve(way: Way): Promise<void> {
    await this.#agent?.child.stop();
    await this.#server?.child.stop();
    const { cluster, node, workspace } = this;
    const server = this.#server = await startServer(workspace, {
      maker: "ours",
      mode: "grpc",
      transport: "uds",
      agentHost: SERVER_ADDRESS,
      extraFlags: await kubeletFlags(cluster, way),
    });
    const names = `host=${NODE}&ipv4=${NODE_ADDRESS}`;
    const flags = [`--agent-id=${NODE}`, `--agent-identifiers=${names}`];
    this.#agent = await startAgent(
      ...[workspace, server, "ours", flags, node.prefix] as const,
    );
  }

  /** Which kinds of requests the kubelet has answered, as our port saw them. */
  async served(): Promise<Set<string>> {
    const response = await fetch(`${this.#server!.adminUrl}/metrics`);
    const counted =
      /^tunnel_server_kubelet_requests_total\{kind="(\w+)",status="[12]xx"\}/gm;
    const text = await response.text();
    return new Set([...text.matchAll(counted)].map(([, kind]) => kind!));
  }

  async #fill(): Promise<void> {
    const { cluster } = this;
    const own = "tunnel-kubelet-client";
    await cluster.bind("system:kubelet-api-admin", "User", own, own);
    await cluster.apply([pod("web", WEB, false), pod("talk", TALK, true)]);
    await eventually("the pods are ready", async () => {
      const path = "jsonpath={.items[*].status.containerStatuses[*].ready}";
      const said = await cluster.kubectl(["get", "pods", "-o", path]);
      return said === "true true";
    }, POD_TIMEOUT_MS);
  }

  /** Containers are ended first, since their control groups would stay. */
  async [Symbol.asyncDispose](): Promise<void> {
    const words = ["delete", "pods", "--all", "--wait", "--timeout=60s"];
    await this.cluster.kubectl(words);
    await this.#agent?.child.stop();
    await this.#server?.child.stop();
    await this.node[Symbol.asyncDispose]();
    await this.cluster[Symbol.asyncDispose]();
  }
}

/** As docs/kubernetes.md has them; nothing is said about the port's address. */
export async function kubeletFlags(
  cluster: KubeCluster,
  way: Way,
): Promise<string[]> {
  const front = await cluster.issue("front", {
    commonName: "tunnel",
    usage: "server",
    names: [NODE_ADDRESS],
  });
  const client = await cluster.issue("tunnel-kubelet-client", {
    commonName: "tunnel-kubelet-client",
    usage: "client",
  });
  return [
    `--kubelet-port=${KUBELET_PORT}`,
    `--kubelet-server-cert=${front.cert}`,
    `--kubelet-server-key=${front.key}`,
    `--kubelet-server-ca-cert=${cluster.caFile}`,
    `--kubelet-client-certificate=${client.cert}`,
    `--kubelet-client-key=${client.key}`,
    `--kubelet-ca-file=${cluster.caFile}`,
    ...(way === "lookup"
      ? ["--kubelet-lookup", `--kubeconfig=${cluster.adminKubeconfig}`]
      : []),
  ];
}

/** Its log is what a check writes into a file, and it serves a page. */
const WEB = "mkdir /www && echo the page >/www/index.html && " +
  "httpd -p 127.0.0.1:8080 -h /www && touch /more && " +
  "echo the first line && exec tail -f /more";

/** Says what it hears. */
const TALK = 'while read -r line; do echo "heard $line"; done; sleep 1000000';

function pod(name: string, script: string, stdin: boolean): object {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default" },
    spec: {
      nodeName: NODE,
      hostNetwork: true,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 0,
      containers: [{
        name: "main",
        image: IMAGE,
        imagePullPolicy: "Never",
        command: ["sh", "-c", script],
        stdin,
      }],
    },
  };
}
