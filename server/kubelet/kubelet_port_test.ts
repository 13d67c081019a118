import { assertEquals, assertMatch } from "@std/assert";
import { ConnectionLimiter } from "../../net/admission/connection_limiter.ts";
import { limitPlan } from "../../net/admission/connection_limits.ts";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { ConduitStream } from "../../net/stream/conduit_stream.ts";
import { Credentials } from "../../net/tls/trust/credentials.ts";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import {
  EXCHANGES_MAX,
  KubeletMetrics,
  KubeletPort,
  requestKindOf,
} from "./kubelet_port.ts";

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
  const metrics = new KubeletMetrics(registry);
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
