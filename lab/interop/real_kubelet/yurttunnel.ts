/**
 * A node on the way from yurttunnel to us and back, under requests all the time:
 * OpenYurt's own programs, whose server steers kube-apiserver by iptables, and
 * ours, to which a rule before theirs leads. The rules are those of the page.
 *
 * @module
 */

import { dirname } from "node:path";
import { assert, assertEquals } from "@std/assert";
import { Child } from "../../../tests/support/program/child.ts";
import { findDebianProgram } from "../../../tests/support/program/debian.ts";
import { findPeer } from "../../../tests/support/program/peers.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import {
  ourCommand,
  type RunningServer,
  startServer,
} from "../../../tests/support/program/tunnel.ts";
import { SteadyRequests } from "../../../tests/support/peers/steady_requests.ts";
import {
  SERVER_DIALS,
  sumOf,
} from "../../../tests/support/watch/metric_families.ts";
import { eventually } from "../../../tests/support/watch/patience.ts";
import { mustEnd } from "../../../tests/support/program/run.ts";
import { API_ADDRESS, KUBELET_PORT, NODE, NODE_ADDRESS } from "./places.ts";
import { SERVER_ADDRESS, type Stage } from "./stage.ts";
import { kubeletFlags } from "./ways.ts";

/** Of yurttunnel's server, as they are unless flags say otherwise. */
const AGENT_PORT = 10_262;
const META = "http://127.0.0.1:10265";
const REGISTERED = "konnectivity_network_proxy_server_total_registered_agents";

/** In the network of the node's cable, and of neither end. */
const NOWHERE = SERVER_ADDRESS.replace(/\d+$/, "254");

/** Of its waits for certificates, each of which lasts 5 s. */
const TIMEOUT_MS = 60_000;

/** Where its programs look for what a Pod has; /run is this run's alone. */
const POD_FOLDER = "/run/secrets/kubernetes.io/serviceaccount";

/** The rules of docs/migrate.md, with the addresses that there are here. */
async function rulesOfThePage(): Promise<readonly (readonly string[])[]> {
  const page = new URL("../../../docs/migrate.md", import.meta.url);
  const lines = (await Deno.readTextFile(page)).matchAll(/^iptables .+$/gm);
  return [...lines].map(([line]) =>
    line.replaceAll("10.0.0.7", NODE_ADDRESS)
      .replaceAll("10.0.0.1:20250", `${SERVER_ADDRESS}:${KUBELET_PORT}`)
      .split(" ")
  );
}

/** Deletes a rule that was inserted or appended. */
function withdraw(rule: readonly string[]): Promise<string> {
  return mustEnd(rule.map((word) => /^-[IA]$/.test(word) ? "-D" : word));
}

/** Both of OpenYurt's programs, with what an administrator does for them. */
class Yurttunnel {
  #server: Child | undefined;
  #agent: Child | undefined;

  constructor(private readonly stage: Stage) {}

  /** What its manifests and its users have in the cluster. */
  async prepare(): Promise<void> {
    const { cluster } = this.stage;
    const label = "openyurt.io/is-edge-worker=true";
    await cluster.kubectl(["label", "node", NODE, label]);
    const user = "tunnel-proxy-client";
    await cluster.bind("system:kubelet-api-admin", "User", user, user);
    const metadata = { name: "x-tunnel-server-svc", namespace: "kube-system" };
    const ports = [{ name: "tcp", port: AGENT_PORT }];
    const subsets = [{ addresses: [{ ip: SERVER_ADDRESS }], ports }];
    await cluster.apply([
      { kind: "Service", metadata, spec: { ports } },
      { kind: "Endpoints", metadata, subsets },
    ]);
    await Deno.mkdir(POD_FOLDER, { recursive: true });
    await Deno.copyFile(cluster.caFile, `${POD_FOLDER}/ca.crt`);
  }

