/**
 * Programs of ours as processes of one test: a server at one place, agents of
 * whatever servers there are, and anything else. All of them end with the test.
 * What is special about a test's programs is in the flags that it gives.
 *
 * @module
 */

import { openDialer, type TunnelDial } from "../../../client/tunnel_dialer.ts";
import type { FrontendProtocol } from "../../../client/tunnel_route.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import { Child } from "../program/child.ts";
import { freePort } from "../program/ports.ts";
import { runToEnd } from "../program/run.ts";
import { ourCommand } from "../program/tunnel.ts";
import { Workspace } from "../program/workspace.ts";
import { ConduitProbe } from "../memory/conduit_probe.ts";
import { ProbeTarget } from "../peers/probe_target.ts";
import { ProxyRig } from "./proxy_rig.ts";

/** Ports of an agent that a test does not ask at. */
export const NO_PORTS: readonly string[] = [
  "--health-server-host=127.0.0.1",
  "--health-server-port=0",
  "--admin-server-port=0",
];

/** Flags of a server that knows agents by the workspace's CA. */
export function clusterFlags({ certificates }: Workspace): string[] {
  const { ca, server } = certificates;
  return [
    ...[`--cluster-cert=${server.cert}`, `--cluster-key=${server.key}`],
    `--cluster-ca-cert=${ca}`,
  ];
}

/** Dials over a socket as our own client does, on a connection of its own. */
export async function dialAt(
  path: string,
  protocol: FrontendProtocol,
  dial: TunnelDial,
): Promise<Conduit> {
  const address = { kind: "unix", path } as const;
  const dialer = openDialer({ kind: "tunnel", protocol, address });
  try {
    return await dialer.dial(dial);
  } finally {
    dialer.close();
  }
}

/** How a server is, where it is not as usual. */
export interface ServerConfig {
  /** Its `--server-id`; it has none of its own unless given. */
  readonly id?: string;
  readonly flags?: readonly string[];
  /** Its frontend; a path of its own unless given. */
  readonly socket?: string;
}

/** A server at one place, which is started there as often as a test likes. */
export class ServerProcess implements AsyncDisposable {
  readonly agentPort = freePort();
  readonly healthPort = freePort();
  readonly adminPort = freePort();
  readonly serverId: string;
  readonly socket: string;
  /** Words before its flags; a test may take another version. */
  program: readonly string[] = ourCommand("server");
  /** Words before the program, such as those that set a limit. */
  prefix: readonly string[] = [];
  readonly #children: Child[] = [];
  readonly #flags: string[];

  constructor(
    protected readonly workspace: Workspace,
    { id = "", flags = [], socket }: ServerConfig = {},
  ) {
    this.serverId = id;
    this.socket = socket ?? workspace.path(`${id || "f"}.sock`);
    this.#flags = [...flags];
  }

  /** Of its agent port, for `--server`. */
  get address(): string {
    return `127.0.0.1:${this.agentPort}`;
  }

  get healthUrl(): string {
    return `http://127.0.0.1:${this.healthPort}`;
  }

  /** The one that was started last. */
  get child(): Child {
    return this.#children.at(-1)!;
  }

  /** Those that need to know where it listens. */
  addFlags(...flags: readonly string[]): void {
    this.#flags.push(...flags);
  }

  /** The flags with which it is at its place. */
  get flags(): readonly string[] {
    const { agentPort, healthPort, serverId } = this;
    return [
      ...serverId === "" ? [] : [`--server-id=${serverId}`],
      ...[`--agent-port=${agentPort}`, "--agent-bind-address=127.0.0.1"],
      ...[`--health-port=${healthPort}`, "--health-bind-address=127.0.0.1"],
      ...this.#flags,
    ];
  }

  command(...flags: readonly string[]): readonly string[] {
    return [...this.prefix, ...this.program, ...this.flags, ...flags];
  }

  /** Starts any command in its name. */
  run(command: readonly string[]): Child {
    const name = this.serverId === "" ? "server" : `server ${this.serverId}`;
    // A log each time: what an earlier one has printed says nothing of this one.
    const logFile = this.workspace.path(`${name}.log`);
    this.#children.push(new Child({ name, command, logFile }));
    return this.child;
  }

  /** Starts it and waits until it listens; agents may not be there. */
  async start(...flags: readonly string[]): Promise<Child> {
    const child = this.run(this.command(...flags));
    await child.untilPrinted(/server started/);
    return child;
  }

  /** Ends when an agent is linked. @returns After how long. */
  async untilLinked(agent = ""): Promise<number> {
    const startedMs = performance.now();
    await this.child.untilPrinted(new RegExp(`agent linked.*${agent}`));
    return performance.now() - startedMs;
  }

  dial(protocol: FrontendProtocol, dial: TunnelDial): Promise<Conduit> {
    return dialAt(this.socket, protocol, dial);
  }

