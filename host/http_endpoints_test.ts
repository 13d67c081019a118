import { assertEquals, assertStringIncludes } from "@std/assert";
import { adminHandler, healthHandler } from "./http_endpoints.ts";
import { listenHttp } from "./listeners.ts";
import { METRICS_CONTENT_TYPE, MetricsRegistry } from "./metrics.ts";

const metrics = new MetricsRegistry();
metrics.gauge({ name: "answer", help: "The answer." }).set(42);

Deno.test("the server's health port answers as Konnectivity's", async () => {
  let problem: string | undefined = "no connection to any proxy agent";
  const get = asker(healthHandler({
    metrics,
    style: "server",
    checks: [{ name: "agent-connected", problem: () => problem }],
  }));
  assertEquals(await get("/healthz"), [200, "ok"]);
  assertEquals(await get("/readyz"), [500, problem]);
  assertEquals(await get("/ready"), [500, problem]);
  assertEquals(await get("/readyz?verbose"), [
    500,
    "[+]ping ok\n[-]agent-connected failed: no connection to any proxy agent\n",
  ]);
  problem = undefined;
  assertEquals(await get("/readyz"), [200, "ok"]);
  assertEquals(await get("/nothing"), [404, "404 page not found\n"]);
});

Deno.test("the agent's health port answers as Konnectivity's", async () => {
  let problem: string | undefined = "no servers connected";
  const get = asker(healthHandler({
    metrics,
    style: "agent",
    checks: [{ name: "server-connected", problem: () => problem }],
  }));
  const list = "[+]ping ok\n[-]server-connected failed: no servers connected\n";
  assertEquals(await get("/readyz"), [503, list]);
  assertEquals(await get("/readyz?verbose"), [503, list]);
  problem = undefined;
  assertEquals(await get("/readyz"), [200, "ok"]);
  assertEquals(await get("/readyz?verbose"), [
    200,
    "[+]ping ok\n[+]server-connected ok\ncheck passed\n",
  ]);
});

Deno.test("admin ports serve metrics or tell where they are", async () => {
  const server = asker(adminHandler({ metrics }));
  assertStringIncludes((await server("/metrics"))[1], "answer 42\n");
  const [status, reason] = await server("/debug/pprof/profile");
  assertEquals(status, 404);
  assertStringIncludes(reason, "no profiling");
  const agent = adminHandler({ metrics: { healthPort: 8093 } });
  const moved = agent(new Request("http://node7:8094/metrics"));
  assertEquals(moved.status, 301);
  assertEquals(moved.headers.get("location"), "//node7:8093/metrics");
});

Deno.test("it works over a real port", async () => {
  const listener = listenHttp(
    { host: "127.0.0.1", port: 0 },
    healthHandler({ metrics, style: "agent", checks: [] }),
  );
  const response = await fetch(`http://127.0.0.1:${listener.port}/metrics`);
  assertEquals(response.headers.get("content-type"), METRICS_CONTENT_TYPE);
  assertStringIncludes(await response.text(), "# TYPE answer gauge\n");
  listener.close();
  await listener.finished;
});

function asker(handler: (request: Request) => Response) {
  return async (path: string): Promise<[number, string]> => {
    const response = handler(new Request(`http://localhost${path}`));
    return [response.status, await response.text()];
  };
}
