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

Deno.test("/healthz is ok as long as the process answers", async () => {
  const response = get(health("nobody there"), "/healthz");
  assertEquals([response.status, await response.text()], [200, "ok"]);
});

Deno.test("/readyz says ok, or why not", async () => {
  for (const path of ["/readyz", "/ready"]) {
    const ready = get(health(), path);
    assertEquals([ready.status, await ready.text()], [200, "ok"]);
    const not = get(
      health("no connection to any proxy agent", "server"),
      path,
    );
    assertEquals([not.status, await not.text()], [
      500,
      "no connection to any proxy agent",
    ]);
  }
});

Deno.test("an agent that is not ready lists its checks, asked for or not", async () => {
  const not = get(health("no servers connected"), "/readyz");
  assertEquals([not.status, await not.text()], [
    503,
    "[+]ping ok\n[-]server-connected failed: no servers connected\n",
  ]);
});

Deno.test("/readyz?verbose lists the checks as upstream's agent does", async () => {
  const ready = get(health(), "/readyz?verbose");
  assertEquals(
    await ready.text(),
    "[+]ping ok\n[+]server-connected ok\ncheck passed\n",
  );
  const not = get(health("no servers connected"), "/readyz?verbose");
  assertEquals([not.status, await not.text()], [
    503,
    "[+]ping ok\n[-]server-connected failed: no servers connected\n",
  ]);
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
