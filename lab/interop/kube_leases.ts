/**
 * Servers' leases, and agents that learn by them, or by a static count, how many
 * servers there are: upstream's tests of high availability
 * (`static_count_test.go` and `lease_count_test.go` of its end-to-end suite), ours
 * and Konnectivity's on either end, behind one address that leads to each server
 * in turn.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
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
import { sumOf } from "../../tests/support/watch/metric_families.ts";
import {
  clientOf,
  eventually,
  type KubeCases,
  type KubeContext,
} from "./kube_case.ts";

/** Where agents learn how many servers there are. */
type Counting =
  | { readonly kind: "static"; readonly servers: number }
  | { readonly kind: "leases"; readonly namespace: string };

/**
 * Expired leases and lost servers take a while, and an agent of Konnectivity's
 * finds servers behind one address by chance.
 */
const SETTLE_MS = 60_000;

/** Servers and agents of one case, in a namespace of its own. */
class BalancedRig implements AsyncDisposable {
  readonly servers: RunningServer[] = [];
  readonly agents: RunningAgent[] = [];
  readonly #balancer = new Balancer();
  #made = 0;

  private constructor(
    private readonly context: KubeContext,
    private readonly counting: Counting,
    private readonly makers: readonly [servers: Maker, agents: Maker],
  ) {}

  static counting(context: KubeContext, servers: number, ...makers: Makers) {
    return new BalancedRig(context, { kind: "static", servers }, makers);
  }

  static async byLeases(
    context: KubeContext,
    namespace: string,
    ...makers: Makers
  ): Promise<BalancedRig> {
    await context.cluster.kubectl(["create", "namespace", namespace]);
    return new BalancedRig(context, { kind: "leases", namespace }, makers);
  }

  async addServer(id = `s${++this.#made}`): Promise<RunningServer> {
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
    return server;
  }

