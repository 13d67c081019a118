/**
 * Servers that meet in a real etcd, and agents that joined one of them: both
 * sides grow and shrink, and each agent links each server by its own address.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import type { EtcdCases, EtcdContext } from "./etcd_case.ts";
import { type ScaleRig, scalesBothSides } from "./ha_scale.ts";

interface Running {
  readonly child: Child;
  readonly healthUrl: string;
}

/** One identity in etcd, and servers that have nothing else in common. */
class EtcdRig implements ScaleRig {
  readonly servers: Running[] = [];
  readonly agents: Running[] = [];
  readonly #state: readonly string[];
  #made = 0;
  /** Of the first server, at which agents join. */
  #address = "";

  constructor(private readonly context: EtcdContext, prefix: string) {
    const { workspace, cluster } = context;
    const members = cluster.urls.map((url) => new URL(url).host);
    const keyFile = workspace.path("state.key");
    Deno.writeFileSync(keyFile, crypto.getRandomValues(new Uint8Array(32)), {
      mode: 0o600,
    });
    this.#state = [
      `--state=etcd://${members.join(",")}/${prefix}`,
      `--state-key-file=${keyFile}`,
    ];
  }

  async addServer(): Promise<void> {
    const { workspace } = this.context;
    const id = `s${++this.#made}`;
    const [agentPort, healthPort] = [freePort(), freePort()];
    const address = `127.0.0.1:${agentPort}`;
    const child = new Child({
      name: `server ${id}`,
      command: [
        ...ourCommand("server"),
        ...this.#state,
        ...["--v=2", `--server-id=${id}`, "--handover-socket=none"],
        `--state-dir=${workspace.path(id)}`,
        `--uds-name=${workspace.path(`${id}.sock`)}`,
        ...[`--agent-port=${agentPort}`, "--agent-bind-address=127.0.0.1"],
        `--advertise-address=${address}`,
        ...[`--health-port=${healthPort}`, "--health-bind-address=127.0.0.1"],
        "--admin-port=0",
      ],
      logFile: workspace.path(`${id}.log`),
    });
    const healthUrl = `http://127.0.0.1:${healthPort}`;
    this.servers.push({ child, healthUrl });
    this.#address ||= address;
    await child.untilReady(`${healthUrl}/healthz`);
  }

  async removeServer(): Promise<void> {
    await this.servers.pop()!.child.stop();
  }

  async addAgent(): Promise<void> {
    const { workspace } = this.context;
    const id = `a${++this.#made}`;
    const healthPort = freePort();
    const child = new Child({
      name: `agent ${id}`,
      command: [
        ...ourCommand("agent"),
        ...["--v=2", `--join=${await this.#createToken()}`, `--node=${id}`],
        `--server=${this.#address}`,
        `--state-dir=${workspace.path(id)}`,
        "--handover-socket=none",
        "--health-server-host=127.0.0.1",
        `--health-server-port=${healthPort}`,
        "--admin-server-port=0",
      ],
      logFile: workspace.path(`${id}.log`),
    });
    const healthUrl = `http://127.0.0.1:${healthPort}`;
    this.agents.push({ child, healthUrl });
    await child.untilReady(`${healthUrl}/readyz`);
  }

  async removeAgent(): Promise<void> {
    await this.agents.pop()!.child.stop("SIGKILL");
  }

  async #createToken(): Promise<string> {
    const [program, ...args] = ourCommand("token", "create");
    const { success, stdout, stderr } = await new Deno.Command(program!, {
      args: [
        ...args,
        ...this.#state,
        `--state-dir=${this.context.workspace.path("token")}`,
        ...[`--server=${this.#address}`, "--json"],
      ],
    }).output();
    const decoder = new TextDecoder();
    if (!success) throw new Error(decoder.decode(stderr));
    return JSON.parse(decoder.decode(stdout)).token;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of [...this.agents, ...this.servers]) {
      await child.stop("SIGKILL");
    }
  }
}

export const ETCD_HA_CASES: EtcdCases = {
  "servers of one identity in etcd and their agents grow and shrink, and all are linked by address":
    async (context) => {
      await using rig = new EtcdRig(context, "ha-scale");
      await scalesBothSides(rig);
    },
};
