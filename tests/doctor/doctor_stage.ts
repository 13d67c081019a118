/**
 * What faults are made beside: a server with an identity of its own, nodes that
 * have joined it, and services that are none of ours.
 *
 * @module
 */

import { NodeSite } from "../mistakes/node_site.ts";
import { SilentTarget } from "../support/peers/probe_target.ts";

/** Files of a certificate. */
interface Own {
  readonly cert: string;
  readonly key: string;
}

/** Two ends that are joined, or one. */
type Wire = Pick<Deno.Conn, "readable" | "writable">;

/** See the module description. */
export class DoctorStage extends NodeSite {
  static async start(...flags: readonly string[]): Promise<DoctorStage> {
    return new DoctorStage(...await NodeSite.opened(...flags));
  }

  /** The flags of the server that runs. */
  get ownFlags(): readonly string[] {
    const { agentPort, healthPort } = this.identity;
    return [
      this.asked,
      `--agent-port=${agentPort}`,
      `--health-port=${healthPort}`,
      "--admin-port=0",
    ];
  }

  /** Flags of an agent that would join as `node`. */
  fresh(token: string, node: string): readonly string[] {
    return [
      `--state-dir=${this.path("fresh")}`,
      `--server=${this.server}`,
      `--join=${token}`,
      `--node=${node}`,
    ];
  }

  /** A node that waits for approval. */
  async waiting(node: string): Promise<void> {
    const token = await this.identity.createToken("--needs-approval");
    await this.agentUntil(/waits for approval/, node, [
      `--join=${token}`,
      `--node=${node}`,
      `--state-dir=${this.nodeDirectory(node)}`,
    ]);
  }

  /** A TCP service that is none of ours. @param answer To each connection. */
  service(answer: (conn: Deno.TcpConn) => Promise<void>): number {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.#serve(listener, (conn) =>
      answer(conn).catch(() => {}).finally(() => {
        try {
          conn.close();
        } catch {
          // The other end was first.
        }
      }));
    return listener.addr.port;
  }

  /** A port that is served at one address of this machine. */
  onlyOn(hostname: string): number {
    const listener = Deno.listen({ hostname, port: 0 });
    this.atEnd(() => listener.close());
    return listener.addr.port;
  }

  /** A unix socket whose connections come to the server's port for agents. */
  door(): string {
    return this.#unixService("door.sock", async (near) => {
      await joined(near, await Deno.connect(addressOf(this.server)));
    });
  }

  /** The same of something that hangs up as soon as it is spoken to. */
  cuttingDoor(): string {
    return this.#unixService("cut.sock", async (near) => {
      await near.read(new Uint8Array(16));
      near.close();
    });
  }

  #unixService(
    name: string,
    answer: (conn: Deno.UnixConn) => Promise<void>,
  ): string {
    const path = this.path(name);
    this.#serve(Deno.listen({ transport: "unix", path }), answer);
    return path;
  }

  /** What ends TLS, and makes TLS of its own to a server. */
  balancer(own: Own, ca: string, server: string): number {
    return this.#tls(own, ["h2"], async (conn) => {
      const there = await Deno.connectTls({
        ...addressOf(server),
        caCerts: [Deno.readTextFileSync(ca)],
        alpnProtocols: ["h2"],
      });
      await joined(conn, there);
    });
  }

  /** What speaks HTTP over TLS, and no HTTP/2. */
  website(own: Own): number {
    return this.#tls(own, ["http/1.1"], async (conn) => {
      await conn.read(new Uint8Array(512));
    });
  }

  #tls(
    { cert, key }: Own,
    alpnProtocols: string[],
    answer: (conn: Deno.TlsConn) => Promise<void>,
  ): number {
    const listener = Deno.listenTls({
      ...{ hostname: "127.0.0.1", port: 0, alpnProtocols },
      cert: Deno.readTextFileSync(cert),
      key: Deno.readTextFileSync(key),
    });
    this.#serve(listener, answer);
    return listener.addr.port;
  }

  #serve<C>(
    listener: AsyncIterable<C> & { close(): void },
    answer: (conn: C) => Promise<void>,
  ): void {
    const serving = (async () => {
      // Either end may go when it likes.
      for await (const conn of listener) answer(conn).catch(() => {});
    })();
    serving.catch(() => {});
    this.atEnd(() => listener.close());
  }

  /** A port that answers no SYN, as behind a firewall. */
  async deafPort(): Promise<number> {
    const silent = await SilentTarget.open();
    this.atEnd(() => silent.close());
    return addressOf(silent.address).port;
  }
}

function addressOf(server: string): { hostname: string; port: number } {
  const [hostname, port] = server.split(":");
  return { hostname: hostname!, port: Number(port) };
}

async function joined(near: Wire, far: Wire): Promise<void> {
  await Promise.all([
    near.readable.pipeTo(far.writable),
    far.readable.pipeTo(near.writable),
  ]);
}