  /** Until its agent is linked. */
  async start(): Promise<void> {
    const { cluster, workspace } = this.stage;
    // Two certificates share one file, and a second start reads the wrong one.
    const folder = await Deno.makeTempDir({ dir: POD_FOLDER });
    const kubeconfig = `${folder}/admin.kubeconfig`;
    const flat = ["config", "view", "--raw", "--flatten"];
    await Deno.writeTextFile(kubeconfig, await cluster.kubectl(flat));
    const conntrack = await findDebianProgram("conntrack");
    const path = `${dirname(conntrack.path)}:${Deno.env.get("PATH")}`;
    const server = this.#server = new Child({
      name: "yurttunnel-server",
      command: [
        // Its socket has a place of its own in /tmp, as in a Pod.
        ...["unshare", "--mount", "sh", "-c"],
        'mount -t tmpfs none /tmp && exec "$@"',
        ...["sh", await findPeer("yurt-tunnel-server"), "-v=2"],
        `--kube-config=${kubeconfig}`,
        `--cert-dir=${folder}`,
        `--bind-address=${SERVER_ADDRESS}`,
        `--cert-ips=${SERVER_ADDRESS},${NODE_ADDRESS}`,
        "--enable-dns-controller=false",
      ],
      env: { PATH: path, LD_LIBRARY_PATH: conntrack.libraries.join(":") },
      logFile: workspace.path("yurttunnel-server.log"),
    });
    const agent = [await findPeer("yurt-tunnel-agent")];
    this.#agent = await startAgent(this.stage, agent, AGENT_PORT);
    await eventually("yurttunnel's agent is linked", async () => {
      assert(!server.hasEnded, await server.logTail());
      await this.#approve();
      return await sumOf(META, REGISTERED) > 0;
    }, TIMEOUT_MS);
  }

  /** Connections to the node that it has made since it was started. */
  dials(): Promise<number> {
    return sumOf(META, SERVER_DIALS);
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
    await this.#agent?.stop("SIGKILL");
  }

  /** What yurt-manager or an administrator does. */
  async #approve(): Promise<void> {
    const { cluster } = this.stage;
    const requests = await cluster.kubectl(["get", "csr", "--output=name"]);
    if (requests === "") return;
    await cluster.kubectl(["certificate", "approve", ...requests.split("\n")]);
  }
}

/** A server with the kubelet port and an agent that takes yurttunnel's place. */
class Ours {
  #server: RunningServer | undefined;
  #agent: Child | undefined;

  constructor(private readonly stage: Stage) {}

  async start(): Promise<void> {
    const { cluster, workspace } = this.stage;
    const own = await cluster.issue("tunnel-server", {
      ...{ commonName: "tunnel-server", usage: "server" },
      names: [SERVER_ADDRESS],
    });
    const server = this.#server = await startServer(workspace, {
      ...{ maker: "ours", mode: "grpc", transport: "uds" },
      ...{ agentsShow: "token", agentHost: SERVER_ADDRESS },
      extraFlags: [
        ...["--v=4", "--csr-approver", "--node-binding=enforce"],
        `--cluster-cert=${own.cert}`,
        `--cluster-key=${own.key}`,
        `--cluster-ca-cert=${cluster.caFile}`,
        ...await kubeletFlags(cluster, "lookup"),
      ],
    });
    const agent = ourCommand("yurttunnel-agent");
    this.#agent = await startAgent(this.stage, agent, server.agentPort);
    await server.child.untilReady(`${server.healthUrl}/readyz`);
  }

  dials(): Promise<number> {
    return sumOf(this.#server!.healthUrl, SERVER_DIALS);
  }

  async stop(): Promise<void> {
    await this.#server?.child.stop();
    await this.#agent?.stop();
  }
}

/** Both take the same flags and environment, and ask as the node's kubelet. */
async function startAgent(
  { cluster, node, workspace }: Stage,
  program: readonly string[],
  port: number,
): Promise<Child> {
  const server = cluster.server.replace("127.0.0.1", API_ADDRESS);
  const name = `system:node:${NODE}`;
  const kubeconfig = await cluster.user(name, ["system:nodes"], server);
  return new Child({
    name: "yurttunnel-agent",
    command: [
      ...[...node.prefix, ...program, "--v=2"],
      ...[`--node-name=${NODE}`, `--node-ip=${NODE_ADDRESS}`],
      `--kube-config=${kubeconfig}`,
      `--cert-dir=${await Deno.makeTempDir({ dir: POD_FOLDER })}`,
      `--tunnelserver-addr=${SERVER_ADDRESS}:${port}`,
      `--meta-port=${freePort()}`,
    ],
    env: { NODE_NAME: NODE, POD_IP: NODE_ADDRESS },
    logFile: workspace.path("yurttunnel-agent.log"),
  });
}

