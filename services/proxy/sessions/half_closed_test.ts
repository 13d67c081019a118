import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import {
  ask,
  ProxyRig,
  service,
} from "../../../tests/support/rigs/proxy_rig.ts";
import { readToEnd, writeAll } from "../../../tests/support/peers/sockets.ts";
import { soon, until } from "../../../tests/support/watch/event_loop.ts";
import { HALF_CLOSED_IDLE_MS } from "../defaults.ts";
import { SWEEPS_PER_IDLE } from "./tcp_proxy.ts";

const KEY = "default/web";
const SWEEP_MS = HALF_CLOSED_IDLE_MS / SWEEPS_PER_IDLE;

/** A client of a backend whose connection is the test's. */
async function connected(rig: ProxyRig) {
  const came = Promise.withResolvers<Deno.TcpConn>();
  const backend = rig.serve((conn) => {
    came.resolve(conn);
    return new Promise(() => {});
  });
  rig.serves(service("web"), [backend]);
  const { port, proxy } = rig.proxy.served.get(KEY)!;
  const client = await rig.connect(KEY);
  return { client, backend: await came.promise, port, proxy };
}

/** Ends one direction, which the proxy notices by watching the connection. */
async function endOf(rig: ProxyRig, conn: Deno.TcpConn): Promise<void> {
  const before = rig.timers.pendingCount;
  await conn.closeWrite();
  await until(() => rig.timers.pendingCount > before);
}

function assertReset(conn: Deno.Conn): Promise<unknown> {
  return assertRejects(() => readToEnd(conn), Deno.errors.ConnectionReset);
}

for (const who of ["client", "backend"] as const) {
  Deno.test(`whoever says nothing after the ${who} has ended is given up`, async () => {
    await using rig = new ProxyRig();
    const { port, proxy, ...ends } = await connected(rig);
    const other = who === "client" ? ends.backend : ends.client;
    await endOf(rig, ends[who]);
    rig.timers.advance(HALF_CLOSED_IDLE_MS - 1);
    assertEquals([port.counts.endedHalfClosed, proxy.load], [0, 1]);
    rig.timers.advance(1);
    assertEquals(await other.read(new Uint8Array(1)), null, "the end came");
    // Who was told an end in order learns the rest by what it sends.
    await assertReset(ends[who]);
    await until(() => proxy.load === 0);
    assertEquals(port.counts.endedHalfClosed, 1);
    assertMatch(port.lastError!, /one side had ended .* for 5 minutes/);
    for (const conn of Object.values(ends)) conn.close();
  });
}

Deno.test("whoever still says something may go on, however slowly", async () => {
  await using rig = new ProxyRig();
  const { client, backend, port, proxy } = await connected(rig);
  await endOf(rig, client);
  for (let at = 0; at < 5; at++) {
    rig.timers.advance(HALF_CLOSED_IDLE_MS - SWEEP_MS);
    await backend.write(new TextEncoder().encode("x"));
    assertEquals(await client.read(new Uint8Array(9)), 1);
    rig.timers.advance(SWEEP_MS);
  }
  assertEquals([port.counts.endedHalfClosed, proxy.load], [0, 1]);
  rig.timers.advance(HALF_CLOSED_IDLE_MS);
  await assertReset(client);
  client.close();
  backend.close();
});

Deno.test("whoever takes nothing is given up with what waits for it", async () => {
  await using rig = new ProxyRig();
  const { client, backend, port, proxy } = await connected(rig);
  // More than all buffers on the way have room for.
  const writing = writeAll(client, new Uint8Array(64 * 1024 * 1024))
    .catch((error) => error);
  await endOf(rig, backend);
  let bytes = -1;
  while (await soon(() => port.counts.bytesFromClients !== bytes)) {
    bytes = port.counts.bytesFromClients;
  }
  rig.timers.advance(HALF_CLOSED_IDLE_MS + SWEEP_MS);
  assert(await writing instanceof Error);
  await until(() => proxy.load === 0);
  assertEquals(port.counts.endedHalfClosed, 1);
  client.close();
  backend.close();
});

Deno.test("who has ended nothing may be silent for as long as it likes", async () => {
  await using rig = new ProxyRig();
  rig.serves(service("web"), [rig.echo()]);
  const client = await rig.connect(KEY);
  assertEquals(await ask(client, "x"), "x");
  rig.timers.advance(24 * 3_600_000);
  assertEquals(await ask(client, "y"), "y");
  client.close();
});

Deno.test("nothing is looked at when nobody is half-closed any more", async () => {
  await using rig = new ProxyRig();
  const { client, backend, proxy } = await connected(rig);
  const before = rig.timers.pendingCount;
  await endOf(rig, client);
  await backend.closeWrite();
  await until(() => proxy.load === 0);
  rig.timers.advance(SWEEP_MS);
  assertEquals(rig.timers.pendingCount, before);
  client.close();
  backend.close();
});
