import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { certificates } from "../../tests/support/certificates/certificates.ts";
import {
  failure,
  FakeApiServer,
} from "../../tests/support/peers/fake_apiserver.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { until } from "../../tests/support/watch/event_loop.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { Credential, KubernetesAccess } from "./access.ts";
import { KubernetesClient, REQUEST_TIMEOUT_MS } from "./client.ts";
import { KubernetesError } from "./errors.ts";
import type { KubernetesObject } from "./objects.ts";
import { NeighbourConfigError } from "../tls_files.ts";

const NODES = "/api/v1/nodes";
const NODE = { metadata: { name: "edge1" } };

function accessTo(
  server: string,
  rest: Partial<KubernetesAccess> = {},
): KubernetesAccess {
  return {
    server,
    namespace: "default",
    authority: () => undefined,
    credential: () => Promise.resolve({ authorization: "Bearer t0" }),
    rejected: () => {},
    ...rest,
  };
}

function clientOf(
  access: KubernetesAccess,
  timers: FakeTimers | typeof systemTimers = systemTimers,
): KubernetesClient {
  return new KubernetesClient({
    access: () => access,
    timers,
    random: () => 0,
  });
}

Deno.test("an object is created, read, replaced and deleted", async () => {
  await using server = FakeApiServer.start();
  using client = clientOf(accessTo(server.url));
  await client.create(NODES, NODE);
  const read = await client.get<KubernetesObject>(`${NODES}/edge1`);
  assertEquals(read.metadata.name, "edge1");
  await client.replace(`${NODES}/edge1`, read);
  const conflict = await assertRejects(
    () => client.replace(`${NODES}/edge1`, read),
    KubernetesError,
  );
  assertEquals([conflict.code, conflict.reason], [409, "Conflict"]);
  await client.delete(`${NODES}/edge1`);
  const gone = await assertRejects(
    () => client.get(`${NODES}/edge1`),
    KubernetesError,
    "Cannot GET /api/v1/nodes/edge1: the API server answered 404 NotFound",
  );
  assertEquals(gone.code, 404);
  assertEquals(server.requests[0]!.authorization, "Bearer t0");
});

Deno.test("a deletion can insist on a version", async () => {
  await using server = FakeApiServer.start();
  using client = clientOf(accessTo(server.url));
  server.put(NODES, NODE);
  await assertRejects(
    () => client.delete(`${NODES}/edge1`, { resourceVersion: "1" }),
    KubernetesError,
    "409 Conflict",
  );
  const { resourceVersion } = server.find(`${NODES}/edge1`)!.metadata;
  await client.delete(`${NODES}/edge1`, { resourceVersion: resourceVersion! });
  assertEquals(server.find(`${NODES}/edge1`), undefined);
});

Deno.test("401 asks for a fresh credential, once", async () => {
  await using server = FakeApiServer.start();
  server.put(NODES, NODE);
  let token = 0;
  using client = clientOf(accessTo(server.url, {
    credential: () => Promise.resolve({ authorization: `Bearer t${token}` }),
    rejected: () => void token++,
  }));
  const unauthorized = () => failure(401, "Unauthorized", "Unauthorized");
  server.failNext(unauthorized);
  await client.get(`${NODES}/edge1`);
  assertEquals(server.requests.map(({ authorization }) => authorization), [
    "Bearer t0",
    "Bearer t1",
  ]);
  server.failNext(unauthorized, unauthorized);
  await assertRejects(
    () => client.get(`${NODES}/edge1`),
    KubernetesError,
    "check the token or certificate",
  );
  assertEquals(server.requests.length, 4);
});

// deno-fmt-ignore: a case is a line.
const REFUSED: readonly (readonly [name: string, answer: (url: string) => Response, says: string])[] = [
  ["403 names the verb's remedy", () => failure(403, "Forbidden", "cannot list nodes"),
    "403 Forbidden: cannot list nodes; grant this user"],
  ["an answer that is no JSON is the address's fault", () => new Response("<html>"), "the answer is no JSON"],
  ["a redirect is not followed: it would take the token along",
    (url) => Response.redirect(`${url}/elsewhere`, 302), "302"],
];

for (const [name, answer, says] of REFUSED) {
  Deno.test(`${name}, and nothing is repeated`, async () => {
    await using server = FakeApiServer.start();
    using client = clientOf(accessTo(server.url));
    server.failNext(() => answer(server.url));
    await assertRejects(() => client.get(NODES), KubernetesError, says);
    assertEquals(server.requests.length, 1);
  });
}

Deno.test("429 and Retry-After are waited for, as long as they say", async () => {
  await using server = FakeApiServer.start();
  const timers = new FakeTimers();
  using client = clientOf(accessTo(server.url), timers);
  const answered = Promise.withResolvers<void>();
  server.failNext(() => {
    answered.resolve();
    return failure(429, "TooManyRequests", "slow down", { "retry-after": "7" });
  });
  const creating = client.create(NODES, NODE);
  await answered.promise;
  await waitsFor(timers, 2);
  timers.advance(6_999);
  assertEquals(timers.pendingCount, 2, "it still waits");
  timers.advance(1);
  await creating;
  assertEquals(server.log, [`POST ${NODES}`, `POST ${NODES}`]);
});

