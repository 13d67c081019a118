import { assertEquals, assertMatch } from "@std/assert";
import { ConduitStream } from "../../net/stream/conduit_stream.ts";
import {
  INTERIM_MAX,
  REQUEST_HEAD_BYTES_MAX,
  RESPONSE_HEAD_BYTES_MAX,
} from "../../net/http1/head.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { PromisedReads } from "../../tests/support/watch/promised_reads.ts";
import { kubeletError, type KubeletRefusal } from "./exchange_errors.ts";
import {
  BODY_IDLE_TIMEOUT_MS,
  EXCESS_BYTES_MAX,
  type ExchangeOptions,
  HANG_UP_MS,
  KubeletExchange,
  REQUEST_HEAD_TIMEOUT_MS,
  SWITCH_TIMEOUT_MS,
} from "./kubelet_exchange.ts";
import { ConnectionLimiter } from "../../net/admission/connection_limiter.ts";
import { limitPlan } from "../../net/admission/connection_limits.ts";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { Credentials } from "../../net/tls/trust/credentials.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import {
  countRequests,
  EXCHANGES_MAX,
  KubeletPort,
  requestKindOf,
} from "./kubelet_port.ts";

/** An exchange with both its ends in a test's hands. */
class Rig {
  readonly timers = new FakeTimers();
  readonly caller: ConduitProbe;
  readonly refusals: KubeletRefusal[] = [];
  /** Method and path when it began, the status when it ended. */
  readonly seen: (string | number)[] = [];
  readonly running: Promise<void>;
  readonly #exchange: KubeletExchange;
  #kubelet = Promise.withResolvers<ConduitProbe>();

  constructor(connect?: ExchangeOptions["connect"]) {
    const [near, far] = MemoryConduit.pair();
    this.caller = new ConduitProbe(far);
    this.#exchange = new KubeletExchange(new ConduitStream(near, "caller"), {
      timers: this.timers,
      routing: { localhostPorts: new Set(), isServed: () => true },
      connect: connect ?? (() => {
        const [ours, kubelets] = MemoryConduit.pair();
        this.#kubelet.resolve(new ConduitProbe(kubelets));
        return Promise.resolve(new ConduitStream(ours, "kubelet"));
      }),
      observer: {
        began: ({ method, path }) => this.seen.push(`${method} ${path}`),
        ended: (_request, status) => this.seen.push(status),
        refused: (_caller, refusal) => this.refusals.push(refusal),
      },
    });
    this.running = this.#exchange.run();
  }

  get kubelet(): Promise<ConduitProbe> {
    return this.#kubelet.promise;
  }

  stop(): void {
    this.#exchange.stop("enough");
  }
}

const GET = "GET /pods HTTP/1.1\r\nHost: a:1\r\n\r\n";
const POST = "POST /x HTTP/1.1\r\nHost: a:1\r\nContent-Length: 10\r\n\r\n";
const UPGRADE = "GET /exec HTTP/1.1\r\nHost: a:1\r\nConnection: Upgrade\r\n" +
  "Upgrade: SPDY/3.1\r\n\r\n";

/** Ends both connections as peers do. */
async function hangUp(rig: Rig): Promise<void> {
  (await rig.kubelet).finish();
  rig.caller.finish();
  await rig.running;
}

Deno.test("an exchange passes a request and its answer on, and ends both connections", async () => {
  const rig = new Rig();
  rig.caller.send(GET);
  const kubelet = await rig.kubelet;
  kubelet.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more");
  await rig.caller.ended;
  await hangUp(rig);
  assertEquals(
    kubelet.text,
    GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"),
  );
  assertMatch(rig.caller.text, /\r\n\r\nok$/);
  assertEquals(rig.seen, ["GET /pods", 200]);
  assertEquals([await rig.caller.closed, await kubelet.closed], [
    { kind: "clean" },
    { kind: "clean" },
  ]);
  assertEquals(rig.timers.pendingCount, 0);
});

