/**
 * `deploy/kubernetes`: a real API server takes all of it, by kustomize and by the
 * real helm, its accounts have the rights that they use, and the command lines of
 * its Pods work with them, under the mounts, users and limits that it says.
 *
 * @module
 */

import { assertEquals, assertStringIncludes } from "@std/assert";
import { parse } from "../../platform/documents/yaml.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { runToEnd } from "../../tests/support/program/run.ts";
import { NO_PORTS } from "../../tests/support/rigs/processes.ts";
import type { KubeCases, KubeContext } from "./kube_case.ts";
import { loadPods } from "./pods/load.ts";
import type { Manifest, PodSpec } from "./pods/manifest.ts";
import { Pod } from "./pods/pod.ts";

/** The base, and the chart that is made of it. */
export const FOLDER =
  new URL("../../deploy/kubernetes", import.meta.url).pathname;
const NAMESPACE = "tunnel-state";
const KEY = "tunnel-state-key";

/** All of it is tried, and then applied. */
async function apply(context: KubeContext): Promise<void> {
  const { cluster } = context;
  await remove(context);
  // Nothing is in a namespace that is not there, not even on trial.
  await cluster.kubectl(["apply", "-f", `${FOLDER}/state.yaml`]);
  const all = ["apply", "--server-side", "-k", FOLDER];
  await cluster.kubectl([...all, "--dry-run=server"]);
  const csr = ["apply", "--dry-run=server", "-f", `${FOLDER}/csr.yaml`];
  await cluster.kubectl(csr);
  await cluster.kubectl(all);
}

async function remove({ cluster }: KubeContext): Promise<void> {
  const gone = ["delete", "--ignore-not-found", "--wait=true", "-k", FOLDER];
  await cluster.kubectl(gone);
}

/** By `apiVersion`, kind, namespace and name. */
type Objects = ReadonlyMap<string, unknown>;

/** What a text of manifests says, whatever their order and comments. */
function objectsIn(text: string): Objects {
  const objects = text.split(/^---\n/m)
    .map((each) => parse(each) as Manifested | null)
    .filter((each) => each !== null);
  const named = objects.map((each): [string, unknown] => {
    const { apiVersion, kind, metadata: { namespace = "", name } } = each;
    return [[apiVersion, kind, namespace, name].join(" "), each];
  });
  return new Map(named.toSorted(([one], [two]) => one < two ? -1 : 1));
}

interface Manifested {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly namespace?: string; readonly name: string };
}

/** Runs the real helm. */
export async function helm(
  { cluster }: Pick<KubeContext, "cluster">,
  ...words: readonly string[]
): Promise<string> {
  const access = `--kubeconfig=${cluster.adminKubeconfig}`;
  const command = [await findPeer("helm"), ...words, access];
  const { code, stdout, stderr } = await runToEnd(command);
  if (code !== 0) throw new Error(`helm ${words.join(" ")}: ${stderr}`);
  return stdout;
}

/** What `who` may do that an account without rights may not. */
async function rightsOf(
  { cluster }: KubeContext,
  who: string,
  namespace: string,
): Promise<readonly string[]> {
  const list = async (as: string) => {
    const said = await cluster.kubectl(
      ["auth", "can-i", "--list", `--as=${as}`, `--namespace=${namespace}`],
    );
    return said.split("\n").map((line) =>
      line.replaceAll("[]", "").replace(/\s+/g, " ").trim()
    );
  };
  const account = `system:serviceaccount:${NAMESPACE}`;
  const usual = await list(`${account}:without-rights`);
  const all = await list(who.replace(/^account /, `${account}:`));
  return all.filter((line) => !usual.includes(line)).toSorted();
}

const HOST_RIGHTS = [
  "nodes [get]",
  "tokenreviews.authentication.k8s.io [create]",
];

const STATE_VERBS = "[get list watch create update delete]";

/** By whom and where; all that they may do. */
const RIGHTS: readonly (readonly [string, string, readonly string[]])[] = [
  ["account tunnel-server", NAMESPACE, [
    `leases.coordination.k8s.io ${STATE_VERBS}`,
    HOST_RIGHTS[0]!,
    `secrets ${STATE_VERBS}`,
    HOST_RIGHTS[1]!,
  ]],
  ["account tunnel-server", "default", HOST_RIGHTS],
  ["account tunnel-agent", NAMESPACE, []],
  // Of a server beside the control plane.
  ["tunnel-server", NAMESPACE, HOST_RIGHTS],
];

/** The Pods of what was applied. */
export async function specOf(
  { cluster }: KubeContext,
  what: string,
): Promise<PodSpec> {
  const get = ["get", what, `--namespace=${NAMESPACE}`, "--output=json"];
  const { spec }: Manifest = JSON.parse(await cluster.kubectl(get));
  return spec.template!.spec;
}

/** The Secret that the base's reader is told to make, and Helm makes. */
async function makeKey({ cluster, workspace }: KubeContext): Promise<void> {
  const key = workspace.path("state.key");
  await Deno.writeFile(key, crypto.getRandomValues(new Uint8Array(32)));
  await cluster.kubectl([
    ...["create", "secret", "generic", KEY],
    ...[`--namespace=${NAMESPACE}`, `--from-file=state.key=${key}`],
  ]);
}