Deno.test("a POST that may have worked is not repeated, a GET is", async () => {
  await using server = FakeApiServer.start();
  using client = clientOf(accessTo(server.url));
  const broken = () => failure(500, "InternalError", "etcd");
  server.failNext(broken);
  await assertRejects(() => client.create(NODES, NODE), KubernetesError, "500");
  server.failNext(broken);
  await client.get(NODES);
  server.failNext(broken);
  await client.create(NODES, NODE, { isRepeatable: true });
  assertEquals(server.requests.length, 5);
});

Deno.test("no answer in time is said so, with every timer gone", async () => {
  await using server = FakeApiServer.start();
  const timers = new FakeTimers();
  using client = clientOf(accessTo(server.url), timers);
  const asked = Promise.withResolvers<void>();
  const never = Promise.withResolvers<Response>();
  server.failNext(() => {
    asked.resolve();
    return never.promise;
  });
  const getting = client.get(NODES);
  await asked.promise;
  timers.advance(REQUEST_TIMEOUT_MS);
  const error = await assertRejects(() => getting, KubernetesError);
  assertEquals(error.code, 0);
  assertStringIncludes(error.message, `in ${REQUEST_TIMEOUT_MS} ms`);
  assertEquals(timers.pendingCount, 0);
  never.resolve(failure(500, "", ""));
});

Deno.test("nobody there is an error of code 0 after patient attempts", async () => {
  const free = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = free.addr;
  free.close();
  using client = clientOf(accessTo(`http://127.0.0.1:${port}`));
  const error = await assertRejects(
    () => client.get(NODES, { timeoutMs: 200 }),
    KubernetesError,
    "Cannot GET /api/v1/nodes: no answer from http://127.0.0.1",
  );
  assertEquals(error.code, 0);
});

Deno.test("the caller's signal ends a wait with its reason", async () => {
  await using server = FakeApiServer.start();
  const timers = new FakeTimers();
  using client = clientOf(accessTo(server.url), timers);
  const stopping = new AbortController();
  server.failNext(() => failure(503, "", "", { "retry-after": "5" }));
  const getting = client.get(NODES, { signal: stopping.signal });
  await waitsFor(timers, 2);
  stopping.abort(new Error("enough"));
  await assertRejects(() => getting, Error, "enough");
  assertEquals(timers.pendingCount, 0);
});

Deno.test("a new CA is used from the next request on", async () => {
  const { ca, otherCa, server: pair } = await certificates();
  await using server = FakeApiServer.start({ cert: pair.cert, key: pair.key });
  server.put(NODES, NODE);
  let authority = otherCa;
  const timers = new FakeTimers();
  const access = accessTo(`https://127.0.0.1:${server.port}`, {
    authority: () => authority,
  });
  using client = clientOf(access, timers);
  const getting = client.get(`${NODES}/edge1`);
  // The time for all attempts, and until the next one.
  await waitsFor(timers, 2);
  timers.advance(REQUEST_TIMEOUT_MS);
  const error = await assertRejects(() => getting, KubernetesError);
  assertStringIncludes(error.message, "give the CA of");
  authority = ca;
  await client.get(`${NODES}/edge1`);
});

Deno.test("a key that is none is named, and nothing is sent", async () => {
  await using server = FakeApiServer.start();
  const keyPair = { cert: "no", key: "no" };
  const credential: Credential = { keyPair };
  using client = clientOf(accessTo(server.url, {
    credential: () => Promise.resolve(credential),
  }));
  await assertRejects(
    () => client.get(NODES),
    NeighbourConfigError,
    "Cannot use the CA, certificate or key",
  );
  assertEquals(server.requests, []);
});

Deno.test("requests beyond the rate wait, and those beyond patience are refused", async () => {
  await using server = FakeApiServer.start();
  const timers = new FakeTimers();
  using client = new KubernetesClient({
    access: () => accessTo(server.url),
    timers,
    random: () => 0,
    rate: { perSecond: 1, burst: 2 },
  });
  await client.get(NODES);
  await client.get(NODES);
  const third = client.get(NODES);
  await waitsFor(timers, 2);
  assertEquals(server.requests.length, 2);
  await assertRejects(
    () => client.get(NODES, { timeoutMs: 500 }),
    KubernetesError,
    "too many requests wait",
  );
  timers.advance(1000);
  await third;
  assert(server.requests.length === 3);
});

/** Until so many timers are set: a request is waiting, and its deadline. */
async function waitsFor(timers: FakeTimers, count: number): Promise<void> {
  await until(() => timers.pendingCount >= count);
}
