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
import { openDialer } from "../../client/tunnel_dialer.ts";
import type { KubeCluster } from "../peers/kube_cluster.ts";
import {
  launchAgent,
  type Maker,
  type RunningAgent,
  type RunningServer,
  startServer,
} from "../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { ConduitProbe } from "../../tests/support/memory/conduit_probe.ts";
import { ProbeTarget } from "../../tests/support/peers/probe_target.ts";
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
  return new KubernetesClient({
    access: kubeconfigAccess(kubeconfig, { clock: systemTimers }),
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
  const manifest = {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name: serviceAccount, namespace: "kube-system" },
  };
  await cluster.kubectl(["apply", "-f", "-"], JSON.stringify(manifest));
  const create = ["create", "token", serviceAccount, "--namespace=kube-system"];
  return await cluster.kubectl([...create, ...flags]);
}

/** Servers and agents of one case; they end with it. */
export class Tunnels implements AsyncDisposable {
  readonly #running: { child: { stop(signal: "SIGKILL"): Promise<void> } }[] =
    [];

  constructor(private readonly context: KubeContext) {}

  /** A server that wants tokens of `kube-system/agent`. */
  async server(
    maker: Maker,
    flags: readonly string[] = [],
    kubeconfig = this.context.cluster.adminKubeconfig,
  ): Promise<RunningServer> {
    const server = await startServer(this.context.workspace, {
      maker,
      mode: "grpc",
      transport: "uds",
      agentsShow: "token",
      extraFlags: [
        "--v=2",
        "--agent-namespace=kube-system",
        "--agent-service-account=agent",
        `--authentication-audience=${AUDIENCE}`,
        `--kubeconfig=${kubeconfig}`,
        ...flags,
      ],
    });
    this.#running.push(server);
    return server;
  }

  /** An agent; nobody waits for it. `--v=2` so that it says what it is told. */
  async agent(
    server: Pick<RunningServer, "agentHost" | "agentPort">,
    maker: Maker,
    flags: readonly string[] = [],
  ): Promise<RunningAgent> {
    const { workspace } = this.context;
    const all = ["--v=2", ...flags];
    const agent = await launchAgent(workspace, server, maker, all);
    this.#running.push(agent);
    return agent;
  }

  /** A file with a token in it, and a line feed as editors leave it. */
  async tokenFile(token: string): Promise<string> {
    const path = this.context.workspace.path("token");
    await Deno.writeTextFile(path, `${token}\n`, { mode: 0o600 });
    return path;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#running.toReversed()) {
      await child.stop("SIGKILL");
    }
  }
}

/** Bytes there and back through the server's one agent. */
export async function exchange({ frontend }: RunningServer): Promise<void> {
  if (frontend.transport !== "uds") throw new TypeError("Expected a socket");
  const target = new ProbeTarget();
  const address = { kind: "unix", path: frontend.path } as const;
  const route = openDialer({ kind: "tunnel", protocol: "grpc", address });
  try {
    const [conduit, far] = await Promise.all([
      route.dial({ target: { protocol: "tcp", address: target.address } }),
      target.next(),
    ]);
    const caller = new ConduitProbe(conduit);
    caller.send("there");
    await far.received(5);
    far.send("and back");
    await caller.received(8);
  } finally {
    route.close();
    await target.close();
  }
}
