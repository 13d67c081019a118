/**
 * kubeadm with our files, as `deploy/kubernetes/kubeadm` has them: static Pods
 * of servers beside kube-apiserver's, which asks a gateway over several.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { findPeer } from "../../tests/support/program/peers.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { mustEnd, mustRun, runToEnd } from "../../tests/support/program/run.ts";
import { type KubeCases, type KubeContext } from "./kube_case.ts";
import { ControlPlane, placed, podsIn } from "./kube_control_plane.ts";
import { logs, NODE } from "./kube_kubelet.ts";
import { FOLDER, specOf } from "./kube_manifests.ts";
import { loadPods } from "./pods/load.ts";
import type { Container, PodSpec } from "./pods/manifest.ts";
import { Pod } from "./pods/pod.ts";

const KUBEADM = `${FOLDER}/kubeadm`;

/** kube-apiserver's static Pod, as kubeadm writes it with our files. */
async function kubeadmsPod({ workspace }: KubeContext): Promise<string> {
  const folder = workspace.path("kubeadm");
  await Deno.mkdir(folder);
  const config = `${folder}/config.yaml`;
  const ours = await Deno.readTextFile(`${KUBEADM}/kubeadm.yaml`);
  await Deno.writeTextFile(
    config,
    ours.replace("/etc/kubernetes/tunnel/patches", `${KUBEADM}/patches`)
      .replace("\n---\n", "\nkubernetesVersion: v1.36.3\n---\n"),
  );
  const { code, stdout, stderr } = await runToEnd([
    await findPeer("kubeadm"),
    ...["init", "phase", "control-plane", "apiserver", "--dry-run"],
    `--config=${config}`,
  ], { env: { KUBEADM_INIT_DRYRUN_DIR: folder } });
  assertEquals(code, 0, stdout + stderr);
  return await Deno.readTextFile(`${folder}/kube-apiserver.yaml`);
}

/** What kubeadm and its reader have put on a host. */
async function makeHost(
  { context: { cluster, workspace }, sockets }: ControlPlane,
): Promise<Readonly<Record<string, string>>> {
  const [pki, own] = [workspace.path("pki"), workspace.path("tunnel")];
  const pair = await cluster.issue("host", {
    commonName: "kube-apiserver",
    ...{ usage: "server", names: ["127.0.0.1"] },
  });
  const client = `${cluster.folder}/pki/kubelet-client`;
  const config = workspace.path("kubeadm.yaml");
  await Deno.writeTextFile(
    config,
    JSON.stringify({
      apiVersion: "kubeadm.k8s.io/v1beta4",
      kind: "ClusterConfiguration",
      kubernetesVersion: "v1.36.3",
      certificatesDir: `${cluster.folder}/pki`,
      controlPlaneEndpoint: new URL(cluster.server).host,
    }),
  );
  await Deno.mkdir(pki);
  await Deno.mkdir(own);
  const files = {
    [cluster.caFile]: `${pki}/ca.crt`,
    [pair.cert]: `${pki}/apiserver.crt`,
    [pair.key]: `${pki}/apiserver.key`,
    [`${client}.crt`]: `${pki}/apiserver-kubelet-client.crt`,
    [`${client}.key`]: `${pki}/apiserver-kubelet-client.key`,
    [`${KUBEADM}/policy.yaml`]: `${own}/policy.yaml`,
  };
  for (const [from, to] of Object.entries(files)) await Deno.copyFile(from, to);
  const user = await mustEnd([
    ...[await findPeer("kubeadm"), "kubeconfig", "user"],
    ...["--client-name=tunnel-server", `--config=${config}`],
  ]);
  await Deno.writeTextFile(`${own}/server.conf`, user, { mode: 0o600 });
  return {
    "/etc/kubernetes/pki": pki,
    "/etc/kubernetes/tunnel": own,
    "/run/tunnel": sockets,
  };
}