  /** So many of each: the newest servers end in order, agents are killed. */
  async resize(count: number): Promise<void> {
    const all = (length: number, act: () => Promise<unknown>) =>
      Promise.all(Array.from({ length: Math.max(0, length) }, act));
    await all(count - this.servers.length, () => this.addServer());
    await all(count - this.agents.length, () => this.#addAgent());
    while (this.agents.length > count) {
      // One of Konnectivity's serves on after the first signal, for ever.
      await this.agents.pop()!.child.stop("SIGKILL");
    }
    while (this.servers.length > count) {
      const server = this.servers.pop()!;
      this.#balancer.remove(server.agentPort);
      await server.child.stop();
    }
    await this.#isWhole(`${count} of each`);
  }

  async leases(): Promise<readonly Lease[]> {
    using client = clientOf(this.context);
    const { items } = await client.get<ObjectList<Lease>>(this.#leasePath);
    return items ?? [];
  }

  async put(name: string, renewedMs: number): Promise<void> {
    using client = clientOf(this.context);
    await client.create(this.#leasePath, {
      metadata: { name, labels: { "k8s-app": "konnectivity-server" } },
      spec: {
        holderIdentity: name,
        leaseDurationSeconds: 30,
        renewTime: formatMicroTime(renewedMs),
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#balancer[Symbol.dispose]();
    for (const { child } of [...this.agents, ...this.servers]) {
      await child.stop("SIGKILL");
    }
  }

  get #leasePath(): string {
    if (this.counting.kind === "static") throw new TypeError("no leases");
    return objectPathOf(LEASES, { namespace: this.counting.namespace });
  }

  async #addAgent(): Promise<void> {
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

  #leaseFlags({ namespace }: { readonly namespace: string }): string[] {
    return [
      `--lease-namespace=${namespace}`,
      `--kubeconfig=${this.context.cluster.adminKubeconfig}`,
    ];
  }

  /** Each agent is linked to each server, and both know it. */
  async #isWhole(what: string): Promise<void> {
    const { servers, agents } = this;
    const wanted = (end: "server" | "agent", name: string, value: number) =>
      (end === "server" ? servers : agents).map(({ healthUrl }) => async () => {
        let seen = NaN;
        const family = `konnectivity_network_proxy_${end}_${name}`;
        await eventually(
          `${what}: ${family} of each ${end} is ${value}`,
          async () => (seen = await sumOf(healthUrl, family)) === value,
          SETTLE_MS,
        ).catch((error: Error) => {
          throw new Error(`${error.message}; one has ${seen}`);
        });
      });
    await Promise.all(
      [
        ...wanted("agent", "open_server_connections", servers.length),
        ...wanted("agent", "known_server_count", servers.length),
        ...wanted("server", "ready_backend_connections", agents.length),
      ].map((check) => check()),
    );
  }
}

type Makers = [servers: Maker, agents: Maker];

function keepsStaticCount(count: number, ...makers: Makers) {
  return async (context: KubeContext) => {
    await using rig = BalancedRig.counting(context, count, ...makers);
    await rig.resize(count);
  };
}

/** Both sides grow from two to four and shrink to two again. */
function followsLeases(...makers: Makers) {
  return async (context: KubeContext) => {
    const namespace = `scale-${makers.join("-")}`;
    await using rig = await BalancedRig.byLeases(context, namespace, ...makers);
    for (const count of [2, 4, 2]) await rig.resize(count);
  };
}

export const KUBE_LEASE_CASES: KubeCases = {
  "our server publishes a lease as upstream does, renews and deletes it":
    async (context) => {
      await using rig = await ourLeases(context, "lease-ours");
      const server = await rig.addServer("s1");
      const made = await theLease(rig);
      assertEquals(made.metadata.name, "konnectivity-proxy-server-s1");
      assertEquals(made.metadata.labels, { "k8s-app": "konnectivity-server" });
      assertEquals(
        [made.spec?.holderIdentity, made.spec?.leaseDurationSeconds],
        ["s1", 30],
      );
      await eventually("it is renewed", async () => {
        const [now] = await rig.leases();
        return now!.spec?.renewTime !== made.spec?.renewTime;
      });
      await server.child.stop();
      assertEquals(await rig.leases(), []);
    },
  "our server takes over the lease of its earlier life": async (context) => {
    await using rig = await ourLeases(context, "lease-again");
    const server = await rig.addServer("s1");
    const made = await theLease(rig);
    await server.child.stop("SIGKILL");
    await rig.addServer("s1");
    await eventually("it is renewed", async () => {
      const [now] = await rig.leases();
      return now!.spec?.renewTime !== made.spec?.renewTime &&
        now!.metadata.uid === made.metadata.uid;
    });
  },
  "leases that expired are removed, those that hold are not": async (
    context,
  ) => {
    await using rig = await ourLeases(context, "lease-expired");
    await rig.put("dead", Date.now() - 31_000);
    await rig.put("alive", Date.now() + 60_000);
    await rig.addServer("s1");
    await eventually("one is gone", async () => {
      const names = (await rig.leases()).map(({ metadata }) => metadata.name);
      return names.join() === "alive,konnectivity-proxy-server-s1";
    });
  },
  "one server and one agent of ours, by a static count (TestSingleServer_SingleAgent_StaticCount)":
    keepsStaticCount(1, "ours", "ours"),
  "our servers and agents, by a static count (TestMultiServer_MultiAgent_StaticCount)":
    keepsStaticCount(2, "ours", "ours"),
  "our servers and Konnectivity's agents, by a static count": keepsStaticCount(
    2,
    "ours",
    "konnectivity",
  ),
  "Konnectivity's servers and our agents, by a static count": keepsStaticCount(
    2,
    "konnectivity",
    "ours",
  ),
  "our servers and agents grow and shrink, by leases (TestMultiServer_MultiAgent_LeaseCount)":
    followsLeases("ours", "ours"),
  "our servers and Konnectivity's agents grow and shrink, by leases":
    followsLeases("ours", "konnectivity"),
  "Konnectivity's servers and our agents grow and shrink, by leases":
    followsLeases("konnectivity", "ours"),
};

function ourLeases(context: KubeContext, namespace: string) {
  return BalancedRig.byLeases(context, namespace, "ours", "ours");
}

async function theLease(rig: BalancedRig): Promise<Lease> {
  await eventually(
    "there is a lease",
    async () => (await rig.leases()).length === 1,
  );
  return (await rig.leases())[0]!;
}
