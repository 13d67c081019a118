/**
 * Programs on a node that have no identity of their own: a server, `edge-1` that
 * announces an echo, and `edge-2` that relays for them.
 *
 * @module
 */

import { writeAll } from "../peers/sockets.ts";
import { XdsProbe } from "../xds/xds_probe.ts";
import type { IdentityNode } from "./identity_node.ts";
import { announced, NodeRig } from "./node_rig.ts";
import { ProxyRig } from "./proxy_rig.ts";
import { metricAt, portOf, type TunnelAgent } from "./tunnel_harness.ts";

const ANY = { hostname: "127.0.0.1", port: 0 };

/** See the module description. */
export class RelayScene implements AsyncDisposable {
  readonly #backends = new ProxyRig();
  /** Of the echo, which says `edge-1: ` first. */
  readonly port: number = this.#backends.echo("edge-1: ");
  /** What relays, and its node. */
  agent!: TunnelAgent;
  node!: IdentityNode;

  private constructor(readonly rig: NodeRig) {}

  static async open(): Promise<RelayScene> {
    const rig = await NodeRig.discovering();
    const scene = new RelayScene(rig);
    await rig.link(await rig.joined("edge-1"), {
      services: [announced("web", scene.port)],
    });
    const relay = { xds: ANY, connect: ANY };
    scene.node = await rig.joined("edge-2");
    scene.agent = await rig.link(scene.node, { relay, drainTimeoutMs: 0 });
    return scene;
  }

  /** Where discovery is passed on. */
  get xds(): number {
    return portOf(this.agent.running.addresses.xds!);
  }

  /** Where connections are. */
  get connectPort(): number {
    return portOf(this.agent.running.addresses.connect!);
  }

  /** Streams of discovery that are open now. */
  streams(): Promise<number> {
    return metricAt(
      this.agent.running.addresses.health,
      "tunnel_relay_streams",
    );
  }

  probe(): Promise<XdsProbe> {
    return XdsProbe.plain(this.xds);
  }

  /** What a program gets for CONNECT, and the connection. */
  async connect(
    target: string,
    early = "",
    hostname = "127.0.0.1",
  ): Promise<{ conn: Deno.TcpConn; answer: string }> {
    const conn = await Deno.connect({ hostname, port: this.connectPort });
    const head = `CONNECT ${target} HTTP/1.1\r\n\r\n${early}`;
    await writeAll(conn, new TextEncoder().encode(head));
    const into = new Uint8Array(4_096);
    const count = await conn.read(into);
    const answer = new TextDecoder().decode(into.subarray(0, count ?? 0));
    return { conn, answer };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rig[Symbol.asyncDispose]();
    await this.#backends[Symbol.asyncDispose]();
  }
}
