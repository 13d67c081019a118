/**
 * Service proxies of one place, one after the other: processes, for what happens
 * when one takes the place of another.
 *
 * @module
 */

import { Child } from "../program/child.ts";
import { freePort } from "../program/ports.ts";
import { ourCommand } from "../program/tunnel.ts";
import { Workspace } from "../program/workspace.ts";
import { DatagramPeer } from "../peers/datagrams.ts";
import { Processes } from "./processes.ts";

/** See the module description. */
export class ProxyStage extends Processes {
  #count = 0;
  /** Words before its flags; a test may take another version. */
  program: readonly string[] = ourCommand("proxy");
  readonly port = freePort();
  readonly udpPort = freePort();
  readonly adminPort = freePort();
  readonly #config: string;

  private constructor(
    workspace: Workspace,
    readonly udp: DatagramPeer,
  ) {
    super(workspace);
    this.#config = workspace.path("services.json");
  }

  /** @param endpoints How many the TCP service has. */
  static async open(endpoints = 1): Promise<ProxyStage> {
    const stage = new ProxyStage(
      await Workspace.make(),
      await DatagramPeer.echo(),
    );
    await Deno.writeTextFile(
      stage.#config,
      JSON.stringify({
        services: [{
          name: "web",
          ports: [{ port: 80, listen: `127.0.0.1:${stage.port}` }],
          endpoints: Array.from({ length: endpoints }, () => ({
            address: "127.0.0.1",
            port: stage.echo(),
          })),
        }, {
          name: "dns",
          ports: [{
            port: 53,
            protocol: "udp",
            listen: `127.0.0.1:${stage.udpPort}`,
          }],
          endpoints: [{ address: "127.0.0.1", port: stage.udp.port }],
        }],
      }),
    );
    return stage;
  }

  start(...flags: string[]): Child {
    return this.startBy(this.command(...flags));
  }

  command(...flags: string[]): readonly string[] {
    return [
      ...this.program,
      `--config=${this.#config}`,
      `--admin-port=${this.adminPort}`,
      ...["--drain-timeout=20s", "--udp-idle=1s", ...flags],
    ];
  }

  startBy(command: readonly string[]): Child {
    return this.launch(`proxy-${this.#count++}`, command);
  }

  get readyUrl(): string {
    return `http://127.0.0.1:${this.adminPort}/readyz`;
  }

  async readiness(): Promise<string> {
    const answer = await fetch(this.readyUrl);
    return `${answer.status} ${await answer.text()}`;
  }

  connect(): Promise<Deno.TcpConn> {
    return Deno.connect({ hostname: "127.0.0.1", port: this.port });
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await this.udp[Symbol.asyncDispose]();
  }
}
