/**
 * Health checks of endpoints: when they are asked, what is made of answers, how
 * many in a row it takes, and what is asked over HTTP, HTTPS and gRPC.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import type { HealthCheck } from "../../catalog/model/model.ts";
import { openServerConnection } from "../../../net/http2/server_connection.ts";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import { Socket } from "../../../net/stream/socket.ts";
import type { Stream } from "../../../net/stream/stream.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { HealthService } from "../../../proto/grpc/health.ts";
import { unaryMethod } from "../../../proto/grpc/server.ts";
import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import {
  ask,
  deadPort,
  endpoints,
  ProxyRig,
  service,
} from "../../../tests/support/rigs/proxy_rig.ts";
import { TLS_ENGINES } from "../../../tests/support/rigs/tls_engines.ts";
import { TlsServer } from "../../../tests/support/peers/tls_server.ts";
import { until } from "../../../tests/support/watch/event_loop.ts";
import { type Backend, EJECTION_FAILURES } from "../balancer/backend.ts";

const KEY = "default/web";
const TIMES = { intervalMs: 1_000, timeoutMs: 10_000 } as const;
const HTTP = { ...TIMES, kind: "http", path: "/healthz" } as const;
const AT_ONCE = { intervalMs: 1_000, timeoutMs: 100, rise: 1, fall: 1 };
const QUICK = { ...HTTP, ...AT_ONCE };
const QUICK_TCP = { ...AT_ONCE, kind: "tcp" } as const;

function serveAt(
  rig: ProxyRig,
  ports: readonly number[],
  health?: HealthCheck,
) {
  const policy = health === undefined ? {} : { health };
  return rig.serves(service("web", { policy }), ports);
}

function backendsAt(...served: Parameters<typeof serveAt>): Backend[] {
  return [...serveAt(...served).balancer.backends];
}

/** Checks that wait for their time, which those do whose answer was looked at. */
function nextChecks(rig: ProxyRig): number {
  const { intervalMs } = TIMES;
  return rig.timers.pendingMs
    .filter((ms) => Math.abs(ms - intervalMs) <= intervalMs / 10).length;
}

/** A server whose answers are the test's: a status or a text; and what it is asked. */
function answering(rig: ProxyRig, answer: () => number | string) {
  const requests: string[] = [];
  const port = rig.serve(async (conn) => {
    const buffer = new Uint8Array(4_096);
    const count = await conn.read(buffer);
    if (count !== null) {
      requests.push(new TextDecoder().decode(buffer.subarray(0, count)));
      const said = answer();
      const text = typeof said === "number"
        ? `HTTP/1.1 ${said} So\r\n\r\n`
        : said;
      await conn.write(new TextEncoder().encode(text));
    }
    conn.close();
  });
  return { port, requests };
}

Deno.test("a backend that refuses is ill, before any client tried it", async () => {
  await using rig = new ProxyRig();
  const [dead, live] = backendsAt(rig, [deadPort(), rig.echo()], QUICK_TCP);
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
  const [backend] = backendsAt(rig, [port], QUICK_TCP);
  await until(() => backend!.health === "ill");
  rig.dialer.answers.clear();
  rig.timers.advance(QUICK_TCP.intervalMs - 101);
  assertEquals(rig.dialer.dials.length, 1, "not before its time");
  rig.timers.advance(1);
  await until(() => backend!.health === "well");
  assertEquals(rig.log.matching(/is well again/).length, 1);
});

Deno.test("over HTTP it is the status that counts", async () => {
  await using rig = new ProxyRig();
  let status = 204;
  const server = answering(rig, () => status);
  const [backend] = backendsAt(rig, [server.port], QUICK);
  await until(() => backend!.health === "well");
  assertMatch(
    server.requests[0]!,
    /^GET \/healthz HTTP\/1\.1\r\nHost: 127\.0\.0\.1:[0-9]+\r\n/,
  );
  status = 503;
  rig.timers.advance(QUICK.intervalMs);
  await until(() => backend!.health === "ill");
  assertEquals(backend!.lastError, "GET /healthz was answered 503");
});

Deno.test("whoever speaks something else is ill, and so is who says nothing", async () => {
  await using rig = new ProxyRig();
  const redis = answering(rig, () => "-ERR unknown command 'GET'\r\n");
  const endless = answering(rig, () => "x".repeat(3_000));
  const mute = rig.serve(() => new Promise(() => {}));
  const [one, two, three] = backendsAt(
    rig,
    [redis.port, endless.port, mute],
    QUICK,
  );
  await until(() => one!.health === "ill" && two!.health === "ill");
  for (const { lastError } of [one!, two!]) {
    assertMatch(lastError!, /the endpoint answered .*, which is no HTTP/);
  }
  assertEquals(three!.health, "unknown");
  await rig.dialer.dialed(3);
  await until(() => rig.timers.pendingCount > 0);
  rig.timers.advance(QUICK.timeoutMs);
  await until(() => three!.health === "ill");
  assertEquals(three!.lastError, "no answer to GET /healthz within 100 ms");
});

