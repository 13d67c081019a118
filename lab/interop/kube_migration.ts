/**
 * The way from Konnectivity and back, with both beside a kube-apiserver whose
 * EgressSelector leads to a gateway of ours: it loses no request. What upstream's
 * examples would run are processes here, with the flags that those have.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { Child } from "../../tests/support/program/child.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { mustEnd, mustRun } from "../../tests/support/program/run.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import { dialAt } from "../../tests/support/rigs/processes.ts";
import {
  SERVER_DIALS,
  sumOf,
} from "../../tests/support/watch/metric_families.ts";
import { SteadyRequests } from "../../tests/support/peers/steady_requests.ts";
import { ConduitProbe } from "../../tests/support/memory/conduit_probe.ts";
import { ProbeTarget } from "../../tests/support/peers/probe_target.ts";
import { type KubeCases, type KubeContext, tokenOf } from "./kube_case.ts";
import { ControlPlane, placed, podsIn } from "./kube_control_plane.ts";

/** What a program was started with that has to be found again. */
interface Started {
  readonly child: Child;
  readonly agentPort: number;
  readonly health: string;
}

/** The folder of upstream's examples, in the module that the peers are of. */
async function examples(): Promise<string> {
  const module = "sigs.k8s.io/apiserver-network-proxy";
  const cwd = new URL("../peers/konnectivity", import.meta.url).pathname;
  const list = ["go", "list", "-m", "-f", "{{.Dir}}", module];
  return `${(await mustEnd(list, { cwd })).trim()}/examples`;
}

/** Whose image and command an example's Pods have. */
type Maker = "ours" | "konnectivity";

/** One of upstream's examples: a server on a socket of its own and an agent. */
class Example {
  readonly socket: string;
  #server: Started | undefined;
  #agent: Child | undefined;

  constructor(
    private readonly plane: ControlPlane,
    readonly maker: Maker,
    /** Of the server's manifest and the agent's. */
    private readonly files: readonly [string, string],
  ) {
    this.socket = plane.context.workspace.path(`${maker}.sock`);
  }

  async start(): Promise<void> {
    const { plane, maker } = this;
    const { cluster, workspace } = plane.context;
    const own = await cluster.issue(`${maker}-server`, {
      commonName: "kube-apiserver",
      ...{ usage: "server", names: ["127.0.0.1"] },
    });
    const [agentPort, healthPort] = [freePort(), freePort()];
    const server = plane.run(`${maker}-server`, [
      ...await this.#command("server"),
      ...placed(await this.#args("server"), {
        "--log-file": workspace.path(`${maker}-server.own.log`),
        "--uds-name": this.socket,
        ...{ "--cluster-cert": own.cert, "--cluster-key": own.key },
        ...{ "--agent-port": agentPort, "--health-port": healthPort },
        ...{ "--admin-port": freePort() },
        "--kubeconfig": cluster.adminKubeconfig,
      }),
    ]);
    const health = `http://127.0.0.1:${healthPort}`;
    await server.untilReady(`${health}/healthz`);
    const token = await tokenOf(plane.context, "konnectivity-agent");
    const file = workspace.path("konnectivity-agent-token");
    await Deno.writeTextFile(file, token.trim());
    const args = (await this.#args("agent")).map((arg) =>
      arg.replace(/\$[({]HOST_IP[)}]/, "127.0.0.1")
    );
    this.#agent = plane.run(`${maker}-agent`, [
      ...await this.#command("agent"),
      ...placed(args, {
        "--ca-cert": cluster.caFile,
        "--proxy-server-host": "127.0.0.1",
        "--proxy-server-port": agentPort,
        "--service-account-token-path": file,
      }),
      // What a Pod has for itself.
      `--health-server-port=${freePort()}`,
      `--admin-server-port=${freePort()}`,
      ...args.includes("--count-server-leases")
        ? [`--kubeconfig=${cluster.adminKubeconfig}`]
        : [],
    ]);
    await server.untilReady(`${health}/readyz`);
    this.#server = { child: server, agentPort, health };
  }

  /** As Pods are deleted: SIGTERM, and SIGKILL for what does not end. */
  async stop(): Promise<void> {
    this.#server!.child.signal("SIGTERM");
    await endsWithin(this.#server!.child, GRACE_MS);
    this.#agent!.signal("SIGTERM");
    await endsWithin(this.#agent!, AGENT_GRACE_MS);
    // A socket of Konnectivity's may be left; its next server removes it.
  }

  /** Dials that its server has answered. */
  dials(): Promise<number> {
    return sumOf(this.#server!.health, SERVER_DIALS);
  }

  async #command(role: "server" | "agent"): Promise<readonly string[]> {
    return this.maker === "ours"
      ? ourCommand(role)
      : [await findPeer(`konnectivity-${role}`)];
  }

  async #args(role: "server" | "agent"): Promise<readonly string[]> {
    const file = this.files[role === "server" ? 0 : 1];
    const text = await Deno.readTextFile(`${await examples()}/${file}`);
    return podsIn(text)[0]!.containers[0]!.args;
  }
}

/** What Kubernetes gives a Pod, and what an agent needs that does not end by itself. */
const GRACE_MS = 30_000;
const AGENT_GRACE_MS = 5_000;

