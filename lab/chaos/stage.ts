/**
 * A whole tunnel of real processes, each on a machine of its own: servers,
 * agents, what they lead to, a `tunnel forward`, a `tunnel proxy`, a load
 * balancer and a name server.
 *
 * @module
 */

import { mustEnd } from "../../tests/support/program/run.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import { Balancer } from "../../tests/support/rigs/balancer.ts";
import {
  connectEntrance,
  type Entrance,
  grpcEntrance,
  portEntrance,
  TARGET_PORT,
} from "./entrance.ts";
import type { FakeClocks } from "./fake_clocks.ts";
import { NameServer } from "./name_server.ts";
import { HOME_ADDRESS, type Network } from "./network.ts";
import { Program } from "./program.ts";
import { StateStore } from "./state_store.ts";
import { type AgentPlan, targetsOf, type Topology } from "./topology.ts";

const AGENT_PORT = 8091;
const SERVER_HEALTH_PORT = 8092;
const AGENT_HEALTH_PORT = 8093;
const FORWARD_PORT_FIRST = 7100;
const PROXY_PORT_FIRST = 7200;
const PROXY_ADMIN_PORT = 7300;
const METRICS_TIMEOUT_MS = 5_000;

/** Where the target behind two agents is. */
const SITE_ADDRESS = "10.98.0.40";

/** Who may join, and what a `tunnel forward` as a node may reach. */
const CALLER = "c1";
const POLICY = {
  dials: [{ node: CALLER, allow: [`tcp:*:${TARGET_PORT}`] }],
};

/** See the module description. */
export class Stage implements AsyncDisposable {
  readonly servers = new Map<string, Program>();
  readonly agents = new Map<string, Program>();
  /** By name of the target. */
  readonly targets = new Map<string, Program>();
  readonly forwardPorts = new Map<string, number>();
  readonly proxyPorts = new Map<string, number>();
  /** The one that carries the log of a server; stops reading when stopped. */
  logReader!: Program;
  forward!: Program;
  proxy!: Program;
  readonly names = new NameServer();
  readonly balancer = new Balancer(HOME_ADDRESS);

  private constructor(
    readonly topology: Topology,
    readonly folder: string,
    readonly network: Network,
    readonly clocks: FakeClocks,
    readonly store: StateStore,
  ) {}

  /** Starts everything and waits until agents are linked. */
  static async open(
    topology: Topology,
    folder: string,
    network: Network,
    clocks: FakeClocks,
  ): Promise<Stage> {
    const store = await StateStore.open(topology.state, folder);
    const stage = new Stage(topology, folder, network, clocks, store);
    try {
      await stage.#start();
      return stage;
    } catch (error) {
      await stage[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Servers, agents and the callers' programs: everything that is ours. */
  get ours(): readonly Program[] {
    return [
      ...this.servers.values(),
      ...this.agents.values(),
      ...[this.forward, this.proxy],
    ];
  }

  get programs(): readonly Program[] {
    return [...this.ours, ...this.targets.values(), this.logReader];
  }

  get entrances(): readonly Entrance[] {
    const sockets = this.topology.servers.map((id) =>
      [id, this.#socketOf(id)] as const
    );
    return [
      ...sockets.map(([id, path]) => connectEntrance(id, path)),
      ...sockets.map(([id, path]) => grpcEntrance(id, path)),
      portEntrance("forward", this.forwardPorts),
      portEntrance("forward, said first", this.forwardPorts),
      portEntrance("proxy, said first", this.proxyPorts),
    ];
  }

  healthOf(program: Program): string {
    const address = this.network.addressOf(program.machine);
    const port = this.servers.has(program.name)
      ? SERVER_HEALTH_PORT
      : AGENT_HEALTH_PORT;
    return `http://${address}:${port}`;
  }

  /** A metric of a program, added up over its labels. */
  async gauge(program: Program, name: string): Promise<number> {
    const response = await fetch(`${this.healthOf(program)}/metrics`, {
      signal: AbortSignal.timeout(METRICS_TIMEOUT_MS),
    });
    const text = await response.text();
    const lines = text.matchAll(
      new RegExp(`^${name}(?:{[^}]*})? (\\S+)$`, "gm"),
    );
    return [...lines].reduce((sum, [, value]) => sum + Number(value), 0);
  }

  /** Leaves no room in the pipe whose reader stands still. */
  async fillLogPipe(): Promise<void> {
    const script = 'dd if=/dev/zero of="$0" bs=4096 count=64 oflag=nonblock';
    const command = new Deno.Command("sh", {
      args: ["-c", script, this.#logPipe],
      stderr: "null",
    });
    await command.output(); // Fails when there is no more room, as is wanted.
  }

  /** Runs one of our commands to its end. @returns What it printed. */
  async run(...words: string[]): Promise<string> {
    return await mustEnd(ourCommand(...words));
  }

  /** Asks the state, not a server: for a token as an operator would. */
  async createToken(...flags: string[]): Promise<string> {
    const printed = await this.run("token", "create", ...[
      ...this.store.stateFlags(this.topology.servers[0]!),
      ...["--json", `--server=${this.#addresses()}`, ...flags],
    ]);
    return JSON.parse(printed).token;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const program of this.programs) {
      // What is frozen would not hear of its end.
      if (program?.isRunning) program.signal("SIGCONT");
    }
    const all = this.programs.filter((program) => program !== undefined);
    await Promise.all(all.map((program) => program.stop("SIGKILL")));
    this.balancer[Symbol.dispose]();
    await this.names[Symbol.asyncDispose]();
    await this.store[Symbol.asyncDispose]();
  }

  async #start(): Promise<void> {
    await this.#startTargets();
    await this.#startServers();
    await this.#startAgents();
    const folder = await this.#joinCaller();
    await this.#startForward(folder);
    await this.#startProxy(folder);
  }

  async #startTargets(): Promise<void> {
    const module = new URL("target.ts", import.meta.url).pathname;
    const config = new URL("../../deno.json", import.meta.url).pathname;
    const start = (name: string, machine: string, address: string) => {
      this.targets.set(
        name,
        this.#program(`target ${name}`, machine, [
          ...[Deno.execPath(), "run", "--quiet", "--allow-net"],
          ...[`--config=${config}`, module, address, String(TARGET_PORT)],
        ], { readyLine: /listening/ }),
      );
    };
    for (const target of targetsOf(this.topology)) {
      const isOwn = this.topology.agents.some(({ name }) => name === target);
      if (isOwn) start(target, target, "127.0.0.1");
      else start(target, "site", SITE_ADDRESS);
    }
    await Promise.all([...this.targets.values()].map((one) => one.start()));
  }