/** What is in it. */
async function keyIn({ cluster }: KubeContext): Promise<Uint8Array> {
  const get = ["get", "secret", KEY, `--namespace=${NAMESPACE}`];
  const text = await cluster.kubectl([...get, "--output=json"]);
  return Uint8Array.fromBase64(JSON.parse(text).data["state.key"]);
}

/** What kubelets make for a hostPath, and a Pod there. */
async function startServer(
  context: KubeContext,
  sockets: string,
  port: number,
): Promise<Pod> {
  await Deno.mkdir(sockets, { mode: 0o755 });
  const health = freePort();
  const pod = await Pod.start(context, {
    name: "server",
    spec: await specOf(context, "deployment/tunnel-server"),
    namespace: NAMESPACE,
    host: { "/run/tunnel": sockets },
    fields: { "metadata.name": "tunnel-server-1", "status.podIP": "127.0.0.1" },
    change: (args) => [
      ...args.map((arg) => arg.replace(":8091", `:${port}`)),
      ...[`--agent-port=${port}`, "--agent-bind-address=127.0.0.1"],
      ...[`--health-port=${health}`, "--health-bind-address=127.0.0.1"],
      ...["--admin-port=0", "--v=2"],
    ],
  });
  await pod.child.untilPrinted(/server started/);
  await pod.child.untilReady(`http://127.0.0.1:${health}/healthz`);
  return pod;
}

/** It trusts what the server has put into its state. */
async function startAgent(context: KubeContext, port: number): Promise<Pod> {
  return await Pod.start(context, {
    name: "agent",
    spec: await specOf(context, "daemonset/tunnel-agent"),
    namespace: NAMESPACE,
    fields: { "spec.nodeName": "node-1", "status.hostIP": "127.0.0.1" },
    hosts: ["tunnel-server.tunnel-state.svc"],
    change: (args) => [
      ...args.map((arg) => arg.replace(":8091", `:${port}`)),
      ...NO_PORTS,
    ],
  });
}

export const KUBE_MANIFEST_CASES: KubeCases = {
  "helm says what the base says, with the values that it is given, and installs it":
    async (context) => {
      const { cluster } = context;
      await remove(context);
      const base = objectsIn(await cluster.kubectl(["kustomize", FOLDER]));
      const inBase = [...base].filter(([name]) => !/ Namespace /.test(name));
      const template = ["template", "tunnel", FOLDER];
      const here = `--namespace=${NAMESPACE}`;
      const usual = objectsIn(await helm(context, ...template, here));
      const key = `v1 Secret ${NAMESPACE} ${KEY}`;
      assertEquals([...usual].filter(([name]) => name !== key), inBase);
      const values = "image=registry.example/t:2,replicas=3,monitoring=true," +
        "address=edge.example:443,makeKey=false";
      const words = ["--set", values, "--namespace=elsewhere"];
      const other = await helm(context, ...template, ...words);
      for (
        const said of [
          ...["image: registry.example/t:2", "replicas: 3"],
          ...["kind: ServiceMonitor", "--server=edge.example:443"],
          ...["--server-names=edge.example,tunnel-server.elsewhere.svc"],
        ]
      ) assertStringIncludes(other, said);
      const unwanted = /image: tunnel|tunnel-state[^-]|kind: Secret\n/;
      assertEquals(unwanted.test(other), false, other);
      await helm(context, "lint", FOLDER);
      const install = ["install", "tunnel", FOLDER, here, "--create-namespace"];
      await helm(context, ...install);
      const made = await keyIn(context);
      assertEquals(made.length, 32);
      const get = ["get", "deployment,daemonset", here, "--output=name"];
      assertEquals(
        await cluster.kubectl(get),
        [
          "deployment.apps/tunnel-server",
          "daemonset.apps/tunnel-agent",
        ].join("\n"),
      );
      const upgrade = ["upgrade", "tunnel", FOLDER, here, "--set=replicas=1"];
      await helm(context, ...upgrade);
      await helm(context, "uninstall", "tunnel", here);
      assertEquals(await keyIn(context), made);
      await cluster.kubectl(["delete", "secret", KEY, here]);
      await makeKey(context);
      const onTrial = await helm(context, ...install, "--dry-run=server");
      assertEquals(onTrial.includes("kind: Secret\n"), false, "its own key");
    },

  "the manifests give the rights that programs use, and no others": async (
    context,
  ) => {
    await apply(context);
    const { cluster } = context;
    await cluster.kubectl(["apply", "-f", `${FOLDER}/kubeadm/rights.yaml`]);
    for (const [who, namespace, rights] of RIGHTS) {
      assertEquals(await rightsOf(context, who, namespace), rights, who);
    }
  },

  "the manifests are taken, and their Pods serve with the rights, mounts and limits that they give":
    async (context) => {
      await apply(context);
      await makeKey(context);
      const { workspace } = context;
      const [sockets, port] = [workspace.path("sockets"), freePort()];
      await using server = await startServer(context, sockets, port);
      await using agent = await startAgent(context, port);
      await server.child.untilPrinted(/agent linked.*agent=node-1/);
      const status = await server.exec("tunnel", "status");
      assertStringIncludes(status, "1 online");
      const pods = [server, agent];
      await loadPods(workspace, `${sockets}/tunnel.sock`, pods);
      for (const pod of pods.toReversed()) assertEquals(await pod.end(), 0);
      const log = await Deno.readTextFile(server.child.logFile);
      assertEquals(/[Ff]orbidden/.test(log), false, log);
    },
};
