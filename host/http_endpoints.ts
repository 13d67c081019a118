/**
 * What the health and admin ports answer, in Konnectivity's bodies.
 *
 * @module
 */

import { METRICS_CONTENT_TYPE, type MetricsRegistry } from "./metrics.ts";

/** One thing that must be so for the process to be ready. */
export interface ReadinessCheck {
  /** Such as `server-connected`. */
  readonly name: string;
  /** @returns What is missing; `undefined` when all is well. */
  problem(): string | undefined;
}

/** What a health port answers with. */
export interface HealthOptions {
  readonly metrics: MetricsRegistry;
  readonly checks: readonly ReadinessCheck[];
  /**
   * How `/readyz` says no: Konnectivity's server answers 500 and the bare
   * problem, its agent 503 and the list of checks.
   */
  readonly style: "server" | "agent";
}

/** What an admin port answers with. */
export interface AdminOptions {
  /** Served here (server), or where they are to be found (agent). */
  readonly metrics: MetricsRegistry | { readonly healthPort: number };
}

type Handler = (request: Request) => Response;

/** `/healthz`, `/readyz`, `/ready` and `/metrics`. */
export function healthHandler(options: HealthOptions): Handler {
  const ready = (url: URL) => readiness(options, url.searchParams);
  return route({
    "/healthz": () => plain(200, "ok"),
    "/readyz": ready,
    "/ready": ready,
    "/metrics": () => metricsResponse(options.metrics),
  });
}

/** `/metrics`, and the reason why there is no profiling. */
export function adminHandler(options: AdminOptions): Handler {
  const { metrics } = options;
  return route({
    "/metrics": (url) => {
      if (!("healthPort" in metrics)) return metricsResponse(metrics);
      const location = `//${url.hostname}:${metrics.healthPort}/metrics`;
      return new Response(null, { status: 301, headers: { location } });
    },
  });
}

function route(
  pages: Readonly<Record<string, (url: URL) => Response>>,
): Handler {
  return (request) => {
    const url = new URL(request.url);
    const page = Object.hasOwn(pages, url.pathname)
      ? pages[url.pathname]
      : undefined;
    if (page !== undefined) return page(url);
    if (/^\/debug\/pprof(\/|$)/.test(url.pathname)) {
      return plain(
        404,
        "no profiling here: pprof is Go's; use the V8 inspector instead\n",
      );
    }
    return plain(404, "404 page not found\n");
  };
}

function readiness(options: HealthOptions, query: URLSearchParams): Response {
  const results = options.checks.map((check) => ({
    name: check.name,
    problem: check.problem(),
  }));
  const failed = results.filter((result) => result.problem !== undefined);
  if (options.style === "server" && !query.has("verbose")) {
    return failed.length === 0
      ? plain(200, "ok")
      : plain(500, failed.map((result) => result.problem).join("; "));
  }
  if (failed.length === 0 && !query.has("verbose")) return plain(200, "ok");
  const lines = results.map(({ name, problem }) =>
    problem === undefined
      ? `[+]${name} ok\n`
      : `[-]${name} failed: ${problem}\n`
  );
  const list = `[+]ping ok\n${lines.join("")}`;
  if (failed.length === 0) return plain(200, `${list}check passed\n`);
  return plain(options.style === "server" ? 500 : 503, list);
}

function metricsResponse(metrics: MetricsRegistry): Response {
  return new Response(metrics.write(), {
    headers: { "content-type": METRICS_CONTENT_TYPE },
  });
}

function plain(status: number, body: string): Response {
  return new Response(body, {
    status,
    headers: { "content-type": "text/plain; charset=utf-8" },
  });
}
