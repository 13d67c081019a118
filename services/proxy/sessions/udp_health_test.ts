/**
 * Health checks of UDP ports, which ask another port of the same endpoint: two
 * endpoints at two addresses, whose health is what one real server answers to
 * whoever asks under the one or the other.
 */

import { assertEquals, assertMatch } from "@std/assert";
import type { HealthCheck, Protocol } from "../../catalog/model/model.ts";
import { DatagramPeer } from "../../../tests/support/peers/datagrams.ts";
import {
  ask,
  endpoints,
  ProxyRig,
  service,
} from "../../../tests/support/rigs/proxy_rig.ts";
import { GRACE_MS } from "./udp_sessions.ts";
import { arrivals } from "../../../tests/support/peers/sockets.ts";
import { until } from "../../../tests/support/watch/event_loop.ts";

const KEY = "default/dns";
const HOSTS = ["127.0.0.1", "127.0.0.2"] as const;
const CHECK_TIMEOUT_MS = 500;
const INTERVAL_MS = 1_000;

/** Says under each address how the endpoint there is. */
class HealthServer implements Disposable {
  /** Addresses of those that are. */
  readonly ill = new Set<string>();
  readonly #listener = Deno.listen({ hostname: "0.0.0.0", port: 0 });

  constructor() {
    void this.#serve();
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  [Symbol.dispose](): void {
    this.#listener.close();
  }

  async #serve(): Promise<void> {
    for await (const conn of arrivals(this.#listener)) {
      // On a busy machine who asked may have given up.
      await this.#answer(conn).catch(() => {});
      conn.close();
    }
  }

  async #answer(conn: Deno.TcpConn): Promise<void> {
    const { hostname } = conn.localAddr;
    await conn.read(new Uint8Array(1_024));
    const status = this.ill.has(hostname) ? "503 Ill" : "200 OK";
    await conn.write(new TextEncoder().encode(`HTTP/1.1 ${status}\r\n\r\n`));
  }
}

/** Two endpoints and their health. */
class World implements AsyncDisposable {
  readonly rig = new ProxyRig();
  readonly server = new HealthServer();
  readonly #closing: AsyncDisposable[] = [];

  get backends() {
    const { balancer } = this.rig.proxy.served.get(KEY)!.port;
    const [first, second] = [...balancer.backends];
    return [first!, second!] as const;
  }

  get counts() {
    return this.rig.proxy.served.get(KEY)!.port.counts;
  }

  /** @returns The port of the service. */
  async serve(
    protocol: Protocol,
    ports: readonly number[],
    health: HealthCheck = this.check,
  ): Promise<number> {
    this.rig.sink.set({
      services: [service("dns", {
        ports: [{ name: "", port: 53, protocol }],
        policy: { health },
      })],
      endpoints: [{
        service: KEY,
        endpoints: HOSTS.flatMap((address, at) =>
          endpoints("dns", [ports[at]!], { address }).endpoints
        ),
      }],
    });
    return await this.rig.listening(KEY);
  }

  get check(): HealthCheck {
    return {
      ...{ kind: "http", path: "/ready", port: this.server.port },
      ...{
        intervalMs: INTERVAL_MS,
        timeoutMs: CHECK_TIMEOUT_MS,
        rise: 1,
        fall: 1,
      },
    };
  }

  async peer(prefix: string, host?: string): Promise<DatagramPeer> {
    const peer = await DatagramPeer.echo(prefix, host);
    this.#closing.push(peer);
    return peer;
  }

  /** Lets all be asked, and waits for what comes of it. */
  async ask(...wanted: readonly ("well" | "ill")[]): Promise<void> {
    // One that is being asked is not asked again.
    const { timers } = this.rig;
    await until(() => !timers.pendingMs.includes(CHECK_TIMEOUT_MS));
    // As slow as the slowest: they do not stay in step.
    this.rig.timers.advance(2 * INTERVAL_MS);
    await this.are(...wanted);
  }

