import { assertEquals, assertStringIncludes } from "@std/assert";
import { type CpuProfile, Profiler, profileRoutes } from "./profile_routes.ts";
import { adminHandler } from "./http_endpoints.ts";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";

/** Whose profiles are there when the test says so. */
class FakeProfiler extends Profiler {
  readonly profile = Promise.withResolvers<CpuProfile>();
  readonly asked: number[] = [];
  #isTaking = false;

  override get isBusy(): boolean {
    return this.#isTaking;
  }

  override cpu(durationMs: number): Promise<CpuProfile> {
    this.asked.push(durationMs);
    this.#isTaking = true;
    return this.profile.promise;
  }

  override heap(): string {
    throw new Error("no space left on device");
  }
}

function open() {
  const profiler = new FakeProfiler();
  const handler = adminHandler(
    new MetricRegistry(),
    profileRoutes(profiler),
  );
  const get = (path: string, method = "GET") =>
    handler(new Request(`http://127.0.0.1:8095${path}`, { method }));
  return { profiler, get };
}

Deno.test("a CPU profile is asked for by seconds, one at a time", async () => {
  const { profiler, get } = open();
  const answer = get("/debug/pprof/profile?seconds=5");
  assertEquals(profiler.asked, [5_000]);
  assertEquals(get("/debug/pprof/profile").status, 409);
  const profile = { nodes: [{ id: 1 }], startTime: 1, endTime: 2, samples: [] };
  profiler.profile.resolve(profile);
  assertEquals(await answer.json(), profile);
});

Deno.test("what is no number of seconds is refused", () => {
  const { profiler, get } = open();
  for (const seconds of ["0", "301", "1e2", "-1", "x", ""]) {
    const { status } = get(`/debug/pprof/profile?seconds=${seconds}`);
    assertEquals(status, 400, seconds);
  }
  assertEquals(profiler.asked, []);
});

Deno.test("a heap that cannot be written says why; HEAD writes none", async () => {
  const { get } = open();
  const answer = get("/debug/pprof/heap");
  assertEquals(answer.status, 500);
  assertStringIncludes(await answer.text(), "no space left on device");
  assertEquals(get("/debug/pprof/heap", "HEAD").status, 200);
});

Deno.test("the index names what there is, and that it is not pprof's", async () => {
  const text = await open().get("/debug/pprof/").text();
  assertStringIncludes(text, "/debug/pprof/profile?seconds=30");
  assertStringIncludes(text, "not pprof's");
});