Deno.test("checks end with their backend, their policy and their service", async () => {
  await using rig = new ProxyRig();
  const [one, two] = [rig.echo(), rig.echo()];
  const [first, second] = backendsAt(rig, [one, two], QUICK_TCP);
  await until(() => first!.health === "well" && second!.health === "well");
  backendsAt(rig, [two], QUICK_TCP);
  rig.dialer.dials.length = 0;
  rig.timers.advance(2 * QUICK_TCP.intervalMs);
  await until(() => rig.dialer.dials.length > 0);
  assertEquals(
    [...new Set(rig.dialer.dials.map(({ key }) => key))],
    [second!.key],
  );
  backendsAt(rig, [two]);
  assertEquals(second!.health, "unknown");
  rig.dialer.dials.length = 0;
  rig.timers.advance(10 * QUICK_TCP.intervalMs);
  assertEquals(rig.dialer.dials, []);
});

Deno.test("it takes three bad answers to be ill and two good ones to be well", async () => {
  await using rig = new ProxyRig();
  let status = 200;
  const server = answering(rig, () => status);
  const { balancer } = serveAt(rig, [server.port], HTTP);
  const [backend] = balancer.backends;
  await until(() => backend!.health === "well");
  const seen: string[] = [];
  const next = async (answer: number) => {
    status = answer;
    const before = server.requests.length;
    rig.timers.advance(2 * TIMES.intervalMs);
    await until(() => server.requests.length > before && nextChecks(rig) > 0);
    seen.push(backend!.health);
  };
  for (const answer of [503, 503, 200, 503, 503, 503, 200, 503, 200, 200]) {
    await next(answer);
  }
  assertEquals(seen, [
    ...["well", "well", "well", "well", "well", "ill"],
    ...["ill", "ill", "ill", "well"],
  ]);
});

Deno.test("a good check brings an ejected endpoint back at once", async () => {
  await using rig = new ProxyRig();
  const [one, two] = [rig.echo("1:"), rig.echo("2:")];
  const port = serveAt(rig, [one, two], { ...TIMES, kind: "tcp" });
  const [first, second] = [...port.balancer.backends];
  await until(() => first!.health === "well" && second!.health === "well");
  for (let count = 0; count < EJECTION_FAILURES; count++) {
    port.balancer.failed(first!, "connection refused");
  }
  assert(port.balancer.ejectedForMs(first!) > 0);
  rig.timers.advance(TIMES.intervalMs);
  await until(() => port.balancer.ejectedForMs(first!) === 0);
  assertEquals(rig.log.matching(/is back: its health check/).length, 1);
});

Deno.test("another port that answers all the time brings nobody back", async () => {
  await using rig = new ProxyRig();
  let status = 200;
  const server = answering(rig, () => status);
  const check = { ...HTTP, port: server.port, rise: 1, fall: 1 };
  const port = serveAt(rig, [deadPort(), deadPort()], check);
  const [backend, other] = [...port.balancer.backends];
  const are = (health: string) =>
    until(() => backend!.health === health && other!.health === health);
  await are("well");
  for (let count = 0; count < EJECTION_FAILURES; count++) {
    port.balancer.failed(backend!, "connection refused");
  }
  const asked = server.requests.length;
  rig.timers.advance(TIMES.intervalMs);
  await until(() =>
    server.requests.length === asked + 2 && nextChecks(rig) === 2
  );
  assert(port.balancer.ejectedForMs(backend!) > 0);
  status = 503;
  rig.timers.advance(TIMES.intervalMs);
  await are("ill");
  status = 200;
  rig.timers.advance(TIMES.intervalMs);
  await are("well");
  assertEquals(port.balancer.ejectedForMs(backend!), 0, "it was silent too");
});

