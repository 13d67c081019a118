import { assertEquals, assertMatch } from "@std/assert";
import type { ServerAddress } from "../../net/dial/server_addresses.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { DiscoveryMode } from "../../proto/xds/discovery.ts";
import type { ResourceKind } from "../../proto/xds/resource.ts";
import { encodeAny } from "../../proto/xds/any.ts";
import { Cluster } from "../../proto/xds/xds_messages.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { deadPort } from "../../tests/support/rigs/proxy_rig.ts";
import { ScriptedAds } from "../../tests/support/xds/scripted_ads.ts";
import { eventually } from "../../tests/support/rigs/tunnel_harness.ts";
import { AdsClient } from "./ads_client.ts";
import {
  AdsConnection,
  FIRST_RESPONSE_MS,
  KEEPALIVE_MS,
  KEEPALIVE_TIMEOUT_MS,
} from "./ads_connection.ts";
import { plainUpstream } from "../../net/channel/server_upstream.ts";
import { needsOf, readResource } from "./read_resource.ts";

/** A client that wants all clusters, and what it learns of its streams. */
class Rig implements AsyncDisposable {
  readonly client: AdsClient<string>;
  readonly connection: AdsConnection<string>;
  readonly problems: { readonly text: string; readonly retryMs: number }[] = [];
  #waiters: (() => void)[] = [];

  constructor(
    addresses: readonly ServerAddress[],
    timers: Timers = systemTimers,
    mode: DiscoveryMode = "delta",
  ) {
    this.client = new AdsClient<string>({
      mode,
      node: {
        id: "n1",
        cluster: "c",
        metadata: { "tunnel.kind": "proxy" },
        locality: { region: "", zone: "z", subZone: "" },
        userAgentName: "test",
        userAgentVersion: "1",
        clientFeatures: [],
      },
      read: (kind, resource) => ({
        content: resource.name,
        needs: needsOf(readResource(kind, resource)),
      }),
      timers,
      onChanged: () => {},
      onSettled: () => this.#wake(),
    });
    this.client.want("cluster", true);
    this.connection = new AdsConnection({
      client: this.client,
      upstream: plainUpstream(addresses),
      timers,
      random: () => 0,
      onProblem: (text, retryMs) => {
        this.problems.push({ text, retryMs });
        this.#wake();
      },
    });
    this.connection.start();
  }

