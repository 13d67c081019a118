/**
 * Three servers and then every agent are restarted in turn, as in an upgrade,
 * while callers that know all servers dial: no dial fails, and a conduit is cut
 * only when its server's time for drains is over.
 *
 * @module
 */

import { assert } from "@std/assert";
import { openDialer, type TunnelDialer } from "../../client/tunnel_dialer.ts";
import { Child } from "../support/program/child.ts";
import { Workspace } from "../support/program/workspace.ts";
import { ConduitProbe } from "../support/memory/conduit_probe.ts";
import { Processes, type ServerProcess } from "../support/rigs/processes.ts";
import { SteadyRequests } from "../support/peers/steady_requests.ts";

const SERVERS = ["s1", "s2", "s3"];
const AGENTS = ["a1", "a2"];

/** That begin with the same server. */
const ASKERS = 2;

/** How long a server lets run what runs. */
const GRACE_MS = 600;

class Fleet extends Processes {
  readonly #echo = this.echo();
  readonly #agents = new Map<string, Child>();
  readonly #dialers: TunnelDialer[] = [];
  /** Conduits that ended before their answer. */
  cut = 0;

  constructor(workspace: Workspace) {
    super(workspace);
    for (const id of SERVERS) {
      const grace = `--graceful-shutdown-timeout=${GRACE_MS}ms`;
      this.addServer(id, "--server-count=3", grace);
    }
  }

  async startAgent(id: string): Promise<void> {
    const addresses = this.servers.map(({ address }) => address);
    const flags = [`--agent-id=${id}`, "--drain-timeout=1s"];
    const child = this.agentAt(addresses, ...flags);
    this.#agents.set(id, child);
    for (const server of SERVERS) {
      await child.untilPrinted(new RegExp(`linked to server server=${server}`));
    }
  }

  async stopAgent(id: string): Promise<void> {
    await this.#agents.get(id)!.stop("SIGTERM");
  }

  /** A dialer that has the servers in this order. */
  dialer(order: readonly ServerProcess[]): TunnelDialer {
    const [address, ...others] = order.map(({ socket }) =>
      ({ kind: "unix", path: socket }) as const
    );
    const route = { kind: "tunnel", protocol: "grpc" } as const;
    const dialer = openDialer({ ...route, address: address!, others });
    this.#dialers.push(dialer);
    return dialer;
  }

  async dial(dialer: TunnelDialer): Promise<ConduitProbe> {
    const target = { protocol: "tcp", address: `127.0.0.1:${this.#echo}` };
    return new ConduitProbe(await dialer.dial({ target }));
  }

  /** Each asker begins with another server. */
  requests(): SteadyRequests[] {
    return this.servers.map((_, index) => {
      const { servers } = this;
      const order = [...servers.slice(index), ...servers.slice(0, index)];
      const dialer = this.dialer(order);
      const ask = async () => {
        const conduit = await this.dial(dialer);
        conduit.send("hello");
        const isCut = await Promise.race([
          conduit.received(5).then(() => false),
          conduit.closed.then(() => true),
        ]);
        if (isCut) this.cut++;
        else conduit.reset("asked enough");
      };
      return new SteadyRequests(ask, ASKERS, 10);
    });
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    for (const dialer of this.#dialers) dialer.close();
    await super[Symbol.asyncDispose]();
  }
}

Deno.test("three servers and every agent are restarted in turn: no dial fails", async () => {
  await using fleet = new Fleet(await Workspace.make());
  for (const server of fleet.servers) await server.start();
  for (const id of AGENTS) await fleet.startAgent(id);
  const requests = fleet.requests();
  for (const one of requests) await one.more(5);
  for (const server of fleet.servers) {
    const held = await fleet.dial(fleet.dialer([server]));
    const startMs = performance.now();
    await Promise.all([server.stop("SIGTERM"), held.closed]);
    const heldMs = performance.now() - startMs;
    assert(heldMs >= GRACE_MS, `cut off after ${heldMs} ms`);
    await server.start();
    for (const id of AGENTS) await server.untilLinked(`agent=${id}`);
    for (const one of requests) await one.more(5);
  }
  for (const id of AGENTS) {
    await fleet.stopAgent(id);
    for (const one of requests) await one.more(5);
    await fleet.startAgent(id);
    for (const one of requests) await one.more(5);
  }
  for (const one of requests) await one.mustBeAnswered(30);
  // What is dialed in a server's last moment is cut with it: one of each asker.
  assert(
    fleet.cut <= SERVERS.length * SERVERS.length * ASKERS,
    `${fleet.cut} were cut`,
  );
});