/** Requests all the time: of kube-apiserver, and of the kubelet by a collector. */
class Load {
  private constructor(
    private readonly client: Deno.HttpClient,
    private readonly kinds: readonly SteadyRequests[],
  ) {}

  static async start({ cluster }: Stage): Promise<Load> {
    const pki = (name: string) =>
      Deno.readTextFile(`${cluster.folder}/pki/${name}`);
    const client = Deno.createHttpClient({
      caCerts: [await pki("ca.crt")],
      ...{ cert: await pki("admin.crt"), key: await pki("admin.key") },
      // What a tunnel cuts must not be asked again on another connection.
      poolMaxIdlePerHost: 0,
    });
    const log = "/api/v1/namespaces/default/pods/web/log";
    const asks = Object.entries({
      [cluster.server + log]: "the first line\n",
      [`https://${NODE_ADDRESS}:${KUBELET_PORT}/healthz`]: "ok",
    }).map(([url, wanted]) => async () => {
      const answer = await fetch(url, { client });
      const said = await answer.text();
      if (!said.startsWith(wanted)) throw new Error(`${answer.status} ${said}`);
    });
    for (const ask of asks) await ask();
    return new Load(client, asks.map((ask) => new SteadyRequests(ask, 2, 20)));
  }

  /** So many more of each. */
  async goesOn(): Promise<void> {
    await Promise.all(this.kinds.map((requests) => requests.more(ROUND)));
  }

  /** None was lost. */
  async end(): Promise<void> {
    for (const requests of this.kinds) {
      await requests.mustBeAnswered(ROUNDS * ROUND);
    }
    this.client.close();
  }
}

/** Requests of each kind between two steps, and how often that is. */
const ROUND = 50;
const ROUNDS = 9;

/** See the module description. */
export async function fromYurttunnelAndBack(stage: Stage): Promise<void> {
  await using ends = new AsyncDisposableStack();
  // Only rules lead to the node's address from here: the way has no next hop.
  const ip = (...words: string[]) => mustEnd(["ip", ...words]);
  const place = [`${NODE_ADDRESS}/32`, "dev", "lo"];
  await ip("address", "delete", ...place);
  ends.defer(async () => void await ip("address", "add", ...place));
  await ip("route", "add", NODE_ADDRESS, "via", NOWHERE);
  const rules = await rulesOfThePage();
  const [leadToOurs, endKept, makeChain, leadInChain] = rules;
  const theirs = new Yurttunnel(stage);
  ends.defer(() => theirs.stop());
  const ours = new Ours(stage);
  ends.defer(() => ours.stop());
  await theirs.prepare();
  await theirs.start();
  const load = await Load.start(stage);
  await load.goesOn();

  await ours.start();
  await load.goesOn();
  assert(await theirs.dials() >= 4 * ROUND, "requests go by yurttunnel");
  assertEquals(await ours.dials(), 0);
  await mustEnd(leadToOurs!);
  await load.goesOn();
  await mustEnd(endKept!);
  await load.goesOn();
  const left = await theirs.dials();
  await load.goesOn();
  assertEquals(await theirs.dials(), left, "requests that still go there");
  await withdraw(endKept!);
  await theirs.stop();
  await load.goesOn();
  assert(await ours.dials() >= 4 * ROUND, "requests go by ours");

  await mustEnd(makeChain!);
  await mustEnd(leadInChain!);
  await theirs.start();
  await load.goesOn();
  assertEquals(await theirs.dials(), 0);
  await withdraw(leadToOurs!);
  await withdraw(leadInChain!);
  await load.goesOn();
  await ours.stop();
  await load.goesOn();
  assert(await theirs.dials() >= 2 * ROUND, "requests go by yurttunnel again");
  await load.end();
}