  /** Resolves when something was heard that makes it true. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  problem(count: number): Promise<void> {
    return this.until(() => this.problems.length >= count);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.connection.stop();
  }

  #wake(): void {
    for (const wake of this.#waiters.splice(0)) wake();
  }
}

function named(name: string, kind: ResourceKind = "cluster") {
  const any = encodeAny(Cluster, { name, type: 3 });
  return { kind, name, version: `v-${name}`, any };
}

Deno.test("a stream says who asks, and carries both modes", async () => {
  for (const mode of ["sotw", "delta"] as const) {
    using server = new ScriptedAds();
    await using rig = new Rig([server.address], systemTimers, mode);
    const call = await server.next();
    assertEquals(call.mode, mode);
    assertEquals(call.call.authority, "localhost");
    const { node } = await call.next("cluster");
    assertEquals([node?.id, node?.cluster], ["n1", "c"]);
    assertEquals(node?.locality?.zone, "z");
    assertEquals(rig.connection.state.kind, "connecting");
    const resources = [named("a")];
    const nonce = call.answer({ kind: "cluster", version: "1", resources });
    const ack = await call.next("cluster");
    assertEquals([ack.responseNonce, ack.node], [nonce, undefined]);
    const [endpoints] = [await call.next("endpoints")];
    assertEquals(
      endpoints.resourceNames ?? endpoints.resourceNamesSubscribe,
      ["a"],
    );
    assertEquals(rig.connection.state.kind, "open");
    await rig.connection.stop();
    await call.ended;
    assertEquals(rig.connection.state.kind, "stopped");
  }
});

Deno.test("who is refused waits longer each time, who was served comes back soon", async () => {
  using server = new ScriptedAds();
  const timers = new FakeTimers();
  await using rig = new Rig([server.address], timers);
  const refusal = { code: StatusCode.PERMISSION_DENIED, message: "not you" };
  for (const count of [1, 2, 3]) {
    (await server.next()).finish(refusal);
    await rig.problem(count);
    timers.advance(rig.problems[count - 1]!.retryMs);
  }
  assertMatch(
    rig.problems[0]!.text,
    /^the server 127\.0\.0\.1:\d+ has ended the stream with PERMISSION_DENIED: not you$/,
  );
  const waits = rig.problems.map(({ retryMs }) => retryMs);
  assertEquals(waits, [50, 75, 112.5]);
  const call = await server.next();
  await call.next("cluster");
  call.answer({ kind: "cluster", version: "1", resources: [named("a")] });
  await rig.until(() => rig.connection.state.kind === "open");
  server.cut();
  await rig.problem(4);
  assertEquals(rig.problems[3]!.retryMs, 50);
  timers.advance(50);
  const again = await (await server.next()).next("cluster");
  assertEquals(again.initialResourceVersions, { a: "v-a" });
  assertEquals(again.node?.id, "n1");
});

Deno.test("the next server is tried when one is away, refuses, or goes", async () => {
  using one = new ScriptedAds();
  using two = new ScriptedAds();
  const away = { host: "127.0.0.1", port: deadPort() };
  await using rig = new Rig([away, one.address, two.address]);
  const first = await one.next();
  await first.next("cluster");
  first.answer({ kind: "cluster", version: "1", resources: [named("a")] });
  await rig.until(() => rig.connection.state.kind === "open");
  assertEquals(rig.problems, []);
  first.finish({ code: StatusCode.UNAVAILABLE, message: "going down" });
  const second = await two.next();
  await second.next("cluster");
  second.finish({ code: StatusCode.UNAVAILABLE, message: "me too" });
  await one.next();
  assertEquals([...rig.client.held("cluster").keys()], ["a"]);
});

Deno.test("a port that wants TLS is told from a server that went, in one sentence", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  await using rig = new Rig([{ host: "127.0.0.1", port }]);
  // It reads what came, or not: then its end is a reset.
  for (const hasRead of [true, false]) {
    const conn = await listener.accept();
    if (hasRead) await conn.read(new Uint8Array(65_536));
    conn.close();
    await rig.problem(hasRead ? 1 : 2);
  }
  const where = `127.0.0.1:${port}`;
  const told = `the server ${where} hangs up on HTTP/2 without TLS; an ` +
    `--agent-port wants https://${where}`;
  assertEquals(rig.problems.map(({ text }) => text), [told, told]);
});

Deno.test("nobody is there: each is named, with what to do", async () => {
  const timers = new FakeTimers();
  const [a, b] = [deadPort(), deadPort()];
  await using rig = new Rig([
    { host: "127.0.0.1", port: a },
    { host: "127.0.0.1", port: b },
  ], timers);
  await rig.problem(1);
  assertEquals(
    rig.problems[0]!.text,
    `Cannot connect to 127.0.0.1:${a}, 127.0.0.1:${b}: connection refused; ` +
      "is the server running there?",
  );
});

Deno.test("a server that is connected and silent is left", async () => {
  const timers: Timers = {
    now: () => systemTimers.now(),
    after: (delayMs, callback) =>
      systemTimers.after(delayMs === FIRST_RESPONSE_MS ? 1 : delayMs, callback),
  };
  using server = new ScriptedAds();
  await using rig = new Rig([server.address], timers);
  const call = await server.next();
  await rig.problem(1);
  assertMatch(rig.problems[0]!.text, /has sent nothing for 20000 ms$/);
  await call.ended;
});

Deno.test("a server that is gone without a word is noticed by PING", async () => {
  const timers = new FakeTimers();
  using server = new ScriptedAds();
  await using rig = new Rig([server.address], timers);
  const call = await server.next();
  call.answer({ kind: "cluster", version: "1", resources: [named("a")] });
  await rig.until(() => rig.connection.state.kind === "open");
  server.isFrozen = true;
  timers.advance(KEEPALIVE_MS + KEEPALIVE_TIMEOUT_MS - 1);
  assertEquals(rig.connection.state.kind, "open");
  timers.advance(1);
  await rig.problem(1);
  assertMatch(
    rig.problems[0]!.text,
    /^lost the server 127\.0\.0\.1:\d+: .*PING/,
  );
});

Deno.test("without TLS nothing is said to another machine", async () => {
  const timers = new FakeTimers();
  await using rig = new Rig([{ host: "192.0.2.1", port: 1 }], timers);
  await rig.problem(1);
  assertEquals(
    rig.problems[0]!.text,
    "Cannot connect to 192.0.2.1:1 without TLS: 192.0.2.1 is another machine",
  );
});

Deno.test("stopping ends at once, whatever goes on", async () => {
  using server = new ScriptedAds();
  const timers = new FakeTimers();
  const waiting = new Rig([{ host: "127.0.0.1", port: deadPort() }], timers);
  await waiting.problem(1);
  await waiting.connection.stop();
  const asking = new Rig([server.address], timers);
  await server.next();
  await asking.connection.stop();
  const connecting = new Rig([server.address], timers);
  await connecting.connection.stop();
  await eventually("no timers", () => timers.pendingCount === 0);
});
