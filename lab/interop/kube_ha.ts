/**
 * Upstream's tests of high availability (`static_count_test.go` and
 * `lease_count_test.go` of its end-to-end suite) against the leases of a real API
 * server: ours and Konnectivity's on either end, behind one address.
 *
 * @module
 */

import {
  launchAgent,
  type Maker,
  type RunningAgent,
  type RunningServer,
  startServer,
} from "../../tests/support/program/tunnel.ts";
import { Balancer } from "../../tests/support/rigs/balancer.ts";
import { holds, type ScaleRig, scalesBothSides } from "./ha_scale.ts";
import type { KubeCases, KubeContext } from "./kube_case.ts";

/** Where agents learn how many servers there are. */
type Counting =
  | { readonly kind: "static"; readonly servers: number }
  | { readonly kind: "leases"; readonly namespace: string };

/** Servers behind one address that leads to each in turn. */
class BalancedRig implements ScaleRig {
  readonly servers: RunningServer[] = [];
  readonly agents: RunningAgent[] = [];
  readonly #balancer = new Balancer();
  #made = 0;

  constructor(
    private readonly context: KubeContext,
    private readonly counting: Counting,
    private readonly makers: readonly [servers: Maker, agents: Maker],
  ) {}

  async addServer(): Promise<void> {
    const id = `s${++this.#made}`;
    const counting = this.counting;
    const server = await startServer(this.context.workspace, {
      maker: this.makers[0],
      mode: "grpc",
      transport: "uds",
      extraFlags: [
        `--server-id=${id}`,
        ...(counting.kind === "static"
          ? [`--server-count=${counting.servers}`]
          : ["--enable-lease-controller", ...this.#leaseFlags(counting)]),
      ],
    });
    this.servers.push(server);
    this.#balancer.add(server.agentPort);
  }

  async removeServer(): Promise<void> {
    const server = this.servers.pop()!;
    this.#balancer.remove(server.agentPort);
    await server.child.stop();
  }

  async addAgent(): Promise<void> {
    const counting = this.counting;
    const at = { agentHost: "127.0.0.1", agentPort: this.#balancer.port };
    const [, maker] = this.makers;
    const agent = await launchAgent(this.context.workspace, at, maker, [
      `--agent-id=a${++this.#made}`,
      ...(maker === "ours" ? ["--links=1", "--drain-timeout=1s"] : []),
      ...(counting.kind === "static"
        ? []
        : ["--count-server-leases", ...this.#leaseFlags(counting)]),
    ]);
    this.agents.push(agent);
  }

  async removeAgent(): Promise<void> {
    // One of Konnectivity's serves on after the first signal, for ever.
    await this.agents.pop()!.child.stop("SIGKILL");
  }

  #leaseFlags({ namespace }: { readonly namespace: string }): string[] {
    return [
      `--lease-namespace=${namespace}`,
      `--kubeconfig=${this.context.cluster.adminKubeconfig}`,
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#balancer.close();
    for (const { child } of [...this.agents, ...this.servers]) {
      await child.stop("SIGKILL");
    }
  }
}

function keepsStaticCount(servers: Maker, agents: Maker, count: number) {
  return async (context: KubeContext) => {
    const counting = { kind: "static", servers: count } as const;
    await using rig = new BalancedRig(context, counting, [servers, agents]);
    await holds(rig, count);
  };
}

function followsLeases(servers: Maker, agents: Maker) {
  return async (context: KubeContext) => {
    const namespace = `scale-${servers}-${agents}`;
    await context.cluster.kubectl(["create", "namespace", namespace]);
    const counting = { kind: "leases", namespace } as const;
    await using rig = new BalancedRig(context, counting, [servers, agents]);
    await scalesBothSides(rig);
  };
}

export const KUBE_HA_CASES: KubeCases = {
  "one server and one agent of ours, by a static count (TestSingleServer_SingleAgent_StaticCount)":
    keepsStaticCount("ours", "ours", 1),
  "our servers and agents, by a static count (TestMultiServer_MultiAgent_StaticCount)":
    keepsStaticCount("ours", "ours", 2),
  "our servers and Konnectivity's agents, by a static count": keepsStaticCount(
    "ours",
    "konnectivity",
    2,
  ),
  "Konnectivity's servers and our agents, by a static count": keepsStaticCount(
    "konnectivity",
    "ours",
    2,
  ),
  "our servers and agents grow and shrink, by leases (TestMultiServer_MultiAgent_LeaseCount)":
    followsLeases("ours", "ours"),
  "our servers and Konnectivity's agents grow and shrink, by leases":
    followsLeases("ours", "konnectivity"),
  "Konnectivity's servers and our agents grow and shrink, by leases":
    followsLeases("konnectivity", "ours"),
};