Deno.test("after a change of protocol nothing is read by promises", async () => {
  const rig = new Rig();
  rig.caller.send(UPGRADE);
  const kubelet = await rig.kubelet;
  kubelet.send(
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n" +
      "Upgrade: SPDY/3.1\r\n\r\n",
  );
  await settled();
  using reads = new PromisedReads();
  const much = "x".repeat(300_000);
  rig.caller.send(much);
  kubelet.send(much);
  rig.caller.finish();
  kubelet.finish();
  await rig.running;
  assertEquals(
    [kubelet.text.endsWith(much), rig.caller.text.endsWith(much), reads.count],
    [true, true, 0],
  );
});

Deno.test("an answer leaves as it comes, not when it is whole", async () => {
  const rig = new Rig();
  rig.caller.send(GET);
  const kubelet = await rig.kubelet;
  await kubelet.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  assertMatch(rig.caller.text, /\r\n\r\n$/);
  for (const chunk of ["1\r\na\r\n", "1\r\nb"]) {
    await kubelet.send(chunk);
    assertEquals(rig.caller.text.endsWith(chunk), true);
  }
  kubelet.send("\r\n0\r\n\r\n");
  await rig.caller.ended;
  await hangUp(rig);
});

Deno.test("a caller that leaves takes the kubelet's connection with it, answered or not", async () => {
  for (const answer of ["", "HTTP/1.1 200 OK\r\n\r\nfirst"]) {
    const rig = new Rig();
    rig.caller.send(GET);
    const kubelet = await rig.kubelet;
    await kubelet.send(answer);
    rig.caller.finish();
    assertEquals((await kubelet.closed).kind, "reset");
    await rig.running;
    assertEquals(rig.refusals, []);
    assertEquals(rig.seen[1], answer === "" ? 0 : 200);
  }
});

Deno.test("a caller that reads nothing and leaves is not written to for ever", async () => {
  const rig = new Rig();
  rig.caller.stopReading();
  rig.caller.send(GET);
  const kubelet = await rig.kubelet;
  await kubelet.send("HTTP/1.1 200 OK\r\n\r\n" + "x".repeat(300_000));
  assertEquals(kubelet.queuedBytes > 0, true);
  rig.caller.finish();
  await rig.running;
  assertEquals((await kubelet.closed).kind, "reset");
});

Deno.test("a caller that leaves while its kubelet is looked for is not waited for", async () => {
  let aborted = false;
  const rig = new Rig((_route, _caller, signal) =>
    new Promise((_, reject) =>
      signal.addEventListener("abort", () => {
        aborted = true;
        reject(signal.reason);
      })
    )
  );
  await rig.caller.send(GET);
  rig.caller.reset("gone");
  await rig.running;
  assertEquals(aborted, true);
});

Deno.test("half a body is never passed for a whole one", async () => {
  const rig = new Rig();
  rig.caller.send(`${POST}12345`);
  const kubelet = await rig.kubelet;
  await settled();
  rig.caller.finish();
  assertEquals((await kubelet.closed).kind, "reset");
  assertEquals(kubelet.hasEnded, false);
  await rig.running;
});

Deno.test("an answer before the end of the body is passed on, too", async () => {
  const rig = new Rig();
  rig.caller.send(`${POST}12`);
  const kubelet = await rig.kubelet;
  kubelet.send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
  await rig.caller.ended;
  await hangUp(rig);
  assertMatch(rig.caller.text, /^HTTP\/1\.1 401 /);
});

// --- Limits and deadlines ----------------------------------------------------------

Deno.test("a head that comes byte by byte has the same time as any other", async () => {
  const rig = new Rig();
  for (const byte of "GET / HTTP") {
    await rig.caller.send(byte);
    rig.timers.advance(REQUEST_HEAD_TIMEOUT_MS / 11);
  }
  assertEquals(rig.caller.text, "");
  await rig.timers.advance(REQUEST_HEAD_TIMEOUT_MS / 11);
  assertMatch(rig.caller.text, /^HTTP\/1\.1 408 /);
  rig.timers.advance(HANG_UP_MS);
  await rig.running;
  assertEquals((await rig.caller.closed).kind, "reset");
});

