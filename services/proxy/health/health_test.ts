import { assertEquals, assertMatch } from "@std/assert";
import type { HealthCheck } from "../../catalog/model/model.ts";
import {
  ask,
  deadPort,
  endpoints,
  ProxyRig,
  service,
} from "../../../tests/support/rigs/proxy_rig.ts";
import { until } from "../../../tests/support/watch/event_loop.ts";
import type { Backend } from "../balancer/backend.ts";

const KEY = "default/web";
const TCP = {
  kind: "tcp",
  intervalMs: 1_000,
  timeoutMs: 100,
  rise: 1,
  fall: 1,
} as const;
const HTTP = { ...TCP, kind: "http", path: "/healthz" } as const;

function serveAt(
  rig: ProxyRig,
  ports: readonly number[],
  health: HealthCheck | undefined,
): Backend[] {
  rig.sink.set({
    services: [
      service("web", { policy: health === undefined ? {} : { health } }),
    ],
    endpoints: [endpoints("web", ports)],
  });
  return [...rig.proxy.served.get(KEY)!.port.balancer.backends];
}

/** A server whose answer to each request is a text of the test's. */
function answering(rig: ProxyRig, answer: () => string) {
  const requests: string[] = [];
  const port = rig.serve(async (conn) => {
    const buffer = new Uint8Array(4_096);
    const count = await conn.read(buffer);
    if (count !== null) {
      requests.push(new TextDecoder().decode(buffer.subarray(0, count)));
      await conn.write(new TextEncoder().encode(answer()));
    }
    conn.close();
  });
  return { port, requests };
}

Deno.test("a backend that refuses is ill, before any client tried it", async () => {
  await using rig = new ProxyRig();
  const [dead, live] = serveAt(rig, [deadPort(), rig.echo()], TCP);
  await until(() => dead!.health === "ill" && live!.health === "well");
  assertMatch(dead!.lastError!, /connection refused/);
  rig.dialer.dials.length = 0;
  const conn = await rig.connect(KEY);
  assertEquals(await ask(conn, "x"), "x");
  assertEquals(rig.dialer.dials.map(({ key }) => key), [live!.key]);
  conn.close();
  assertEquals(rig.log.matching(/is ill: dial tcp/).length, 1);
});

Deno.test("it is asked again, and is well when it answers", async () => {
  await using rig = new ProxyRig();
  const port = rig.echo();
  rig.dialer.refuse(`127.0.0.1:${port}`);
  const [backend] = serveAt(rig, [port], TCP);
  await until(() => backend!.health === "ill");
  rig.dialer.answers.clear();
  rig.timers.advance(TCP.intervalMs - 101);
  assertEquals(rig.dialer.dials.length, 1, "not before its time");
  rig.timers.advance(1);
  await until(() => backend!.health === "well");
  assertEquals(rig.log.matching(/is well again/).length, 1);
});

Deno.test("over HTTP it is the status that counts", async () => {
  await using rig = new ProxyRig();
  let status = "204 No Content";
  const server = answering(rig, () => `HTTP/1.1 ${status}\r\n\r\n`);
  const [backend] = serveAt(rig, [server.port], HTTP);
  await until(() => backend!.health === "well");
  assertMatch(
    server.requests[0]!,
    /^GET \/healthz HTTP\/1\.1\r\nHost: 127\.0\.0\.1:[0-9]+\r\n/,
  );
  status = "503 Service Unavailable";
  rig.timers.advance(HTTP.intervalMs);
  await until(() => backend!.health === "ill");
  assertEquals(backend!.lastError, "GET /healthz was answered 503");
});

Deno.test("whoever speaks something else is ill, and so is who says nothing", async () => {
  await using rig = new ProxyRig();
  const redis = answering(rig, () => "-ERR unknown command 'GET'\r\n");
  const endless = answering(rig, () => "x".repeat(3_000));
  const mute = rig.serve(() => new Promise(() => {}));
  const [one, two, three] = serveAt(
    rig,
    [redis.port, endless.port, mute],
    HTTP,
  );
  await until(() => one!.health === "ill" && two!.health === "ill");
  for (const { lastError } of [one!, two!]) {
    assertMatch(lastError!, /the endpoint answered .*, which is no HTTP/);
  }
  assertEquals(three!.health, "unknown");
  await rig.dialer.dialed(3);
  await until(() => rig.timers.pendingCount > 0);
  rig.timers.advance(HTTP.timeoutMs);
  await until(() => three!.health === "ill");
  assertEquals(three!.lastError, "no answer to GET /healthz within 100 ms");
});

Deno.test("checks end with their backend, their policy and their service", async () => {
  await using rig = new ProxyRig();
  const [one, two] = [rig.echo(), rig.echo()];
  const [first, second] = serveAt(rig, [one, two], TCP);
  await until(() => first!.health === "well" && second!.health === "well");
  serveAt(rig, [two], TCP);
  rig.dialer.dials.length = 0;
  rig.timers.advance(2 * TCP.intervalMs);
  await until(() => rig.dialer.dials.length > 0);
  assertEquals(
    [...new Set(rig.dialer.dials.map(({ key }) => key))],
    [second!.key],
  );
  serveAt(rig, [two], undefined);
  assertEquals(second!.health, "unknown");
  rig.dialer.dials.length = 0;
  rig.timers.advance(10 * TCP.intervalMs);
  assertEquals(rig.dialer.dials, []);
});
