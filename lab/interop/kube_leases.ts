/**
 * Servers' leases, and agents that count them: ours and Konnectivity's on
 * either end, behind one address that leads to each server in turn.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import {
  formatMicroTime,
  LEASES,
  objectPathOf,
} from "../../neighbours/kubernetes/paths.ts";
import type { Lease, ObjectList } from "../../neighbours/kubernetes/objects.ts";
import {
  launchAgent,
  type Maker,
  type RunningAgent,
  type RunningServer,
  startServer,
} from "../../tests/support/program/tunnel.ts";
import { Balancer } from "../../tests/support/rigs/balancer.ts";
import { gauge } from "./ha_scale.ts";
import {
  clientOf,
  eventually,
  type KubeCases,
  type KubeContext,
} from "./kube_case.ts";

/** Everything of one case is in a namespace of its own. */
class LeaseRig implements AsyncDisposable {
  readonly #running: (RunningServer | RunningAgent)[] = [];
  readonly balancer = new Balancer();

  private constructor(
    private readonly context: KubeContext,
    private readonly namespace: string,
  ) {}

  static async make(context: KubeContext, namespace: string) {
    await context.cluster.kubectl(["create", "namespace", namespace]);
    return new LeaseRig(context, namespace);
  }

  async server(maker: Maker, id: string): Promise<RunningServer> {
    const server = await startServer(this.context.workspace, {
      maker,
      mode: "grpc",
      transport: "uds",
      extraFlags: [
        `--server-id=${id}`,
        "--enable-lease-controller",
        `--lease-namespace=${this.namespace}`,
        `--kubeconfig=${this.context.cluster.adminKubeconfig}`,
      ],
    });
    this.#running.push(server);
    this.balancer.add(server.agentPort);
    return server;
  }

  /** An agent of all servers, through the one address. */
  async agent(maker: Maker, flags: readonly string[] = []) {
    const at = { agentHost: "127.0.0.1", agentPort: this.balancer.port };
    const agent = await launchAgent(this.context.workspace, at, maker, [
      "--v=2",
      "--count-server-leases",
      `--lease-namespace=${this.namespace}`,
      `--kubeconfig=${this.context.cluster.adminKubeconfig}`,
      ...flags,
    ]);
    this.#running.push(agent);
    return agent;
  }

  async leases(): Promise<readonly Lease[]> {
    using client = clientOf(this.context);
    const path = objectPathOf(LEASES, { namespace: this.namespace });
    const { items } = await client.get<ObjectList<Lease>>(path);
    return items ?? [];
  }

  async put(name: string, renewedMs: number): Promise<void> {
    using client = clientOf(this.context);
    await client.create(objectPathOf(LEASES, { namespace: this.namespace }), {
      metadata: { name, labels: { "k8s-app": "konnectivity-server" } },
      spec: {
        holderIdentity: name,
        leaseDurationSeconds: 30,
        renewTime: formatMicroTime(renewedMs),
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.balancer.close();
    for (const { child } of this.#running.toReversed()) {
      await child.stop("SIGKILL");
    }
  }
}

const AGENT = "konnectivity_network_proxy_agent_open_server_connections";
const OURS = "konnectivity_network_proxy_agent_known_server_count";

/** The agent holds a link to each of two servers, each of which says "1". */
function findsBoth(servers: Maker, agents: Maker) {
  return async (context: KubeContext) => {
    await using rig = await LeaseRig.make(
      context,
      `leases-${servers}-${agents}`,
    );
    const first = await rig.server(servers, "first");
    const agent = await rig.agent(
      agents,
      ["--links=1"].filter(() => agents === "ours"),
    );
    await first.child.untilReady(`${first.healthUrl}/readyz`);
    const second = await rig.server(servers, "second");
    await second.child.untilReady(`${second.healthUrl}/readyz`);
    await eventually(
      "the agent counts two servers",
      async () =>
        await gauge(agent.healthUrl, OURS) === 2 &&
        await gauge(agent.healthUrl, AGENT) === 2,
    );
    const lists = "konnectivity_network_proxy_agent_lease_lists_total";
    assert(
      await gauge(agent.healthUrl, lists) > 0,
      "the list of leases is not counted",
    );
  };
}

export const KUBE_LEASE_CASES: KubeCases = {
  "our server publishes a lease as upstream does, renews and deletes it":
    async (
      context,
    ) => {
      await using rig = await LeaseRig.make(context, "lease-ours");
      const server = await rig.server("ours", "s1");
      await eventually(
        "there is a lease",
        async () => (await rig.leases()).length === 1,
      );
      const [made] = await rig.leases();
      assertEquals(made!.metadata.name, "konnectivity-proxy-server-s1");
      assertEquals(made!.metadata.labels, { "k8s-app": "konnectivity-server" });
      assertEquals(
        [made!.spec?.holderIdentity, made!.spec?.leaseDurationSeconds],
        ["s1", 30],
      );
      await eventually("it is renewed", async () => {
        const [now] = await rig.leases();
        return now!.spec?.renewTime !== made!.spec?.renewTime;
      });
      await server.child.stop();
      assertEquals(await rig.leases(), []);
    },

  "our server takes over the lease of its earlier life": async (context) => {
    await using rig = await LeaseRig.make(context, "lease-again");
    const server = await rig.server("ours", "s1");
    await eventually(
      "there is a lease",
      async () => (await rig.leases()).length === 1,
    );
    const [made] = await rig.leases();
    await server.child.stop("SIGKILL");
    await rig.server("ours", "s1");
    await eventually("it is renewed", async () => {
      const [now] = await rig.leases();
      return now!.spec?.renewTime !== made!.spec?.renewTime &&
        now!.metadata.uid === made!.metadata.uid;
    });
  },

  "leases that expired are removed, those that hold are not": async (
    context,
  ) => {
    await using rig = await LeaseRig.make(context, "lease-expired");
    await rig.put("dead", Date.now() - 31_000);
    await rig.put("alive", Date.now() + 60_000);
    await rig.server("ours", "s1");
    await eventually("one is gone", async () => {
      const names = (await rig.leases()).map(({ metadata }) => metadata.name);
      return names.join() === "alive,konnectivity-proxy-server-s1";
    });
  },

  "our agent finds both of our servers by their leases": findsBoth(
    "ours",
    "ours",
  ),
  "our agent finds both of Konnectivity's servers by their leases": findsBoth(
    "konnectivity",
    "ours",
  ),
  "Konnectivity's agent finds both of our servers by their leases": findsBoth(
    "ours",
    "konnectivity",
  ),
};
