/**
 * What mistakes are made beside: nodes in every state, tokens of every kind,
 * somebody else's server, and a port that is taken.
 *
 * @module
 */

import { freePort } from "../support/program/ports.ts";
import { IdentityServer } from "../support/rigs/node_stage.ts";
import { NodeSite } from "./node_site.ts";

/** See the module description. */
export class MistakeStage extends NodeSite {
  /** Where the foreign server's callers show certificates. */
  readonly tlsPort = freePort();
  /** A server that has its certificates from somebody else's CA. */
  readonly foreign = new IdentityServer(this.workspace);
  readonly #taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  /** For `edge-*` only. */
  narrowToken = "";
  /** For one node, and used. */
  usedToken = "";
  /** Who joins with it has to be approved. */
  slowToken = "";

  static async start(): Promise<MistakeStage> {
    const stage = new MistakeStage(...await NodeSite.opened());
    const { ca, server } = stage.workspace.certificates;
    const pair = (side: string) => [
      `--${side}-cert=${server.cert}`,
      `--${side}-key=${server.key}`,
      `--${side}-ca-cert=${ca}`,
    ];
    await stage.foreign.start(
      `--server-port=${stage.tlsPort}`,
      ...pair("server"),
      ...pair("cluster"),
    );
    stage.servers.push(stage.foreign);
    stage.atEnd(() => stage.#taken.close());
    const tokenWith = (...flags: readonly string[]) =>
      stage.identity.createToken(...flags);
    stage.narrowToken = await tokenWith("--node=edge-*", "--uses=100");
    stage.usedToken = await tokenWith("--uses=1");
    stage.slowToken = await tokenWith("--needs-approval", "--uses=9");
    await stage.#populate();
    return stage;
  }

  /** A port where somebody else listens, who says nothing. */
  get takenPort(): number {
    return this.#taken.addr.port;
  }

  /** Where callers come in. */
  get frontend(): string {
    return `unix:${this.identity.socket}`;
  }

  /** Nodes in the states that they are called after. */
  async #populate(): Promise<void> {
    const [still] = await Promise.all([
      this.agent("still"),
      this.agent("node1"),
      this.agent("node2"),
      this.agent("strict", "--deny=*:*:9"),
      this.joined("exile"),
      this.joined("former"),
      this.joined("gone", `--join=${this.usedToken}`),
    ]);
    still.signal("SIGSTOP");
    await this.change("node", "revoke", "exile", "--reason=stolen");
    await this.change("node", "forget", "former");
  }
}
