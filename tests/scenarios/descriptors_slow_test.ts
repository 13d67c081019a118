/**
 * A server that may have few file descriptors: whoever takes all there are leaves
 * enough for the others. One that has run out is a fault of `lab/chaos`.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { ConduitProbe } from "../support/memory/conduit_probe.ts";
import { askEcho } from "../support/peers/steady_requests.ts";
import { freePort } from "../support/program/ports.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";
import { Processes } from "../support/rigs/processes.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { workersOf } from "../support/rigs/workers.ts";

/**
 * That a new conduit reaches its target. Which of the target's connections is
 * its, the bytes tell: those of earlier attempts may still come in.
 */
async function works(tunnel: TunnelProcesses): Promise<void> {
  const target = { protocol: "tcp", address: tunnel.target.address };
  const caller = new ConduitProbe(await tunnel.dial("grpc", { target }));
  caller.send("hello");
  const reached = Promise.withResolvers<void>();
  const look = async () => {
    const candidate = await tunnel.target.next();
    candidate.received(5).then(() => reached.resolve(), () => {});
    await look();
  };
  look().catch(() => {}); // The target is closed: nobody looks any more.
  await reached.promise;
}

/** Holds a connection open until it is closed, by either end. */
class Caller {
  readonly refused: Promise<void>;
  isRefused = false;

  constructor(private readonly conn: Deno.UnixConn) {
    const read = conn.read(new Uint8Array(1)).catch(() => {});
    this.refused = read.then(() => {
      this.isRefused = true;
    });
  }

  static async connect(path: string): Promise<Caller> {
    return new Caller(await Deno.connect({ transport: "unix", path }));
  }

  close(): void {
    this.conn.close();
  }
}

for (const limit of [64, 256]) {
  Deno.test(`with ${limit} descriptors, callers leave enough for health, administration and agents`, async () => {
    await using tunnel = await TunnelProcesses.start({
      agent: "none",
      serverProgram: ["sh", "-c", `ulimit -n ${limit}; exec "$@"`, "sh"],
      serverFlags: ["--v=2"],
    });
    const { server, socket: path } = tunnel;
    await server.child.untilPrinted(
      new RegExp(`may have only ${limit} descriptors.*ulimit -n`),
    );
    // More than there can be room for: none waits, some stay and some go.
    const callers = await Promise.all(
      Array.from({ length: limit }, () => Caller.connect(path)),
    );
    await Promise.race(callers.map(({ refused }) => refused));
    await server.child.untilPrinted(/Refusing connections on .*f/);
    // Each a connection of its own.
    for (let times = 0; times < 3; times++) {
      const health = await fetch(`${server.healthUrl}/healthz`, {
        headers: { connection: "close" },
      });
      assertEquals([health.status, await health.text()], [200, "ok"]);
    }
    // Waits until it is linked, and the server ready.
    await tunnel.addAgent("ours");
    const late = await Caller.connect(path);
    await late.refused;
    const held = callers.filter(({ isRefused }) => !isRefused).length;
    assert(held > limit / 8 && held < limit, `${held} callers`);
    for (const caller of [late, ...callers]) caller.close();
  });
}

for (const limit of [64, 256]) {
  Deno.test(`with ${limit} descriptors, silence to health and admin ports takes their share alone`, async () => {
    await using tunnel = await TunnelProcesses.start({
      serverProgram: ["sh", "-c", `ulimit -n ${limit}; exec "$@"`, "sh"],
    });
    const first = await tunnel.connect("grpc");
    const { healthPort, adminPort } = tunnel.server;
    const crowd: Deno.Conn[] = [];
    for (const port of [healthPort, adminPort]) {
      for (let at = 0; at < 100; at++) {
        crowd.push(await Deno.connect({ hostname: "127.0.0.1", port }));
      }
    }
    for (const path of [`${healthPort}/readyz`, `${adminPort}/metrics`]) {
      const answer = await fetch(`http://127.0.0.1:${path}`, {
        headers: { connection: "close" },
      });
      await answer.body?.cancel();
      assertEquals(answer.status, 200);
    }
    await works(tunnel);
    first.caller.send("still here");
    await first.target.received(10);
    for (const conn of crowd) conn.close();
  });
}

for (const workers of [1, 2]) {
  Deno.test(`a proxy of more ports than descriptors serves what fits, with ${workers} of it`, async () => {
    await using rig = new Processes(await Workspace.make());
    const config = rig.workspace.path("services.json");
    const endpoints = [{ address: "127.0.0.1", port: rig.echo() }];
    const services = Array.from({ length: 300 }, (_, at) => ({
      name: `s${at}`,
      ports: [{ port: 20_000 + at }],
      endpoints,
    }));
    await Deno.writeTextFile(config, JSON.stringify({ services }));
    const admin = freePort();
    const proxy = rig.launch("proxy", [
      ...["sh", "-c", 'ulimit -n 200; exec "$@"', "sh"],
      ...ourCommand("proxy", `--config=${config}`, `--admin-port=${admin}`),
      `--workers=${workers}`,
    ]);
    await proxy.untilReady(`http://127.0.0.1:${admin}/healthz`);
    if (workers > 1) await workersOf(proxy);
    await proxy.untilPrinted(/: too many open files; trying again/);
    const [, port] = await proxy.untilPrinted(/is served on \S+:(\d+)/);
    const ask = askEcho(Number(port));
    await ask();
    proxy.signal("SIGTERM");
    assertEquals((await proxy.ended).code, 0);
  });
}