  async are(...wanted: readonly ("well" | "ill")[]): Promise<void> {
    await until(() =>
      this.backends.every(({ health }, at) => health === wanted[at])
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rig[Symbol.asyncDispose]();
    this.server[Symbol.dispose]();
    for (const one of this.#closing) await one[Symbol.asyncDispose]();
  }
}

Deno.test("sessions leave an endpoint that is ill at once, if another is well", async () => {
  await using world = new World();
  const a = await world.peer("a:");
  const b = await world.peer("b:", HOSTS[1]);
  const client = await world.peer("");
  client.answer = undefined;
  const port = await world.serve("udp", [a.port, b.port]);
  await world.are("well", "well");
  assertEquals(await client.ask("1", port), "a:1");
  world.server.ill.add(HOSTS[0]);
  await world.ask("ill", "well");
  assertEquals(world.counts.moved, 1);
  assertEquals(await client.ask("2", port), "b:2");
  assertEquals(
    world.backends.map(({ connections }) => connections),
    [0, 1],
  );
  assertMatch(world.backends[0].lastError!, /GET \/ready was answered 503/);
});

Deno.test("answers of an endpoint that is ill still arrive for two seconds", async () => {
  await using world = new World();
  const slow = await world.peer("");
  slow.answer = undefined;
  const b = await world.peer("b:", HOSTS[1]);
  const client = await world.peer("");
  client.answer = undefined;
  const port = await world.serve("udp", [slow.port, b.port]);
  await world.are("well", "well");
  client.send("query", port);
  const query = await slow.next();
  world.server.ill.add(HOSTS[0]);
  await world.ask("ill", "well");
  slow.send("late", query.from.port);
  assertEquals(await client.nextText(), "late");
  assertEquals(await client.ask("2", port), "b:2");
  world.rig.timers.advance(GRACE_MS);
  await until(() => world.rig.proxy.served.get(KEY)!.proxy.load === 1);
});

Deno.test("when all are ill sessions stay, until one of them is well", async () => {
  await using world = new World();
  const a = await world.peer("a:");
  const b = await world.peer("b:", HOSTS[1]);
  const client = await world.peer("");
  client.answer = undefined;
  const port = await world.serve("udp", [a.port, b.port]);
  await world.are("well", "well");
  assertEquals(await client.ask("1", port), "a:1");
  for (const host of HOSTS) world.server.ill.add(host);
  // Whoever is asked first finds the other one well, and may be left for it.
  await world.ask("ill", "ill");
  const { moved } = world.counts;
  await world.ask("ill", "ill");
  const answer = await client.ask("2", port);
  assertEquals(world.counts.moved, moved, "there is nowhere to go");
  const stayed = answer.startsWith("a:") ? 0 : 1;
  const other = 1 - stayed;
  world.server.ill.delete(HOSTS[other]!);
  const wanted = stayed === 0
    ? ["ill", "well"] as const
    : ["well", "ill"] as const;
  await world.ask(...wanted);
  assertEquals(world.counts.moved, moved + 1);
  assertEquals(await client.ask("3", port), `${"ab"[other]}:3`);
});

Deno.test("a UDP port is not asked without a port to ask", async () => {
  await using world = new World();
  const a = await world.peer("a:");
  const b = await world.peer("b:", HOSTS[1]);
  const { port: _, ...check } = world.check;
  await world.serve("udp", [a.port, b.port], check as HealthCheck);
  world.rig.timers.advance(10 * INTERVAL_MS);
  assertEquals(world.rig.dialer.dials, []);
});

Deno.test("TCP connections stay with who is ill, new ones go elsewhere", async () => {
  await using world = new World();
  const { rig } = world;
  const one = rig.echo("a:");
  const other = Deno.listen({ hostname: HOSTS[1], port: 0 });
  const serving = (async () => {
    for await (const conn of arrivals(other)) {
      await conn.write(new TextEncoder().encode("b:"));
      conn.close();
    }
  })();
  await world.serve("tcp", [one, other.addr.port]);
  await world.are("well", "well");
  const first = await rig.connect(KEY);
  assertEquals(await ask(first, "1"), "a:1");
  world.server.ill.add(HOSTS[0]);
  await world.ask("ill", "well");
  assertEquals(await ask(first, "2"), "a:2");
  for (let count = 0; count < 3; count++) {
    const next = await rig.connect(KEY);
    assertEquals(await ask(next, "3"), "b:");
    next.close();
  }
  first.close();
  other.close();
  await serving;
});
