/**
 * What the cases of `kube.ts` share: a cluster, a workspace, tunnels whose
 * agents show tokens, and bytes through them.
 *
 * @module
 */

import { kubeconfigAccess } from "../../neighbours/kubernetes/kubeconfig.ts";
import { KubernetesClient } from "../../neighbours/kubernetes/client.ts";
import type { Cases } from "./case_runner.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { KubeCluster } from "../peers/kube_cluster.ts";
import {
  launchAgent,
  type Maker,
  type RunningAgent,
  type RunningServer,
  startServer,
} from "../../tests/support/program/tunnel.ts";
import type { Child } from "../../tests/support/program/child.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { ConduitProbe } from "../../tests/support/memory/conduit_probe.ts";
import { ProbeTarget } from "../../tests/support/peers/probe_target.ts";
import { dialAt } from "../../tests/support/rigs/processes.ts";
import { eventually as come } from "../../tests/support/watch/patience.ts";

/** What a case gets. */
export interface KubeContext {
  readonly cluster: KubeCluster;
  readonly workspace: Workspace;
}

/** By sentence. */
export type KubeCases = Cases<KubeContext>;

/** Whom agents' tokens are meant for, as everybody's manifests have it. */
export const AUDIENCE = "system:konnectivity-server";

/** Waits for what comes by itself, which programs of others take longer for. */
export function eventually(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  timeoutMs = 30_000,
): Promise<void> {
  return come(what, isSo, timeoutMs);
}

/** A client of ours with an administrator's rights, or another kubeconfig's. */
export function clientOf(
  { cluster }: KubeContext,
  kubeconfig = cluster.adminKubeconfig,
): KubernetesClient {
  const access = kubeconfigAccess(kubeconfig, systemTimers);
  return new KubernetesClient({
    access: () => access,
    timers: systemTimers,
    random: Math.random,
  });
}

/** A token of a ServiceAccount in `kube-system`, which is made if need be. */
export async function tokenOf(
  { cluster }: KubeContext,
  serviceAccount: string,
  flags: readonly string[] = [`--audience=${AUDIENCE}`],
): Promise<string> {
  const metadata = { name: serviceAccount, namespace: "kube-system" };
  await cluster.apply([{ kind: "ServiceAccount", metadata }]);
  const create = ["create", "token", serviceAccount, "--namespace=kube-system"];
  return await cluster.kubectl([...create, ...flags]);
}

/** Until the server has the agent; then bytes go through. */
export async function getsIn(
  server: RunningServer,
  agent: { readonly child: Child; readonly healthUrl: string },
): Promise<void> {
  await agent.child.untilReady(`${agent.healthUrl}/readyz`);
  await server.child.untilReady(`${server.healthUrl}/readyz`);
  await exchange(server);
}

/** A token of a ServiceAccount that is bound to a Pod on that node. */
export async function boundToken(
  context: KubeContext,
  node: string,
  account: string,
  ...flags: readonly string[]
): Promise<string> {
  await tokenOf(context, account, []);
  const name = `${account}-${node}`;
  await context.cluster.apply([{
    kind: "Pod",
    metadata: { name, namespace: "kube-system" },
    spec: {
      nodeName: node,
      serviceAccountName: account,
      containers: [{ name: "agent", image: "agent" }],
    },
  }]);
  const bound = ["--bound-object-kind=Pod", `--bound-object-name=${name}`];
  return await tokenOf(context, account, [...bound, ...flags]);
}

/** What runs for one case, and ends with it. */
export class Runs implements AsyncDisposable {
  readonly #running: { readonly child: Child }[] = [];

  constructor(protected readonly context: KubeContext) {}

  /** A server that knows agents by no certificate of the workspace. */
  protected async start(
    maker: Maker,
    extraFlags: readonly string[],
  ): Promise<RunningServer> {
    const how = {
      mode: "grpc",
      transport: "uds",
      agentsShow: "token",
    } as const;
    const { workspace } = this.context;
    return this.own(
      await startServer(workspace, { maker, ...how, extraFlags }),
    );
  }

  /** @returns What ends with the case from now on. */
  own<T extends { readonly child: Child }>(running: T): T {
    this.#running.push(running);
    return running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#running.toReversed()) {
      await child.stop("SIGKILL");
    }
  }
}

/** Servers and agents of one case. */
export class Tunnels extends Runs {
  /** A server that wants tokens of `kube-system/agent`. */
  async server(
    maker: Maker,
    flags: readonly string[] = [],
    kubeconfig = this.context.cluster.adminKubeconfig,
  ): Promise<RunningServer> {
    return await this.start(maker, [
      "--v=2",
      "--agent-namespace=kube-system",
      "--agent-service-account=agent",
      `--authentication-audience=${AUDIENCE}`,
      `--kubeconfig=${kubeconfig}`,
      ...flags,
    ]);
  }

  /** An agent; nobody waits for it. `--v=2` so that it says what it is told. */
  async agent(
    server: Pick<RunningServer, "agentHost" | "agentPort">,
    maker: Maker,
    flags: readonly string[] = [],
  ): Promise<RunningAgent> {
    const { workspace } = this.context;
    const all = ["--v=2", ...flags];
    return this.own(await launchAgent(workspace, server, maker, all));
  }

  /** A file with a token in it, and a line feed as editors leave it. */
  async tokenFile(token: string): Promise<string> {
    const path = this.context.workspace.path("token");
    await Deno.writeTextFile(path, `${token}\n`, { mode: 0o600 });
    return path;
  }
}

/** Bytes there and back through the server's one agent. */
export async function exchange({ frontend }: RunningServer): Promise<void> {
  if (frontend.transport !== "uds") throw new TypeError("Expected a socket");
  await using target = new ProbeTarget();
  const to = { target: { protocol: "tcp", address: target.address } };
  const [conduit, far] = await Promise.all([
    dialAt(frontend.path, "grpc", to),
    target.next(),
  ]);
  const caller = new ConduitProbe(conduit);
  caller.send("there");
  await far.received(5);
  far.send("and back");
  await caller.received(8);
}
