/**
 * What becomes of TCP connections whose endpoint goes or is down, and of those
 * that say nothing, as their service has it: with real sockets.
 */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import type { ServicePolicy } from "../../catalog/model/model.ts";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import { openLibc } from "../../../net/libc/libc.ts";
import {
  ask,
  deadPort,
  endpoints,
  ProxyRig,
  service,
} from "../../../tests/support/rigs/proxy_rig.ts";
import { readToEnd, writeAll } from "../../../tests/support/peers/sockets.ts";
import { until } from "../../../tests/support/watch/event_loop.ts";
import { HALF_CLOSED_IDLE_MS } from "../defaults.ts";

const KEY = "default/web";

function serveAt(
  rig: ProxyRig,
  ports: readonly number[],
  policy: ServicePolicy = {},
) {
  return rig.serves(service("web", { policy }), ports);
}

async function assertReset(conn: Deno.Conn): Promise<void> {
  await assertRejects(() => readToEnd(conn), Deno.errors.ConnectionReset);
  conn.close();
}

Deno.test("or are reset at once, and no others", async () => {
  await using rig = new ProxyRig();
  const [one, two] = [rig.echo("1:"), rig.echo("2:")];
  const policy = { onEndpointRemoved: "reset" } as const;
  const port = serveAt(rig, [one, two], policy);
  const [first, second] = [await rig.connect(KEY), await rig.connect(KEY)];
  assertEquals([await ask(first, "x"), await ask(second, "x")], ["1:x", "2:x"]);
  serveAt(rig, [two], policy);
  await assertReset(first);
  assertEquals(await ask(second, "y"), "2:y");
  assertEquals(port.counts.endedByEndpoint, 1);
  assertMatch(port.lastError!, /^127\.0\.0\.1:\d+ is gone$/);
  second.close();
});

Deno.test("or have time to end, unless the endpoint comes back meanwhile", async () => {
  await using rig = new ProxyRig({ defaults: { onEndpointRemoved: "drain" } });
  const [one, two] = [rig.echo("1:"), rig.echo("2:")];
  const policy = { endpointDrainMs: 5_000 };
  const port = serveAt(rig, [one, two], policy);
  const conn = await rig.connect(KEY);
  assertEquals(await ask(conn, "x"), "1:x");
  serveAt(rig, [two], policy);
  serveAt(rig, [one, two], policy);
  rig.timers.advance(5_000);
  assertEquals(await ask(conn, "y"), "1:y", "it came back");
  const other = await rig.connect(KEY);
  const name = (await ask(other, "x"))[0];
  serveAt(rig, [name === "1" ? two : one], policy);
  rig.timers.advance(4_999);
  assertEquals(await ask(other, "y"), `${name}:y`);
  rig.timers.advance(1);
  await assertReset(other);
  assert(port.counts.endedByEndpoint >= 1);
  conn.close();
});

Deno.test("a service that is removed has its own drain, whatever its endpoints'", async () => {
  await using rig = new ProxyRig({ drainMs: 5_000 });
  serveAt(rig, [rig.echo()], { onEndpointRemoved: "reset" });
  const conn = await rig.connect(KEY);
  assertEquals(await ask(conn, "x"), "x");
  rig.sink.set({ services: [] });
  rig.timers.advance(4_999);
  assertEquals(await ask(conn, "y"), "y");
  rig.timers.advance(1);
  await assertReset(conn);
});

Deno.test("an endpoint that is unready, or ill while another is well, is down", async () => {
  await using rig = new ProxyRig();
  const [one, two] = [rig.echo("1:"), rig.echo("2:")];
  const policy = {
    onEndpointDown: "reset",
    health: { kind: "tcp", intervalMs: 1_000, timeoutMs: 500, fall: 1 },
  } as const;
  const port = serveAt(rig, [one, two], policy);
  const [first, second] = [...port.balancer.backends];
  await until(() => first!.health === "well" && second!.health === "well");
  const conns = [await rig.connect(KEY), await rig.connect(KEY)];
  await Promise.all(conns.map((conn) => ask(conn, "x")));
  rig.dialer.refuse(first!.key);
  rig.timers.advance(1_000);
  await assertReset(conns[0]!);
  assertMatch(port.lastError!, /is down$/);
  const list = endpoints("web", [one, two]);
  rig.sink.add({
    endpoints: [{
      ...list,
      endpoints: [
        list.endpoints[0]!,
        { ...list.endpoints[1]!, state: "unready" },
      ],
    }],
  });
  await assertReset(conns[1]!);
  assertEquals(port.counts.endedByEndpoint, 2);
});