/** The static Pod of a host, on ports that are free here. */
async function startBeside(
  plane: ControlPlane,
  name: string,
  host: Readonly<Record<string, string>>,
) {
  const [spec] = podsIn(await Deno.readTextFile(`${KUBEADM}/server.yaml`));
  const [port, agentPort, healthPort] = [freePort(), freePort(), freePort()];
  const pod = plane.own(
    await Pod.start(plane.context, {
      ...{ name, spec: spec!, namespace: "kube-system", host },
      change: (args) => [
        ...placed(args, { "--server-port": port }),
        ...[`--agent-port=${agentPort}`, `--health-port=${healthPort}`],
        ...["--admin-port=0", "--v=2"],
      ],
    }),
  );
  const health = `http://127.0.0.1:${healthPort}`;
  await pod.child.untilReady(`${health}/healthz`);
  return { pod, port, agentPort, health };
}

/** The Pod's gateway, which kube-apiserver is led to. */
async function gatewayIn(
  { containers }: PodSpec,
  egress: string,
): Promise<Container> {
  assertEquals(
    containers.map(({ name }) => name).toSorted(),
    ["gateway", "kube-apiserver"],
  );
  const [gateway] = containers.filter(({ name }) => name === "gateway");
  const [apiServer] = containers.filter(({ name }) => name !== "gateway");
  const frontend = gateway!.args.find((arg) => arg.startsWith("--frontend="))!;
  assertEquals(
    egress.replace(/^#.*\n/, ""),
    await mustRun("egress-config", frontend),
  );
  assertEquals(
    apiServer!.command!.filter((arg) => arg.includes("egress-selector")),
    ["--egress-selector-config-file=/etc/kubernetes/tunnel/egress.yaml"],
  );
  const mounted = apiServer!.volumeMounts.map(({ mountPath }) => mountPath);
  for (const path of ["/etc/kubernetes/tunnel", "/run/tunnel"]) {
    assertEquals(mounted.includes(path), true, path);
  }
  return gateway!;
}

async function besideKubeadm(context: KubeContext): Promise<void> {
  const pod = await kubeadmsPod(context);
  const egress = await Deno.readTextFile(`${KUBEADM}/egress.yaml`);
  const [spec] = podsIn(pod);
  const { name } = await gatewayIn(spec!, egress);
  await using plane = await ControlPlane.start(context, egress);
  const { cluster, workspace } = plane.context;
  const trial = ["apply", "--dry-run=server", "-f"];
  await cluster.kubectl([...trial, `${KUBEADM}/server.yaml`]);
  await cluster.kubectl([...trial, "-"], pod);
  await cluster.kubectl(["apply", "-f", `${KUBEADM}/rights.yaml`]);
  await cluster.kubectl(["apply", "-k", KUBEADM]);
  const host = await makeHost(plane);
  const servers = [
    await startBeside(plane, "host-1", host),
    await startBeside(plane, "host-2", host),
  ];
  const of = (ports: readonly number[]) =>
    ports.map((port) => `127.0.0.1:${port}`).join();
  const gateway = plane.own(
    await Pod.start(plane.context, {
      ...{ name, container: name, spec: spec!, namespace: "kube-system", host },
      change: (args) =>
        placed(args, { "--server": of(servers.map(({ port }) => port)) }),
    }),
  );
  await gateway.child.untilPrinted(/ -> grpc over /);
  const agent = plane.own(
    await Pod.start(plane.context, {
      name: "agent",
      spec: await specOf(plane.context, "daemonset/tunnel-agent"),
      namespace: "tunnel-state",
      fields: { "spec.nodeName": NODE, "status.hostIP": "127.0.0.1" },
      change: (args) => [
        ...placed(args, {
          "--server": of(servers.map(({ agentPort }) => agentPort)),
        }),
        ...[`--health-server-port=${freePort()}`, "--admin-server-port=0"],
      ],
    }),
  );
  for (const { pod, health } of servers) {
    await pod.child.untilReady(`${health}/readyz`);
  }
  const kubelet = await plane.startKubelet();
  await logs(cluster, kubelet);
  const pods = [gateway, ...servers.map(({ pod }) => pod), agent];
  await loadPods(workspace, plane.socket, pods);
  await servers[0]!.pod.child.stop("SIGKILL");
  await logs(cluster, kubelet);
}

export const KUBE_KUBEADM_CASES: KubeCases = {
  "kubeadm takes our files, and a gateway asks several servers": besideKubeadm,
};
