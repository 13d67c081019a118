/**
 * `kubectl logs`, `exec` and `port-forward` of a pod behind the tunnel, through
 * kube-apiserver's EgressSelector as `tunnel egress-config` writes it. Our kubelet
 * port is tried before a real kubelet, by `real_kubelet/`.
 *
 * @module
 */

import { isIP } from "node:net";
import { assertEquals, assertMatch } from "@std/assert";
import { readToEnd, writeAll } from "../../tests/support/peers/sockets.ts";
import { StandInKubelet } from "../../tests/support/peers/kubelet.ts";
import { Child } from "../../tests/support/program/child.ts";
import { KubeCluster } from "../peers/kube_cluster.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { mustRun } from "../../tests/support/program/run.ts";
import {
  ourCommand,
  type RunningServer,
  startAgent,
  startServer,
} from "../../tests/support/program/tunnel.ts";
import {
  eventually,
  type KubeCases,
  type KubeContext,
  Runs,
} from "./kube_case.ts";
import { ran, Running } from "./kubectl.ts";

export const NODE = "edge-1";
const NAMESPACE = "default";

/** A cluster with one node and one pod, and a kubelet behind a tunnel. */
export class KubeletCase implements AsyncDisposable {
  readonly #owned: AsyncDisposable[] = [];

  constructor(readonly cluster: KubeCluster) {}

  /** Ends with the case. */
  own<T extends AsyncDisposable>(thing: T): T {
    this.#owned.push(thing);
    return thing;
  }

  /** @param names Of its certificate. */
  async kubelet(
    names: readonly string[],
    at: Deno.TcpListenOptions,
  ): Promise<StandInKubelet> {
    const { cluster } = this;
    const pair = await cluster.issue("kubelet", {
      commonName: `system:node:${NODE}`,
      organizations: ["system:nodes"],
      usage: "server",
      names,
    });
    return this.own(
      new StandInKubelet({
        cert: await Deno.readTextFile(pair.cert),
        key: await Deno.readTextFile(pair.key),
        ca: await Deno.readTextFile(cluster.caFile),
      }, at),
    );
  }

