/**
 * `deploy/kubernetes`: a real API server takes all of it, by kustomize and by the
 * real helm, its accounts have the rights that they use, and the command lines of
 * its Pods work with them, as processes beside that server.
 *
 * @module
 */

import { assertEquals, assertStringIncludes } from "@std/assert";
import { parse } from "../../platform/documents/yaml.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import {
  dialAt,
  NO_PORTS,
  ServerProcess,
} from "../../tests/support/rigs/processes.ts";
import { Child } from "../../tests/support/program/child.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import { mustRun, runToEnd } from "../../tests/support/program/run.ts";
import { ProbeTarget } from "../../tests/support/peers/probe_target.ts";
import { ConduitProbe } from "../../tests/support/memory/conduit_probe.ts";
import type { KubeCases, KubeContext } from "./kube_case.ts";

/** The base, and the chart that is made of it. */
export const FOLDER =
  new URL("../../deploy/kubernetes", import.meta.url).pathname;
const NAMESPACE = "tunnel-state";

/** What a Pod of a manifest is started with. */
interface Manifest {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly { readonly args: readonly string[] }[];
      };
    };
  };
}

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
async function helm(
  { cluster }: KubeContext,
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

/** The flags of what was applied, with what a node would put in their places. */
export async function flagsOf(
  { cluster }: KubeContext,
  what: string,
  places: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const get = ["get", what, `--namespace=${NAMESPACE}`, "--output=json"];
  const { spec }: Manifest = JSON.parse(await cluster.kubectl(get));
  return spec.template.spec.containers[0]!.args.slice(1).map((arg) =>
    Object.entries(places).reduce(
      (text, [from, to]) => text.replace(from, to),
      arg,
    )
  );
}

export function tokenOf(
  { cluster }: KubeContext,
  account: string,
  ...more: readonly string[]
): Promise<string> {
  const create = ["create", "token", account, `--namespace=${NAMESPACE}`];
  return cluster.kubectl([...create, ...more]);
}

/** @param ca Where the file of its authority goes. */
async function startServer(
  context: KubeContext,
  socket: string,
  ca: string,
): Promise<ServerProcess> {
  const { cluster, workspace } = context;
  const key = workspace.path("state.key");
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  await Deno.writeFile(key, bytes, { mode: 0o600 });
  const token = await tokenOf(context, "tunnel-server");
  const access = await cluster.kubeconfig("manifests", { token });
  const own = workspace.path("server");
  const server = new ServerProcess(workspace, { id: "pod-1" });
  const flags = await flagsOf(context, "deployment/tunnel-server", {
    "$(POD_IP):8091": server.address,
    "=tunnel-server.tunnel-state.svc": "=127.0.0.1",
    "/key/state.key": key,
    "/var/lib/tunnel": own,
    "/run/tunnel/tunnel.sock": socket,
  });
  server.addFlags(
    ...flags.filter((flag) => !flag.startsWith("--server-id")),
    ...[`--kubeconfig=${access}`, "--admin-port=0", "--v=2"],
  );
  await server.start();
  const pem = await mustRun(
    ...["ca", "show", "--pem", `--state=kubernetes:${NAMESPACE}`],
    ...[`--state-dir=${own}`, `--kubeconfig=${access}`],
    `--state-key-file=${key}`,
  );
  await Deno.writeTextFile(ca, pem);
  return server;
}

async function startAgent(
  context: KubeContext,
  { address }: ServerProcess,
  ca: string,
): Promise<Child> {
  const { workspace } = context;
  const shown = workspace.path("token");
  const token = await tokenOf(
    context,
    ...["tunnel-agent", "--audience=tunnel-server"] as const,
  );
  await Deno.writeTextFile(shown, token);
  const flags = await flagsOf(context, "daemonset/tunnel-agent", {
    "tunnel-server.tunnel-state.svc:8091": address,
    "/ca/ca.crt": ca,
    "/token/token": shown,
    "=$(NODE_NAME)": "=node-1",
    "host=$(NODE_NAME)": "host=node-1",
    "$(HOST_IP)": "127.0.0.1",
  });
  return new Child({
    name: "agent",
    command: ourCommand("agent", ...flags, ...NO_PORTS),
    logFile: workspace.path("agent.log"),
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
      assertEquals([...usual], inBase);
      const values = "image=registry.example/t:2,replicas=3,monitoring=true," +
        "address=edge.example:443";
      const words = ["--set", values, "--namespace=elsewhere"];
      const other = await helm(context, ...template, ...words);
      for (
        const said of [
          ...["image: registry.example/t:2", "replicas: 3"],
          ...["kind: ServiceMonitor", "--server=edge.example:443"],
          ...["--server-names=edge.example,tunnel-server.elsewhere.svc"],
        ]
      ) assertStringIncludes(other, said);
      assertEquals(/image: tunnel|tunnel-state/.test(other), false, other);
      await helm(context, "lint", FOLDER);
      const install = ["install", "tunnel", FOLDER, here, "--create-namespace"];
      await helm(context, ...install);
      const get = ["get", "deployment,daemonset", here, "--output=name"];
      assertEquals(
        await cluster.kubectl(get),
        [
          "deployment.apps/tunnel-server",
          "daemonset.apps/tunnel-agent",
        ].join("\n"),
      );
      await helm(context, "uninstall", "tunnel", here);
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

  "the manifests are taken, and their Pods' commands serve with the rights that they give":
    async (context) => {
      await apply(context);
      const { workspace } = context;
      const [socket, ca] = [workspace.path("t.sock"), workspace.path("ca.crt")];
      await using server = await startServer(context, socket, ca);
      const agent = await startAgent(context, server, ca);
      const target = new ProbeTarget();
      try {
        await server.untilLinked("agent=node-1");
        const { address } = target;
        const dial = { target: { protocol: "tcp", address } };
        const caller = new ConduitProbe(await dialAt(socket, "grpc", dial));
        const far = await target.next();
        caller.send("hello");
        await far.received(5);
        caller.reset("enough");
      } finally {
        await agent.stop("SIGKILL");
        await target.close();
      }
      const log = await server.child.logTail();
      assertEquals(/[Ff]orbidden/.test(log), false, log);
    },
};