Deno.test("a client that is connected with an endpoint that went meanwhile goes, too", async () => {
  await using rig = new ProxyRig();
  const [one, two] = [rig.echo("1:"), rig.echo("2:")];
  const policy = { onEndpointRemoved: "reset" } as const;
  serveAt(rig, [one, two], policy);
  const key = `127.0.0.1:${one}`;
  const goOn = Promise.withResolvers<void>();
  rig.dialer.answers.set(key, async (dial) => {
    await goOn.promise;
    rig.dialer.answers.clear();
    const { balancer } = rig.proxy.served.get(KEY)!.port;
    const [left] = balancer.backends;
    return rig.dialer.dial({ ...left!.target, port: one }, dial);
  });
  const conn = await rig.connect(KEY);
  await rig.dialer.dialed(1);
  serveAt(rig, [two], policy);
  goOn.resolve();
  await assertReset(conn);
});

Deno.test("a connection that says nothing ends after idleTimeout, one that does lives", async () => {
  await using rig = new ProxyRig({ defaults: { idleTimeoutMs: 10_000 } });
  const port = serveAt(rig, [rig.echo()]);
  const [silent, busy] = [await rig.connect(KEY), await rig.connect(KEY)];
  assertEquals([await ask(silent, "x"), await ask(busy, "x")], ["x", "x"]);
  for (let round = 0; round < 3; round++) {
    rig.timers.advance(4_000);
    assertEquals(await ask(busy, "y"), "y");
  }
  await assertReset(silent);
  assertEquals(port.counts.endedIdle, 1);
  busy.close();
});

Deno.test("so does one that was there before anybody wanted that", async () => {
  await using rig = new ProxyRig();
  const backend = rig.echo();
  serveAt(rig, [backend]);
  const conn = await rig.connect(KEY);
  assertEquals(await ask(conn, "x"), "x");
  serveAt(rig, [backend], { idleTimeoutMs: 10_000 });
  rig.timers.advance(1_000);
  rig.timers.advance(10_000);
  await assertReset(conn);
});

Deno.test("a service says how long one of which one side has ended may be silent", async () => {
  await using rig = new ProxyRig();
  const port = serveAt(rig, [
    rig.serve(async (conn) => {
      await readToEnd(conn);
      await new Promise(() => {});
    }),
  ], { halfClosedTimeoutMs: 1_000 });
  const conn = await rig.connect(KEY);
  const before = rig.timers.pendingCount;
  await conn.closeWrite();
  await until(() => rig.timers.pendingCount > before);
  rig.timers.advance(1_000);
  await assertReset(conn);
  assertMatch(port.lastError!, /nothing was heard of the other for 1 s$/);
  assertEquals(port.counts.endedHalfClosed, 1);
});

Deno.test("or that it may be so for ever", async () => {
  await using rig = new ProxyRig();
  serveAt(rig, [
    rig.serve(async (conn) => {
      const asked = await readToEnd(conn);
      await release.promise;
      await writeAll(conn, asked);
      conn.close();
    }),
  ], { halfClosedTimeoutMs: 0 });
  const release = Promise.withResolvers<void>();
  const conn = await rig.connect(KEY);
  await writeAll(conn, new TextEncoder().encode("later"));
  const before = rig.timers.pendingCount;
  await conn.closeWrite();
  await until(() => rig.timers.pendingCount > before);
  rig.timers.advance(10 * HALF_CLOSED_IDLE_MS);
  release.resolve();
  assertEquals(new TextDecoder().decode(await readToEnd(conn)), "later");
  conn.close();
});

Deno.test({
  name: "a peer that takes nothing for userTimeout is given up by the kernel",
  ignore: openLibc() === undefined,
  fn: async () => {
    await using rig = new ProxyRig();
    const ended = Promise.withResolvers<unknown>();
    const backend = rig.serve(async (conn) => {
      const flood = new Uint8Array(256 * 1024);
      try {
        for (;;) await conn.write(flood);
      } catch (error) {
        ended.resolve(error);
      }
    });
    serveAt(rig, [backend], { userTimeoutMs: 50 });
    const conn = await rig.connect(KEY);
    // It reads nothing, so its window closes and stays so.
    assert(await ended.promise instanceof Error);
    denoStream(conn).close();
  },
});

Deno.test("dead endpoints are no reason to end anything", async () => {
  await using rig = new ProxyRig();
  const [dead, live] = [deadPort(), rig.echo()];
  const policy = {
    onEndpointDown: "reset",
    onEndpointRemoved: "reset",
  } as const;
  serveAt(rig, [live], policy);
  const conn = await rig.connect(KEY);
  assertEquals(await ask(conn, "x"), "x");
  serveAt(rig, [dead, live], policy);
  assertEquals(await ask(conn, "y"), "y");
  conn.close();
});