  /** The objects without which there is nothing to look at. */
  async pod(address: string, port: number): Promise<void> {
    const { cluster } = this;
    const metadata = { name: "default", namespace: NAMESPACE };
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
    const type = isIP(address) === 0 ? "Hostname" : "InternalIP";
    await cluster.patchStatus(`node/${NODE}`, {
      addresses: [{ type, address }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
    });
    await cluster.patchStatus("pod/web", { phase: "Running" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = ["pod/web", `node/${NODE}`, "serviceaccount/default"];
    for (const object of gone) {
      const words = ["delete", object, "--ignore-not-found", "--force"];
      await this.cluster.kubectl([...words, "--grace-period=0", "--wait=false"])
        .catch(() => {}); // With a cluster of its own, that goes with it.
    }
    for (const thing of this.#owned.toReversed()) {
      await thing[Symbol.asyncDispose]();
    }
  }
}

/** Reads a pod's log, once and as it comes. */
export async function logs(
  cluster: KubeCluster,
  kubelet: StandInKubelet,
): Promise<void> {
  const once = await ran(cluster, ["logs", "web"]);
  assertEquals([once.stdout, once.stderr], ["the first line\n", ""]);
  await follows(cluster, kubelet);
}

/** What kubectl speaks to kube-apiserver, which speaks SPDY to kubelets. */
const WEBSOCKET = { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: "true" };
const SPDY = { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: "false" };

/** All that an operator does with a pod. */
export async function operates(
  cluster: KubeCluster,
  kubelet: StandInKubelet,
): Promise<void> {
  await logs(cluster, kubelet);
  for (const env of [WEBSOCKET, SPDY]) {
    const said = await ran(cluster, ["exec", "web", "--", "echo", "a", "b"], {
      env,
    });
    assertEquals([said.code, said.stdout], [0, "a b\n"], said.stderr);
    const input = "typed in\n".repeat(10_000);
    const cat = await ran(cluster, ["exec", "-i", "web", "--", "cat"], {
      input,
      env,
    });
    assertEquals(cat.stdout.length, input.length, cat.stderr);
    const left = await ran(cluster, ["exec", "web", "--", "exit", "7"], {
      env,
    });
    assertEquals(left.code, 7);
    assertMatch(left.stderr, /leaving with 7/);
  }
}

/** A followed log: lines as they come, and the end when the reader ends. */
async function follows(
  cluster: KubeCluster,
  kubelet: StandInKubelet,
): Promise<void> {
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

/** Bytes there and back through a forwarded port. */
async function forwards(cluster: KubeCluster): Promise<void> {
  const words = ["port-forward", "pod/web", ":80"];
  await using running = await Running.start(cluster, words);
  const [, port] = await running.until(/127\.0\.0\.1:(\d+) -> 80\n/);
  const conn = await Deno.connect({
    hostname: "127.0.0.1",
    port: Number(port),
  });
  await writeAll(conn, new TextEncoder().encode("there and back"));
  await conn.closeWrite();
  const answer = await readToEnd(conn);
  assertEquals(new TextDecoder().decode(answer), "there and back");
  conn.close();
}

type Protocol = "grpc" | "http-connect";

const IDENTIFIERS = `--agent-identifiers=host=${NODE}&ipv4=127.0.0.1`;
const AGENT_FLAGS = [`--agent-id=${NODE}`, IDENTIFIERS];

/** By EgressSelector; the tunnel is up before kube-apiserver reads its file. */
function byEgress(transport: "uds" | "tcp", protocol: Protocol) {
  return async ({ workspace }: KubeContext) => {
    // The cluster's CA is made with the cluster, so the tunnel's is another one.
    const { ca, client } = workspace.certificates;
    const options = { transport, mode: "auto", maker: "ours" } as const;
    await using runs = new Runs();
    const server = runs.own(await startServer(workspace, options));
    const { frontend } = server;
    const at = frontend.transport === "uds"
      ? [`--uds-name=${frontend.path}`, "--server-port=0"]
      : [
        `--server-port=${frontend.port}`,
        `--server-cert=${client.cert}`,
        `--server-key=${client.key}`,
        `--server-ca-cert=${ca}`,
        `--ca-bundle=${ca}`,
        `--client-cert=${client.cert}`,
        `--client-key=${client.key}`,
      ];
    await through(workspace, at, protocol, async (cluster, kubelet) => {
      await operates(cluster, kubelet);
      await forwards(cluster);
      const names = new Set(kubelet.requests.map((each) => each.commonName));
      assertEquals([...names], ["kube-apiserver-kubelet-client"]);
      await eventually(
        "the tunnel has carried them",
        async () => await dials(server) >= 3,
      );
    }, async () => {
      runs.own(await startAgent(workspace, server, "ours", AGENT_FLAGS));
    });
  };
}

/** By a gateway in front of two servers; the one that is used is killed. */
function byGateway(protocol: Protocol) {
  return async ({ workspace }: KubeContext) => {
    const socket = workspace.path("gate");
    const options = { transport: "uds", mode: "auto", maker: "ours" } as const;
    await using runs = new Runs();
    const frontends: string[] = [];
    const servers: RunningServer[] = [];
    for (let count = 0; count < 2; count++) {
      const server = runs.own(await startServer(workspace, options));
      runs.own(await startAgent(workspace, server, "ours", AGENT_FLAGS));
      const { frontend } = server;
      if (frontend.transport === "uds") frontends.push(`unix:${frontend.path}`);
      servers.push(server);
    }
    const at = [`--frontend=unix:${socket}`];
    const { child } = runs.own({
      child: new Child({
        name: "gateway",
        command: ourCommand("forward", ...at, `--server=${frontends.join()}`),
        logFile: workspace.path("gateway.log"),
      }),
    });
    await child.untilPrinted(/ -> grpc over /);
    await through(workspace, at, protocol, async (cluster, kubelet) => {
      await operates(cluster, kubelet);
      await forwards(cluster);
      // The first one is in use; the other one was never asked.
      await servers[0]!.child.stop("SIGKILL");
      for (let count = 0; count < 3; count++) await logs(cluster, kubelet);
      await operates(cluster, kubelet);
      await forwards(cluster);
    });
  };
}

/**
 * A cluster of its own whose kube-apiserver goes through the tunnel at `at`, as
 * `tunnel egress-config` writes it, to a kubelet behind it.
 *
 * @param ready Before the kubelet is there.
 */
async function through(
  workspace: KubeContext["workspace"],
  at: readonly string[],
  protocol: Protocol,
  check: (cluster: KubeCluster, kubelet: StandInKubelet) => Promise<void>,
  ready: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const folder = workspace.path("cluster");
  await Deno.mkdir(folder);
  const port = freePort();
  const file = `${folder}/egress.yaml`;
  const text = await mustRun("egress-config", ...at, `--protocol=${protocol}`);
  await Deno.writeTextFile(file, text);
  await using cluster = await KubeCluster.start(folder, {
    flags: [`--egress-selector-config-file=${file}`],
  });
  await using rig = new KubeletCase(cluster);
  await ready();
  const place = { hostname: "127.0.0.1", port };
  const kubelet = await rig.kubelet(["127.0.0.1"], place);
  await rig.pod("127.0.0.1", port);
  await check(cluster, kubelet);
}

/** Connections that the server has made. */
async function dials({ healthUrl }: RunningServer): Promise<number> {
  const text = await (await fetch(`${healthUrl}/metrics`)).text();
  const name = "konnectivity_network_proxy_server_dial_duration_seconds_count";
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
}

const WAYS = [
  ["gRPC over a socket", "uds", "grpc"],
  ["CONNECT over a socket", "uds", "http-connect"],
  ["CONNECT over TLS", "tcp", "http-connect"],
] as const;

export const KUBE_KUBELET_CASES: KubeCases = {
  ...Object.fromEntries(WAYS.map(([way, transport, protocol]) => [
    `kubectl works through the EgressSelector, ${way}`,
    byEgress(transport, protocol),
  ])),
  "kubectl goes on when a server behind a gateway is killed, gRPC": byGateway(
    "grpc",
  ),
  "kubectl goes on when a server behind a gateway is killed, CONNECT":
    byGateway("http-connect"),
};