const CHUNKED = POST.replace(
  "Content-Length: 10",
  "Transfer-Encoding: chunked",
);

/** What a caller says, what its kubelet does, and which status the caller gets. */
// deno-fmt-ignore: a case is a line.
const REFUSED: readonly (readonly [
  name: string, says: string, status: number, answer?: string, silentMs?: number,
])[] = [
  ["a body in broken chunks is refused", `${CHUNKED}zz\r\n`, 400],
  ["a head that is too large is refused", `GET / HTTP/1.1\r\nX: ${"x".repeat(REQUEST_HEAD_BYTES_MAX)}`, 431],
  ["a body that stops coming is not waited for", `${POST}1`, 408, "", BODY_IDLE_TIMEOUT_MS],
  ["a kubelet that does not say whether it changes the protocol is not waited for",
    UPGRADE, 504, "", SWITCH_TIMEOUT_MS],
  ["an answer's head that is too large is the kubelet's fault", GET, 502,
    `HTTP/1.1 200 OK\r\nX: ${"x".repeat(RESPONSE_HEAD_BYTES_MAX)}`],
];

for (const [name, says, status, answer, silentMs = 0] of REFUSED) {
  Deno.test(name, async () => {
    const rig = new Rig();
    await rig.caller.send(says);
    if (answer !== undefined) await (await rig.kubelet).send(answer);
    rig.timers.advance(silentMs);
    await rig.caller.ended;
    rig.caller.finish();
    await rig.running;
    assertMatch(rig.caller.text, new RegExp(`^HTTP/1\\.1 ${status} `));
    if (status === 431) return; // Nobody was dialed.
    assertEquals((await (await rig.kubelet).closed).kind, "reset");
  });
}

Deno.test("an answer may take as long as its caller waits: a quiet log has no head", async () => {
  const rig = new Rig();
  rig.caller.send(GET);
  const kubelet = await rig.kubelet;
  await settled();
  rig.timers.advance(24 * 3600_000);
  kubelet.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
  await rig.caller.ended;
  await hangUp(rig);
  assertMatch(rig.caller.text, /late$/);
});

Deno.test("who sends on and on behind a request is cut off", async () => {
  const rig = new Rig();
  rig.caller.send(GET);
  const kubelet = await rig.kubelet;
  await rig.caller.send("x".repeat(EXCESS_BYTES_MAX));
  assertEquals(kubelet.end, undefined);
  rig.caller.send("x");
  assertEquals((await kubelet.closed).kind, "reset");
  rig.caller.finish();
  await rig.running;
  assertMatch(rig.caller.text, /^HTTP\/1\.1 400 /);
});

Deno.test("interim answers pass, up to a number", async () => {
  const interim = "HTTP/1.1 103 Early\r\n\r\n";
  for (const count of [INTERIM_MAX, INTERIM_MAX + 1]) {
    const rig = new Rig();
    rig.caller.send(GET);
    const kubelet = await rig.kubelet;
    const final = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    kubelet.send(interim.repeat(count) + final);
    await Promise.race([rig.caller.ended, rig.caller.closed]);
    rig.caller.finish();
    if (count === INTERIM_MAX) kubelet.finish();
    await rig.running;
    assertEquals(rig.seen[1], count === INTERIM_MAX ? 200 : 502);
  }
});

Deno.test("who does not hang up after an answer is not waited for", async () => {
  const rig = new Rig();
  rig.caller.send(GET);
  const kubelet = await rig.kubelet;
  kubelet.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  await rig.caller.ended;
  rig.timers.advance(HANG_UP_MS);
  await rig.running;
  assertEquals((await rig.caller.closed).kind, "reset");
  assertEquals((await kubelet.closed).kind, "reset");
});

