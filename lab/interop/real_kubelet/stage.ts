/**
 * A cluster of one node that is reached through the tunnel alone: etcd,
 * kube-apiserver and a tunnel server here, a kubelet with its containers and a
 * tunnel agent in the node's network namespace.
 *
 * @module
 */

import { KubeCluster } from "../../peers/kube_cluster.ts";
import type { Child } from "../../../tests/support/program/child.ts";
import {
  type RunningServer,
  type ServerOptions,
  startAgent,
  startServer,
} from "../../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { eventually } from "../../../tests/support/watch/patience.ts";
import { BOX } from "./image.ts";
import { NODE, NODE_ADDRESS } from "./places.ts";
import { RealNode } from "./node.ts";

/** The same certificate's address as the bench's lines have. */
export const SERVER_ADDRESS = "10.99.0.1";

/** The whole time that a pod has to be ready, images being there. */
const POD_TIMEOUT_MS = 90_000;

/** See the module description. */
export class Stage implements AsyncDisposable {
  /** The tunnel's, in the order in which they were started. */
  readonly #running: Child[] = [];

  private constructor(
    readonly workspace: Workspace,
    readonly cluster: KubeCluster,
    readonly node: RealNode,
  ) {}

  /** Starts everything but the tunnel. */
  static async set(workspace: Workspace): Promise<Stage> {
    const node = await RealNode.make(workspace, SERVER_ADDRESS);
    const cluster = await KubeCluster.start(workspace.folder, {
      controllerManager: "pods",
      flags: [
        "--bind-address=0.0.0.0",
        // The Service `kubernetes` leads there, for Pods.
        `--advertise-address=${SERVER_ADDRESS}`,
        "--endpoint-reconciler-type=lease",
      ],
    });
    await node.start(cluster);
    const stage = new Stage(workspace, cluster, node);
    await stage.#fill();
    return stage;
  }

  /** Ends with the tunnel. */
  own<Running extends { readonly child: Child }>(running: Running): Running {
    this.#running.push(running.child);
    return running;
  }

  /** Starts a server, and the node's agent of it. */
  async serve(
    options: Pick<ServerOptions, "mode" | "transport" | "extraFlags">,
  ): Promise<RunningServer> {
    const { node, workspace } = this;
    const server = this.own(
      await startServer(workspace, {
        ...options,
        ...{ maker: "ours", agentHost: SERVER_ADDRESS },
      }),
    );
    const names = `host=${NODE}&ipv4=${NODE_ADDRESS}`;
    const flags = [`--agent-id=${NODE}`, `--agent-identifiers=${names}`];
    this.own(await startAgent(workspace, server, "ours", flags, node.prefix));
    return server;
  }

  async endTunnel(): Promise<void> {
    for (const child of this.#running.splice(0).toReversed()) {
      await child.stop();
    }
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
    await this.endTunnel();
    await this.node[Symbol.asyncDispose]();
    await this.cluster[Symbol.asyncDispose]();
  }
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
        image: BOX,
        imagePullPolicy: "Never",
        command: ["sh", "-c", script],
        stdin,
      }],
    },
  };
}
