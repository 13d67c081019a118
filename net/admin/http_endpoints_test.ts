import { assertEquals, assertStringIncludes } from "@std/assert";
import { adminHandler, healthHandler } from "./http_endpoints.ts";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";

function get(handler: (request: Request) => Response, path: string) {
  return handler(new Request(`http://127.0.0.1:8092${path}`));
}

function health(problem?: string, style: "server" | "agent" = "agent") {
  const metrics = new MetricRegistry();
  metrics.series("gauge", "g", "G.").set(1);
  const checks = [{ name: "server-connected", problem: () => problem }];
  return healthHandler({ metrics, checks, style });
}

Deno.test("health and readiness are said as upstream says them", async () => {
  const lacking = "no servers connected";
  const listed = `[+]ping ok\n[-]server-connected failed: ${lacking}\n`;
  const whole = "[+]ping ok\n[+]server-connected ok\ncheck passed\n";
  // deno-fmt-ignore: the columns are the point.
  const cases = [
    ["/healthz",        lacking,   "agent",  200, "ok"],
    ["/readyz",         undefined, "agent",  200, "ok"],
    ["/ready",          undefined, "agent",  200, "ok"],
    ["/readyz",         lacking,   "server", 500, lacking],
    ["/ready",          lacking,   "server", 500, lacking],
    ["/readyz",         lacking,   "agent",  503, listed],
    ["/readyz?verbose", undefined, "agent",  200, whole],
    ["/readyz?verbose", lacking,   "agent",  503, listed],
  ] as const;
  for (const [path, problem, style, status, text] of cases) {
    const answer = get(health(problem, style), path);
    assertEquals([answer.status, await answer.text()], [status, text], path);
  }
});

Deno.test("what should be looked at is shown to who asks, and stops nobody", async () => {
  const checks = [{ name: "server-connected", problem: () => undefined }];
  const handler = healthHandler({
    metrics: new MetricRegistry(),
    checks,
    notes: () => ["frontend: the certificate expires in 5 days"],
    style: "server",
  });
  const bare = get(handler, "/readyz");
  assertEquals([bare.status, await bare.text()], [200, "ok"]);
  const verbose = get(handler, "/readyz?verbose");
  assertEquals([verbose.status, await verbose.text()], [
    200,
    "[+]ping ok\n[+]server-connected ok\n" +
    "[!]frontend: the certificate expires in 5 days\ncheck passed\n",
  ]);
});

Deno.test("/metrics is Prometheus text", async () => {
  const response = get(health(), "/metrics");
  assertStringIncludes(response.headers.get("content-type")!, "version=0.0.4");
  assertStringIncludes(await response.text(), "g 1\n");
});

Deno.test("other paths are 404, other methods 405", () => {
  assertEquals(get(health(), "/constructor").status, 404);
  const post = new Request("http://x/healthz", { method: "POST" });
  assertEquals(health()(post).status, 405);
});

Deno.test("the agent's admin port redirects to the metrics, the server's has them", () => {
  const agent = get(adminHandler({ healthPort: 8093 }), "/metrics");
  assertEquals([agent.status, agent.headers.get("location")], [
    301,
    "//127.0.0.1:8093/metrics",
  ]);
  assertEquals(get(adminHandler(new MetricRegistry()), "/metrics").status, 200);
});

Deno.test("profiles are refused with a reason", async () => {
  const response = get(adminHandler(new MetricRegistry()), "/debug/pprof/");
  assertEquals(response.status, 404);
  assertStringIncludes(await response.text(), "not a Go program");
});