async function endsWithin(child: Child, timeoutMs: number): Promise<void> {
  const timer = setTimeout(() => child.signal("SIGKILL"), timeoutMs);
  await child.ended;
  clearTimeout(timer);
}

/** Requests of each kind. */
const AT_ONCE = 2;

/** The head of an answer has come, and its text never does. */
const CUT = "200 ";

/** Two kinds of requests, all the time, and what must come of each. */
class Load {
  readonly #target = new ProbeTarget("hello");
  readonly #client: Deno.HttpClient;
  readonly #kinds: ReadonlyMap<string, SteadyRequests>;

  constructor({ context: { cluster }, socket }: ControlPlane) {
    const pki = (name: string) =>
      Deno.readTextFileSync(`${cluster.folder}/pki/${name}`);
    const client = this.#client = Deno.createHttpClient({
      caCerts: [pki("ca.crt")],
      cert: pki("admin.crt"),
      key: pki("admin.key"),
    });
    const path = "/api/v1/namespaces/default/pods/web/log";
    this.#kinds = new Map([
      ["a pod's log, by kube-apiserver", async () => {
        const answer = await fetch(`${cluster.server}${path}`, { client });
        const said = await answer.text();
        if (said !== "the first line\n") {
          throw new Error(`${answer.status} ${said}`);
        }
      }],
      ["a connection, by the gateway", async () => {
        const { address } = this.#target;
        const dial = { target: { protocol: "tcp", address } } as const;
        const caller = new ConduitProbe(await dialAt(socket, "grpc", dial));
        await caller.received(5);
        caller.reset("enough");
      }],
    ].map(([name, ask]) =>
      [
        name as string,
        new SteadyRequests(ask as () => Promise<void>, AT_ONCE, 20),
      ] as const
    ));
  }

  /** So many more of each. */
  async goesOn(count = 100): Promise<void> {
    await Promise.all(
      [...this.#kinds.values()].map((requests) => requests.more(count)),
    );
  }

  /**
   * None was lost, but those under way on connections that kube-apiserver keeps
   * as a grace period ended.
   *
   * @param ends How many did.
   * @returns How many were answered.
   */
  async end(ends: number): Promise<number> {
    let sum = 0;
    for (const [kind, requests] of this.#kinds) {
      const { answered, failures } = await requests.stop();
      const cut = failures.get(CUT) ?? 0;
      if (cut <= ends * AT_ONCE) failures.delete(CUT);
      assertEquals([...failures], [], kind);
      sum += answered;
    }
    this.#client.close();
    await this.#target.close();
    return sum;
  }
}

/** Upstream's examples, and what their servers speak. */
const EXAMPLES = [
  ["kind/konnectivity-server.yaml", "kind/konnectivity-agent-ds.yaml", "grpc"],
  [
    "kind-multinode/templates/k8s/konnectivity-server.yaml",
    "kind-multinode/templates/k8s/konnectivity-agent-ds.yaml",
    "grpc",
  ],
  [
    "kubernetes/konnectivity-server.yaml",
    "kubernetes/konnectivity-agent.yaml",
    "http-connect",
  ],
] as const;

async function examplesServe(context: KubeContext): Promise<void> {
  for (const [server, agent, protocol] of EXAMPLES) {
    await using plane = ControlPlane.over(context);
    await using target = new ProbeTarget("hello");
    const example = new Example(plane, "ours", [server, agent]);
    await example.start();
    const { address } = target;
    const dial = { target: { protocol: "tcp", address } } as const;
    const caller = new ConduitProbe(
      await dialAt(example.socket, protocol, dial),
    );
    await caller.received(5);
    caller.reset("enough");
  }
}

function fromKonnectivityAndBack(server: string, agent: string) {
  return async (context: KubeContext) => {
    const config = await mustRun(
      ...["egress-config", "--frontend=unix:/run/tunnel/egress.sock"],
    );
    await using plane = await ControlPlane.start(context, config);
    const example = (maker: Maker) =>
      new Example(plane, maker, [server, agent]);
    const [theirs, ours] = [example("konnectivity"), example("ours")];
    await theirs.start();
    const servers = [ours, theirs].map(({ socket }) => `unix:${socket}`);
    await plane.run(
      "gateway",
      ourCommand(
        ...["forward", `--frontend=unix:${plane.socket}`],
        `--server=${servers.join()}`,
      ),
    ).untilPrinted(/ -> grpc over /);
    await plane.startKubelet();
    const load = new Load(plane);
    await load.goesOn();
    await ours.start();
    await load.goesOn();
    await theirs.stop();
    await load.goesOn();
    const byOurs = await ours.dials();
    assert(byOurs > 100, `${byOurs} dials go by ours`);
    await theirs.start();
    await ours.stop();
    await load.goesOn();
    const back = await theirs.dials();
    assert(back > 100, `${back} dials go back`);
    // Theirs does not end before, and ours has the connections of kube-apiserver.
    assert(await load.end(2) > 500, "a load that is none");
  };
}

export const KUBE_MIGRATION_CASES: KubeCases = {
  "from Konnectivity and back no request is lost, by upstream's example of kind":
    fromKonnectivityAndBack(EXAMPLES[0][0], EXAMPLES[0][1]),
  "upstream's examples start and serve, with our image and command":
    examplesServe,
};