  async readiness(): Promise<string> {
    const answer = await fetch(`${this.healthUrl}/readyz`);
    return `${answer.status} ${await answer.text()}`;
  }

  /** Of all series of a family whose labels contain `labels`, the sum. */
  async metric(name: string, labels = ""): Promise<number> {
    const text = await (await fetch(`${this.healthUrl}/metrics`)).text();
    return text.split("\n")
      .filter((line) => line.startsWith(name) && line.includes(labels))
      .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  }

  async stop(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    await this.#children.at(-1)?.stop(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) await ended(child);
  }
}

/** What callers dial through: a server, or a tunnel of processes. */
export interface Dialing {
  dial(protocol: FrontendProtocol, dial: TunnelDial): Promise<Conduit>;
}

/** All programs of a test, what they reach, and the folder that goes with them. */
export class Processes implements AsyncDisposable {
  readonly #children: Child[] = [];
  /** Started by those that they took over from. */
  readonly successors: number[] = [];
  readonly servers: ServerProcess[] = [];
  #target: ProbeTarget | undefined;
  #echoes: ProxyRig | undefined;

  constructor(readonly workspace: Workspace) {}

  /** What {@linkcode connect} reaches. */
  get target(): ProbeTarget {
    return this.#target ??= new ProbeTarget();
  }

  /** A server that sends back what it receives, behind `prefix`. @returns Its port. */
  echo(prefix = ""): number {
    return (this.#echoes ??= new ProxyRig()).echo(prefix);
  }

  /** Both ends of a new conduit: a caller's, and the target's. */
  async connectBy(
    by: Dialing,
    protocol: FrontendProtocol,
    dial: Partial<TunnelDial> = {},
  ): Promise<{ caller: ConduitProbe; target: ConduitProbe }> {
    const target = { protocol: "tcp", address: this.target.address };
    const [conduit, far] = await Promise.all([
      by.dial(protocol, { target, ...dial }),
      this.target.next(),
    ]);
    return { caller: new ConduitProbe(conduit), target: far };
  }

  /** One that was started elsewhere ends with the others. */
  keep(child: Child): void {
    this.#children.push(child);
  }

  /** Any command, until the end of the test. */
  launch(name: string, command: readonly string[]): Child {
    const logFile = this.workspace.path(`${name}.log`);
    const child = new Child({ name, command, logFile });
    this.keep(child);
    return child;
  }

  /** Any program of ours. */
  run(name: string, ...words: readonly string[]): Child {
    return this.launch(name, ourCommand(...words));
  }

  /** A server that knows agents by the workspace's CA; it is not started. */
  addServer(id: string, ...flags: readonly string[]): ServerProcess {
    const server = new ServerProcess(this.workspace, {
      id,
      flags: ["--v=2", ...clusterFlags(this.workspace), ...flags],
    });
    server.addFlags(`--uds-name=${server.socket}`, "--server-port=0");
    server.addFlags(`--admin-port=${server.adminPort}`);
    this.servers.push(server);
    return server;
  }

  /** An agent that shows the workspace's certificate; nobody waits for it. */
  agentAt(addresses: readonly string[], ...flags: readonly string[]): Child {
    const { ca, agent } = this.workspace.certificates;
    return this.run(
      "agent",
      ...["agent", "--v=2", `--server=${addresses.join(",")}`],
      ...[`--ca-cert=${ca}`, `--agent-cert=${agent.cert}`],
      ...[`--agent-key=${agent.key}`, ...NO_PORTS, ...flags],
    );
  }

  /**
   * `tunnel upgrade` of whoever is at a handover socket.
   *
   * @param ask Who runs it; ours unless given.
   * @returns What it printed, and how it ended.
   */
  async upgrade(
    file: string,
    at: string,
    flags: readonly string[] = [],
    ask = ourCommand(),
  ): Promise<{ code: number; text: string }> {
    const words = ["upgrade", file, `--handover-socket=${at}`, ...flags];
    const { code, stdout, stderr } = await runToEnd([...ask, ...words]);
    const text = stdout + stderr;
    const [, pid] = /is [^ ]* \(process (\d+)\)/.exec(text) ?? [];
    if (pid !== undefined) this.successors.push(Number(pid));
    return { code, text };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of this.successors) {
      try {
        Deno.kill(pid, "SIGKILL");
      } catch {
        // It has ended by itself.
      }
    }
    for (const child of this.#children.toReversed()) await ended(child);
    for (const server of this.servers) await server[Symbol.asyncDispose]();
    await this.#target?.close();
    await this.#echoes?.[Symbol.asyncDispose]();
    await this.workspace.remove();
  }
}

/** One that stands still ends when it goes on. */
async function ended(child: Child): Promise<void> {
  child.signal("SIGCONT");
  await child.stop("SIGKILL");
}