Deno.test("failures and time of an ejection are the service's to say", async () => {
  await using rig = new ProxyRig();
  rig.sink.set({
    services: [
      service("web", { policy: { ejection: { failures: 1, timeMs: 50 } } }),
      service("never", { policy: { ejection: { failures: 0 } } }),
    ],
    endpoints: [endpoints("web", [1]), endpoints("never", [1])],
  });
  const { balancer } = rig.proxy.served.get(KEY)!.port;
  const [backend] = balancer.backends;
  assert(balancer.failed(backend!, "refused"));
  assertEquals(balancer.ejectedForMs(backend!), 50);
  const never = rig.proxy.served.get("default/never")!.port.balancer;
  const [kept] = never.backends;
  for (let count = 0; count < 9; count++) never.failed(kept!, "refused");
  assertEquals(never.ejectedForMs(kept!), 0);
});

Deno.test("the status and the host are what the service says", async () => {
  await using rig = new ProxyRig();
  const server = answering(rig, () => 404);
  const check = { ...HTTP, host: "web.example:81" };
  const port = serveAt(rig, [server.port], {
    ...check,
    statuses: [{ first: 200, last: 299 }, { first: 404, last: 404 }],
  });
  const health = () => [...port.balancer.backends][0]!.health;
  await until(() => health() === "well");
  assertMatch(server.requests[0]!, /\r\nHost: web\.example:81\r\n/);
  serveAt(rig, [server.port], {
    ...check,
    statuses: [{ first: 200, last: 299 }],
  });
  await until(() => health() === "ill");
});

Deno.test("over HTTPS it is asked by its name, and verified only if that is wanted", async () => {
  await using rig = new ProxyRig();
  const asked: string[] = [];
  const answer = async (stream: Stream) => {
    asked.push(stream.serverName);
    const socket = new Socket(stream);
    await socket.read(new Uint8Array(1_024));
    await socket.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\n\r\n"));
    await socket.closeWrite();
    socket.close();
  };
  await using server = await TlsServer.open(
    TLS_ENGINES[0]!,
    (stream) => void answer(stream),
    { clientCertificate: "none" },
  );
  const check = { ...HTTP, host: "web.example:443" } as const;
  const port = serveAt(rig, [server.port], { ...check, tls: {} });
  const health = () => [...port.balancer.backends][0]!;
  await until(() => health().health === "well");
  assertEquals(asked, ["web.example"]);
  serveAt(rig, [server.port], { ...check, tls: { verify: true } });
  await until(() => health().health === "ill");
  assertMatch(health().lastError!, /^GET \/healthz was not answered: /);
  assertEquals(asked.length, 1);
});

/** A gRPC server with the health service on it. */
function grpcServer(
  rig: ProxyRig,
  { methods }: Pick<HealthService, "methods">,
): number {
  return rig.serve(async (conn) => {
    const over = Promise.withResolvers<void>();
    openServerConnection(denoStream(conn), {
      serves: methods,
      timers: systemTimers,
      events: { onClosed: () => over.resolve() },
    });
    await over.promise;
  });
}

Deno.test("over gRPC it is the service's serving status that counts", async () => {
  await using rig = new ProxyRig();
  const server = new HealthService();
  server.setStatus("shop.Cart", "SERVING");
  const at = grpcServer(rig, server);
  const check = { ...TIMES, kind: "grpc", rise: 1, fall: 1 } as const;
  const port = serveAt(rig, [at], { ...check, service: "shop.Cart" });
  const backend = () => [...port.balancer.backends][0]!;
  await until(() => backend().health === "well");
  server.setStatus("shop.Cart", "NOT_SERVING");
  rig.timers.advance(TIMES.intervalMs);
  await until(() => backend().health === "ill");
  assertMatch(backend().lastError!, /was answered NOT_SERVING/);
  serveAt(rig, [at], { ...check, service: "shop.Till" });
  await until(() => backend().health === "ill");
  assertMatch(backend().lastError!, /was answered NOT_FOUND/);
  const web = answering(rig, () => 200);
  serveAt(rig, [web.port], { ...check, service: "" });
  await until(() => backend().health === "ill");
});

Deno.test("what a gRPC server says of itself is no longer than a line", async () => {
  await using rig = new ProxyRig();
  const message = "\u202e\n" + "x".repeat(4_000);
  const at = grpcServer(rig, {
    methods: {
      "/grpc.health.v1.Health/Check": unaryMethod(
        () => Promise.reject(new GrpcError(StatusCode.UNAVAILABLE, message)),
        { messageBytesMax: 1_024 },
      ),
    },
  });
  const check = { ...TIMES, kind: "grpc", service: "" } as const;
  const port = serveAt(rig, [at], check);
  const backend = () => [...port.balancer.backends][0]!;
  await until(() => backend().health === "ill");
  const { lastError = "" } = backend();
  assertMatch(lastError, /^gRPC health .* UNAVAILABLE: \\u202e\\nxxx/);
  assert(lastError.length < 300, lastError);
});
