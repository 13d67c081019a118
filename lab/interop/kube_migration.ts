/**
 * Programs beside a kube-apiserver whose EgressSelector leads to a gateway of
 * ours: as `deploy/kubernetes/kubeadm` has them, and on the way from Konnectivity
 * and back, which loses no request. Our Pods are started as their manifests say;
 * what upstream's would run are processes here, with the flags that those have.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { parse } from "../../platform/documents/yaml.ts";
import { Child } from "../../tests/support/program/child.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { mustEnd, mustRun, runToEnd } from "../../tests/support/program/run.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import { dialAt } from "../../tests/support/rigs/processes.ts";
import type { StandInKubelet } from "../../tests/support/peers/kubelet.ts";
import {
  SERVER_DIALS,
  sumOf,
} from "../../tests/support/watch/metric_families.ts";
import { SteadyRequests } from "../../tests/support/peers/steady_requests.ts";
import { ConduitProbe } from "../../tests/support/memory/conduit_probe.ts";
import { ProbeTarget } from "../../tests/support/peers/probe_target.ts";
import { KubeCluster } from "../peers/kube_cluster.ts";
import { type KubeCases, type KubeContext, tokenOf } from "./kube_case.ts";
import { logs, NODE, startKubelet } from "./kube_kubelet.ts";
import { FOLDER, specOf } from "./kube_manifests.ts";
import { loadPods } from "./pods/load.ts";
import type { Container, Manifest, PodSpec } from "./pods/manifest.ts";
import { Pod } from "./pods/pod.ts";

const KUBEADM = `${FOLDER}/kubeadm`;

/** A kube-apiserver behind a gateway, and a kubelet that only agents reach. */
class ControlPlane implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  private constructor(
    /** Its cluster is this case's own. */
    readonly context: KubeContext,
    /** Where kube-apiserver asks: a socket in what a host has as /run/tunnel. */
    readonly sockets: string,
  ) {}

  static async start(
    { workspace }: KubeContext,
    config: string,
  ): Promise<ControlPlane> {
    const folder = workspace.path("cluster");
    await Deno.mkdir(folder);
    const sockets = workspace.path("run");
    await Deno.mkdir(sockets, { mode: 0o755 });
    const file = `${folder}/egress.yaml`;
    await Deno.writeTextFile(
      file,
      config.replaceAll("/run/tunnel/", `${sockets}/`),
    );
    const cluster = await KubeCluster.start(folder, {
      flags: [`--egress-selector-config-file=${file}`],
      controllerManager: true,
    });
    const plane = new ControlPlane({ cluster, workspace }, sockets);
    plane.#stack.use(cluster);
    return plane;
  }

  /** Programs beside the cluster that all cases share, which asks none of them. */
  static over(context: KubeContext): ControlPlane {
    return new ControlPlane(context, "");
  }

  get socket(): string {
    return `${this.sockets}/egress.sock`;
  }

  /** Ends with the case. */
  own<Thing extends AsyncDisposable>(thing: Thing): Thing {
    return this.#stack.use(thing);
  }

  /** A node with a pod whose log is there. */
  async startKubelet(): Promise<StandInKubelet> {
    return this.#stack.use(await startKubelet(this.context.cluster));
  }

  /** A program that ends with the case. */
  run(name: string, command: readonly string[]): Child {
    const logFile = this.context.workspace.path(`${name}.log`);
    const child = new Child({ name, command, logFile });
    this.#stack.defer(() => child.stop("SIGKILL"));
    return child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/**
 * Flags with what a machine would have in their places.
 *
 * @param places By flag; each must be there.
 */
function placed(
  flags: readonly string[],
  places: Readonly<Record<string, string | number>>,
): readonly string[] {
  const rest = new Map(Object.entries(places));
  const found = flags.map((flag) => {
    const name = flag.split("=", 1)[0]!;
    const value = rest.get(name);
    rest.delete(name);
    return value === undefined ? flag : `${name}=${value}`;
  });
  assertEquals([...rest.keys()], [], "flags that the manifest has not got");
  return found;
}

/** What a program was started with that has to be found again. */
interface Started {
  readonly child: Child;
  readonly agentPort: number;
  readonly health: string;
}

/** The Pods that a text of manifests has. */
function podsIn(text: string): readonly PodSpec[] {
  return text.split(/^---\n/m).flatMap((each) => {
    const manifest = parse(each) as Manifest | null;
    const spec = manifest?.spec?.template?.spec ?? manifest?.spec;
    return spec?.containers === undefined ? [] : [spec];
  });
}

// --- kubeadm ---

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

// --- from Konnectivity and back ---

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
  "kubeadm takes our files, and a gateway asks several servers": besideKubeadm,
  "from Konnectivity and back no request is lost, by upstream's example of kind":
    fromKonnectivityAndBack(EXAMPLES[0][0], EXAMPLES[0][1]),
  "upstream's examples start and serve, with our image and command":
    examplesServe,
};
