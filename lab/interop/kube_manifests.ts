/**
 * `deploy/kubernetes`: a real API server takes all of it, and the command lines of
 * its Pods work with the rights that it gives, as processes beside that server.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import {
  dialAt,
  NO_PORTS,
  ServerProcess,
} from "../../tests/support/rigs/processes.ts";
import { Child } from "../../tests/support/program/child.ts";
import { mustRun } from "../../tests/support/program/run.ts";
import { ProbeTarget } from "../../tests/support/peers/probe_target.ts";
import { ConduitProbe } from "../../tests/support/memory/conduit_probe.ts";
import type { KubeCases, KubeContext } from "./kube_case.ts";

const FOLDER = new URL("../../deploy/kubernetes", import.meta.url).pathname;
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
async function apply({ cluster }: KubeContext): Promise<void> {
  const gone = ["delete", "namespace", NAMESPACE, "--ignore-not-found"];
  await cluster.kubectl([...gone, "--wait=true"]);
  // Nothing is in a namespace that is not there, not even on trial.
  await cluster.kubectl(["apply", "-f", `${FOLDER}/state.yaml`]);
  const all = ["apply", "--server-side", "-k", FOLDER];
  await cluster.kubectl([...all, "--dry-run=server"]);
  await cluster.kubectl(all);
}

/** The flags of what was applied, with what a node would put in their places. */
async function flagsOf(
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

function tokenOf(
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
