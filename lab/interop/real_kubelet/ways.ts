/**
 * The ways on which kube-apiserver gets to the node: our kubelet port, which it
 * takes for the kubelet's, and its EgressSelector as `tunnel egress-config`
 * writes it, at a server or at a gateway before two, of which the one in use is
 * killed.
 *
 * @module
 */

import { assert } from "@std/assert";
import type { KubeCluster } from "../../peers/kube_cluster.ts";
import { Child } from "../../../tests/support/program/child.ts";
import { mustRun } from "../../../tests/support/program/run.ts";
import {
  ourCommand,
  type Protocol,
  type RunningServer,
} from "../../../tests/support/program/tunnel.ts";
import {
  SERVER_DIALS,
  sumOf,
} from "../../../tests/support/watch/metric_families.ts";
import { eventually } from "../../../tests/support/watch/patience.ts";
import { KUBELET_PORT, NODE_ADDRESS } from "./places.ts";
import type { Stage } from "./stage.ts";

/**
 * Leads kube-apiserver there and has all done that people do with kubectl, once
 * or more often. Fails when it was another way that carried it.
 */
export type Way = (
  stage: Stage,
  doAll: (circumstance?: string) => Promise<void>,
) => Promise<void>;

/** By name. */
export const WAYS: Readonly<Record<string, Way>> = {
  "kubelet port, node by its address": byPort("address"),
  "kubelet port, node looked up": byPort("lookup"),
  "EgressSelector, gRPC over a socket": byEgress("uds", "grpc"),
  "EgressSelector, CONNECT over a socket": byEgress("uds", "http-connect"),
  "EgressSelector, CONNECT over TLS": byEgress("tcp", "http-connect"),
  "gateway, gRPC": byGateway("grpc"),
  "gateway, CONNECT": byGateway("http-connect"),
};

/** Of requests to the kubelet port, as the server's metrics have them. */
const KINDS = ["exec", "attach", "portForward", "containerLogs", "metrics"];

function byPort(knownBy: "address" | "lookup"): Way {
  return async (stage, doAll) => {
    const { adminUrl } = await stage.serve({
      ...{ mode: "grpc", transport: "uds" },
      extraFlags: await kubeletFlags(stage.cluster, knownBy),
    });
    await doAll();
    const text = await (await fetch(`${adminUrl}/metrics`)).text();
    const counted =
      /^tunnel_server_kubelet_requests_total\{kind="(\w+)",status="[12]xx"\}/gm;
    const kinds = new Set([...text.matchAll(counted)].map(([, kind]) => kind));
    for (const kind of KINDS) assert(kinds.has(kind), [...kinds].join(" "));
  };
}

/** As docs/kubernetes.md has them; nothing is said about the port's address. */
export async function kubeletFlags(
  cluster: KubeCluster,
  knownBy: "address" | "lookup",
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
    ...(knownBy === "lookup"
      ? ["--kubelet-lookup", `--kubeconfig=${cluster.adminKubeconfig}`]
      : []),
  ];
}

function byEgress(transport: "uds" | "tcp", protocol: Protocol): Way {
  return async (stage, doAll) => {
    const server = await stage.serve({ mode: "auto", transport });
    const { ca, client } = stage.workspace.certificates;
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
    await lead(stage, at, protocol);
    await doAll();
    await hasDialed(server);
  };
}

/** A gateway in front of two servers; the one that is used is killed. */
function byGateway(protocol: Protocol): Way {
  return async (stage, doAll) => {
    const options = { mode: "auto", transport: "uds" } as const;
    const used = await stage.serve(options);
    const other = await stage.serve(options);
    const sockets = [used, other].map(({ frontend }) =>
      frontend.transport === "uds" ? `unix:${frontend.path}` : ""
    );
    const at = [`--frontend=unix:${stage.workspace.path("gate")}`];
    const { child } = stage.own({
      child: new Child({
        name: "gateway",
        command: ourCommand("forward", ...at, `--server=${sockets.join()}`),
        logFile: stage.workspace.path("gateway.log"),
      }),
    });
    await child.untilPrinted(/ -> grpc over /);
    await lead(stage, at, protocol);
    await doAll();
    await hasDialed(used);
    await used.child.stop("SIGKILL");
    await doAll(", its server killed");
    await hasDialed(other);
  };
}

/** Starts kube-apiserver anew with an EgressSelector: it reads its file once. */
export async function lead(
  { cluster, workspace }: Stage,
  at: readonly string[],
  protocol: Protocol,
): Promise<void> {
  const file = workspace.path("egress.yaml");
  const text = await mustRun("egress-config", ...at, `--protocol=${protocol}`);
  await Deno.writeTextFile(file, text);
  // The last of two counts.
  cluster.flags = [...cluster.flags, `--egress-selector-config-file=${file}`];
  await cluster.restartApiServer(() => Promise.resolve());
}

async function hasDialed({ healthUrl }: RunningServer): Promise<void> {
  await eventually(
    "the tunnel has carried them",
    async () => await sumOf(healthUrl, SERVER_DIALS) >= 3,
  );
}