  async #startServers(): Promise<void> {
    const { topology } = this;
    const policy = `${this.folder}/policy.json`;
    await Deno.writeTextFile(policy, JSON.stringify(POLICY));
    const logged = topology.servers.at(-1)!;
    const fifo = this.#logPipe;
    await mustEnd(["rm", "-f", fifo]);
    await mustEnd(["mkfifo", fifo]);
    this.logReader = this.#program("log reader", "site", [
      // Opened both ways, so that it outlives the server whose log it reads.
      ...["sh", "-c", 'exec cat 0<>"$0"', fifo],
    ], {});
    this.logReader.launch();
    for (const id of topology.servers) {
      const command = [
        ...id === logged
          ? ["sh", "-c", 'f="$1"; shift; exec "$@" >"$f" 2>&1', "sh", fifo]
          : [],
        ...this.clocks.prefixOf(id),
        ...ourCommand("server"),
        `--v=${id === logged ? 4 : 2}`,
        ...this.store.stateFlags(id),
        `--server-id=${id}`,
        `--server-count=${topology.servers.length}`,
        `--agent-port=${AGENT_PORT}`,
        `--health-port=${SERVER_HEALTH_PORT}`,
        "--admin-port=0",
        `--uds-name=${this.#socketOf(id)}`,
        `--handover-socket=${this.folder}/${id}.handover`,
        "--proxy-strategies=destHost",
        `--policy-file=${policy}`,
        ...this.store.serverFlags,
        ...topology.serverFlags.map((flag) => this.#filled(flag, id)),
      ];
      const program = this.#program(id, id, command, {
        readyUrl: `http://${this.network.addressOf(id)}:${SERVER_HEALTH_PORT}` +
          "/healthz",
      });
      this.servers.set(id, program);
      const address = this.network.addressOf(id);
      this.names.set(nameOf(id), address);
      this.balancer.add(AGENT_PORT, address);
      // One after the other: the first makes what the others share.
      if (this.servers.size === 1) await program.start();
    }
    const [, ...others] = this.servers.values();
    await Promise.all(others.map((program) => program.start()));
  }

  async #startAgents(): Promise<void> {
    const { agents } = this.topology;
    const token = await this.createToken(
      ...["--uses=10", "--identifiers=host=site"],
    );
    for (const plan of agents) {
      const { name } = plan;
      const health = `http://${this.network.addressOf(name)}:` +
        `${AGENT_HEALTH_PORT}/readyz`;
      this.agents.set(
        name,
        this.#program(name, name, this.#agentCommand(plan, token), {
          readyUrl: health,
        }),
      );
    }
    await Promise.all([...this.agents.values()].map((one) => one.start()));
  }

  #agentCommand({ name, target, finds }: AgentPlan, token: string): string[] {
    const servers = finds === "each"
      ? this.#addresses()
      : `${HOME_ADDRESS}:${this.balancer.port}`;
    return [
      ...this.clocks.prefixOf(name),
      ...ourCommand("agent"),
      "--v=2",
      `--server=${servers}`,
      `--join=${token}`,
      `--node=${name}`,
      `--state-dir=${this.folder}/agent-${name}`,
      `--identifiers=host=${name}${target === name ? "" : `&host=${target}`}`,
      `--health-server-port=${AGENT_HEALTH_PORT}`,
      "--admin-server-port=0",
      `--handover-socket=${this.folder}/${name}.handover`,
      ...this.store.agentFlags,
      ...this.topology.agentFlags.map((flag) => this.#filled(flag, name)),
    ];
  }

  /** By all servers, whose addresses it then knows. @returns Its state. */
  async #joinCaller(): Promise<string> {
    const folder = `${this.folder}/agent-${CALLER}`;
    const token = await this.createToken(`--node=${CALLER}`);
    await this.run("join", token, ...[
      ...[`--server=${this.#addresses()}`, `--node=${CALLER}`],
      `--state-dir=${folder}`,
    ]);
    return folder;
  }

  async #startForward(folder: string): Promise<void> {
    for (const [index, target] of targetsOf(this.topology).entries()) {
      this.forwardPorts.set(target, FORWARD_PORT_FIRST + index);
    }
    const specs = [...this.forwardPorts].map(([target, port]) =>
      `${port}:${target}:${TARGET_PORT}`
    );
    this.forward = this.#program("forward", "home", [
      ...ourCommand("forward"),
      ...specs,
      ...["--as-node", `--state-dir=${folder}`],
    ], { readyLine: new RegExp(specs.at(-1)!.replace(/^\d+:/, "-> ")) });
    await this.forward.start();
  }

  async #startProxy(folder: string): Promise<void> {
    const config = `${this.folder}/services.json`;
    const services = targetsOf(this.topology).map((name, index) => {
      const port = PROXY_PORT_FIRST + index;
      this.proxyPorts.set(name, port);
      return {
        name,
        ports: [{ port: TARGET_PORT, listen: `127.0.0.1:${port}` }],
        endpoints: [{ address: name, port: TARGET_PORT, via: "agent" }],
      };
    });
    await Deno.writeTextFile(config, JSON.stringify({ services }));
    this.proxy = this.#program("proxy", "home", [
      ...ourCommand("proxy", `--config=${config}`),
      ...["--as-node", `--state-dir=${folder}`, "--admin-socket=none"],
      ...[`--admin-port=${PROXY_ADMIN_PORT}`, "--handover-socket=none"],
    ], { readyUrl: `http://127.0.0.1:${PROXY_ADMIN_PORT}/readyz` });
    await this.proxy.start();
  }

  #program(
    name: string,
    machine: string,
    command: readonly string[],
    ready: { readonly readyUrl?: string; readonly readyLine?: RegExp },
  ): Program {
    const prefix = machine === "home" ? [] : this.network.prefixOf(machine);
    return new Program({
      ...{ name, machine, command: [...prefix, ...command] },
      logFile: `${this.folder}/${name.replaceAll(" ", "-")}.log`,
      ...ready,
    });
  }

  #addresses(): string {
    return this.topology.servers.map((id) => `${nameOf(id)}:${AGENT_PORT}`)
      .join();
  }

  get #logPipe(): string {
    return `${this.folder}/log.fifo`;
  }

  #socketOf(id: string): string {
    return `${this.folder}/${id}.sock`;
  }

  /** Flags may name what is only known here: `{id}` and `{address}`. */
  #filled(flag: string, machine: string): string {
    return flag.replaceAll("{id}", machine)
      .replaceAll("{address}", this.network.addressOf(machine));
  }
}

/** A machine's name, for those who ask the name server. */
function nameOf(machine: string): string {
  return `${machine}.chaos.test`;
}

/** The machines of a topology and their addresses. */
export async function addMachines(network: Network, { servers, agents }: {
  readonly servers: readonly string[];
  readonly agents: readonly { readonly name: string }[];
}): Promise<void> {
  for (const [index, id] of servers.entries()) {
    await network.add(id, `10.98.0.${11 + index}`);
  }
  for (const [index, { name }] of agents.entries()) {
    await network.add(name, `10.98.0.${21 + index}`);
  }
  await network.add("site", SITE_ADDRESS);
}
