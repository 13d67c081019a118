/**
 * What health and admin ports answer, on either side: Konnectivity's paths,
 * statuses and bodies.
 *
 * @module
 */

import { ADMIN_API } from "../../proto/admin/api.ts";
import type { HttpHandler, HttpPeer } from "./http_port.ts";
import { jsonPieces, slicedText } from "./sliced_text.ts";
import {
  type MetricRegistry,
  METRICS_CONTENT_TYPE,
  OPENMETRICS_CONTENT_TYPE,
} from "../../platform/metrics/metrics.ts";

/** One condition of readiness. */
export interface ReadinessCheck {
  /** Such as `server-connected`. */
  readonly name: string;
  /** Why the condition is not met, or `undefined` when it is. */
  problem(): string | undefined;
}

/** What a health port needs. */
export interface HealthOptions {
  readonly metrics: MetricRegistry;
  readonly checks: readonly ReadinessCheck[];
  /** What operators should look at although all is ready; for `?verbose`. */
  readonly notes?: () => readonly string[];
  /**
   * How `/readyz` reports a problem: Konnectivity's server answers 500 and the
   * bare problem, its agent 503 and the list of checks.
   */
  readonly style: "server" | "agent";
}

/** Answers one request. */
export type HttpRouter = (request: Request, peer?: HttpPeer) => Response;

/**
 * @param api Answers paths below `/v1`. @param others Answers all other paths.
 */
export function withApi(api: HttpHandler, others: HttpHandler): HttpHandler {
  return (request, peer) => {
    const { pathname } = new URL(request.url);
    return pathname === ADMIN_API || pathname.startsWith(`${ADMIN_API}/`)
      ? api(request, peer)
      : others(request, peer);
  };
}

/** `/healthz`, `/readyz` (and `/ready`), `/metrics`. */
export function healthHandler(options: HealthOptions): HttpRouter {
  return router(healthRoutes(options));
}

/**
 * Everything on one port, as yurttunnel's agents have it.
 *
 * @param more Further answers there, by path.
 */
export function metaHandler(
  options: HealthOptions,
  more: Routes = {},
): HttpRouter {
  return router({ ...healthRoutes(options), ...PROFILE_ROUTES, ...more });
}

/**
 * `/metrics` and, honestly, no profiles.
 *
 * @param metricsAt The registry, or the port that has them (the agent's admin
 *   port redirects, as upstream's does).
 * @param more What else is answered there, by path.
 */
export function adminHandler(
  metricsAt: MetricRegistry | { readonly healthPort: number },
  more: Routes = {},
): HttpRouter {
  return router({
    "/metrics": (url, request) =>
      "healthPort" in metricsAt
        ? redirect(`//${url.hostname}:${metricsAt.healthPort}/metrics`)
        : metrics(metricsAt, request),
    ...PROFILE_ROUTES,
    ...more,
  });
}

/** Answers by path. */
export type Routes = Readonly<
  Record<string, (url: URL, request: Request, peer?: HttpPeer) => Response>
>;

function healthRoutes(options: HealthOptions): Routes {
  return {
    "/healthz": () => plain(200, "ok"),
    "/readyz": (url) => readiness(options, url),
    "/ready": (url) => readiness(options, url),
    "/metrics": (_url, request) => metrics(options.metrics, request),
  };
}

const PROFILE_ROUTES: Routes = {
  "/debug/pprof": noProfiles,
  "/debug/pprof/": noProfiles,
  "/debug/pprof/profile": noProfiles,
  "/debug/pprof/symbol": noProfiles,
  "/debug/pprof/trace": noProfiles,
};

function router(routes: Routes): HttpRouter {
  return (request, peer) => {
    const url = new URL(request.url);
    const route = Object.hasOwn(routes, url.pathname)
      ? routes[url.pathname]
      : undefined;
    if (route === undefined) return plain(404, "404 page not found\n");
    if (request.method !== "GET" && request.method !== "HEAD") {
      return plain(405, "only GET and HEAD are answered here\n");
    }
    return route(url, request, peer);
  };
}

function readiness(
  { checks, notes, style }: HealthOptions,
  url: URL,
): Response {
  const results = checks.map(({ name, problem }) => ({
    name,
    problem: problem(),
  }));
  const problems = results.flatMap(({ problem }) => problem ?? []);
  const isReady = problems.length === 0;
  const status = isReady ? 200 : style === "server" ? 500 : 503;
  if (!url.searchParams.has("verbose")) {
    if (isReady) return plain(status, "ok");
    if (style === "server") return plain(status, problems.join("; "));
  }
  const lines = results.map(({ name, problem }) =>
    problem === undefined
      ? `[+]${name} ok\n`
      : `[-]${name} failed: ${problem}\n`
  );
  for (const note of notes?.() ?? []) lines.push(`[!]${note}\n`);
  const summary = isReady ? "check passed\n" : "";
  return plain(status, `[+]ping ok\n${lines.join("")}${summary}`);
}

/** What a scraper that reads exemplars accepts. */
const OPENMETRICS = "application/openmetrics-text";

function metrics(registry: MetricRegistry, { headers }: Request): Response {
  // Only where it says more: it is stricter, and readers of it are fewer.
  const accepted = headers.get("accept") ?? "";
  if (registry.hasExemplars && accepted.includes(OPENMETRICS)) {
    return new Response(slicedText(registry.pieces("openmetrics")), {
      headers: { "content-type": OPENMETRICS_CONTENT_TYPE },
    });
  }
  return new Response(slicedText(registry.pieces()), {
    headers: { "content-type": METRICS_CONTENT_TYPE },
  });
}

function noProfiles(): Response {
  return plain(
    404,
    "There are no Go profiles here: this is not a Go program. Servers and " +
      "agents with --enable-profiling give V8's on their admin port.\n",
  );
}

function redirect(location: string): Response {
  return new Response(null, { status: 301, headers: { location } });
}

/** Data, for programs; lists are asked for items as they are sent. */
export function jsonAnswer(value: unknown): Response {
  return new Response(slicedText(jsonPieces(value)), {
    headers: { "content-type": "application/json" },
  });
}

/** An answer for people. */
export function plain(status: number, body: string): Response {
  return new Response(body, {
    status,
    headers: { "content-type": "text/plain; charset=utf-8" },
  });
}