Deno.test("stop() ends an exchange wherever it is", async () => {
  for (const said of ["", "GET /", GET, `${POST}1`, UPGRADE]) {
    const rig = new Rig();
    await rig.caller.send(said);
    rig.stop();
    await rig.running;
    assertEquals((await rig.caller.closed).kind, "reset");
    assertEquals(rig.caller.text, "");
  }
});

// deno-fmt-ignore: the columns are the point.
const DIAL_STATUS = [
  ["no-agent", "No agent available",            502],
  ["refused",  "refused by the server's rule",  403],
  ["timeout",  "timed out",                     504],
  ["endpoint", "dial tcp: connection refused",  502],
  ["endpoint", "dial tcp 10.0.0.1:1: i/o timeout", 504],
  ["link-lost", "the link was lost",            502],
] as const;

for (const [reason, message, status] of DIAL_STATUS) {
  Deno.test(`a dial that fails (${reason}: ${message}) is ${status}`, async () => {
    const rig = new Rig(() =>
      Promise.reject(
        kubeletError("the kubelet of a", new DialError(reason, message)),
      )
    );
    rig.caller.send(GET);
    await rig.caller.ended;
    rig.caller.finish();
    await rig.running;
    const sentence = `Cannot reach the kubelet of a: ${message}`;
    assertEquals(
      rig.caller.text.startsWith(`HTTP/1.1 ${status} ${sentence}`),
      true,
    );
    assertEquals(rig.refusals, [{ status, message: sentence }]);
  });
}

/** A port that nobody reaches: connections are handed to it. */
function openPort(): KubeletPort {
  const timers = new FakeTimers();
  const plan = limitPlan();
  return new KubeletPort({
    address: { hostname: "127.0.0.1", port: 0 },
    callerCaFile: "none",
    localhostPorts: [],
  }, {
    log: new RecordedLog(),
    timers,
    metrics: new MetricRegistry(),
    tls: { minVersion: "TLSv1.3" },
    limiter: new ConnectionLimiter({ plan, clock: timers, reached: () => {} }),
    dial: () => ({ cancel: () => {} }),
    isServed: () => true,
    callers: Credentials.load({}),
    kubelets: Credentials.load({}),
    turnedAway: () => {},
  });
}

Deno.test("one connection too many is told so, and those before it stay", async () => {
  const port = openPort();
  const probes: ConduitProbe[] = [];
  const serve = () => {
    const [near, far] = MemoryConduit.pair();
    probes.push(new ConduitProbe(far));
    return port.serve(new ConduitStream(near, "caller"));
  };
  const running = Array.from({ length: EXCHANGES_MAX }, serve);
  await serve();
  await settled();
  assertMatch(probes.at(-1)!.text, /^HTTP\/1\.1 503 .*more than 2000 requests/);
  assertEquals(probes[0]!.end, undefined);
  port.stop("the test is over");
  await Promise.all(running);
});

Deno.test("what is counted has few labels, whatever callers write", () => {
  const registry = new MetricRegistry();
  const metrics = countRequests(registry);
  const paths = ["/exec/a/b/c", "/pods", "/", "/x".repeat(100), '/a"b'];
  for (const path of [...paths, ...paths]) {
    metrics.began(path);
    metrics.ended(path, 404);
  }
  metrics.began("/pods");
  metrics.ended("/pods", 0);
  assertEquals(paths.map(requestKindOf), [
    "exec",
    "pods",
    "other",
    "other",
    "other",
  ]);
  const text = registry.expose();
  const lines = text.match(/^tunnel_server_kubelet_requests_total.*$/gm);
  assertEquals(lines, [
    'tunnel_server_kubelet_requests_total{kind="exec",status="4xx"} 2',
    'tunnel_server_kubelet_requests_total{kind="pods",status="4xx"} 2',
    'tunnel_server_kubelet_requests_total{kind="other",status="4xx"} 6',
    'tunnel_server_kubelet_requests_total{kind="pods",status="none"} 1',
  ]);
});
