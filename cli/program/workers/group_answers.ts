/**
 * What the parent of several workers answers for all of them: whether the
 * program is ready, and its metrics, where each worker's series have the label
 * `worker`. All else each worker answers by itself.
 *
 * @module
 */

import { plain } from "../../../net/admin/http_endpoints.ts";
import {
  type MetricRegistry,
  METRICS_CONTENT_TYPE,
} from "../../../platform/metrics/metrics.ts";
import type { WorkerProcess } from "./worker_process.ts";

/** The workers that are asked. */
export interface Workers {
  /** Those that are up. */
  readonly workers: readonly Pick<
    WorkerProcess,
    "index" | "isSilent" | "ask"
  >[];
  /** How many there should be. */
  readonly count: number;
  /** How many have died and were replaced. */
  readonly restarts: number;
}

/** One worker's report about itself. */
interface Said {
  readonly worker: number;
  readonly status: number;
  readonly text: string;
}

export class GroupAnswers {
  #of: Workers | undefined;

  /** @param own Of the parent. */
  constructor(private readonly own: MetricRegistry) {
    own.computed(
      "gauge",
      "tunnel_workers",
      "Workers that are up.",
      () => this.#of?.workers.length ?? 0,
    );
    own.computed(
      "counter",
      "tunnel_worker_restarts_total",
      "Workers that have ended and were replaced.",
      () => this.#of?.restarts ?? 0,
    );
  }

  /** From now on these workers are asked. */
  open(workers: Workers): void {
    this.#of = workers;
  }

  async to(
    { method, url }: Pick<Request, "method" | "url">,
  ): Promise<Response> {
    if (method !== "GET" && method !== "HEAD") {
      return plain(405, "only GET and HEAD are answered here\n");
    }
    const { pathname, searchParams } = new URL(url);
    switch (pathname) {
      case "/healthz":
        return plain(200, "ok");
      case "/readyz":
      case "/ready":
        return await this.#ready(searchParams.has("verbose"));
      case "/metrics":
        return await this.#metrics();
    }
    return plain(
      404,
      "404 page not found: with --workers each worker answers this on its " +
        "admin socket\n",
    );
  }

  /** Ready while one worker is: callers reach those that are. */
  async #ready(isVerbose: boolean): Promise<Response> {
    if (this.#of === undefined) return plain(503, "the workers are starting");
    const path = isVerbose ? "/readyz?verbose" : "/readyz";
    const asking = this.#ask(path);
    // Probes wait a second, which one that is frozen must not cost.
    const first = isVerbose ? undefined : await firstReady(asking);
    if (first !== undefined) return plain(200, first.text);
    const said = (await Promise.all(asking)).flat();
    const unready = said.filter((one) => !isGood(one));
    const shown = said.find(isGood) ?? unready[0];
    if (shown === undefined) return plain(503, "no worker answers");
    const { count } = this.#of;
    const missing = count - (said.length - unready.length);
    if (!isVerbose || missing === 0) return plain(shown.status, shown.text);
    const notes = unready.map(({ worker, text }) =>
      `[!]worker ${worker}: ${problemOf(text)}\n`
    );
    return plain(
      shown.status,
      `${shown.text}[!]${missing} of ${count} workers are not ready\n` +
        notes.join(""),
    );
  }

  async #metrics(): Promise<Response> {
    const said = (await Promise.all(this.#ask("/metrics"))).flat()
      .filter(isGood);
    const text = joinedMetrics([...said, { text: this.own.expose() }]);
    return new Response(text, {
      headers: { "content-type": METRICS_CONTENT_TYPE },
    });
  }

  /** Nothing of one that does not answer. */
  #ask(path: string): readonly Promise<readonly Said[]>[] {
    const awake = this.#of?.workers.filter(({ isSilent }) => !isSilent) ?? [];
    return awake.map(async (worker) => {
      const answer = await worker.ask(path);
      if (answer === undefined) return [];
      const { status } = answer;
      return [{ worker: worker.index, status, text: await answer.text() }];
    });
  }
}

function isGood({ status }: Said): boolean {
  return status === 200;
}

/** @returns `undefined`: none of them is. */
function firstReady(
  asking: readonly Promise<readonly Said[]>[],
): Promise<Said | undefined> {
  const ready = asking.map(async (asked) =>
    (await asked).find(isGood) ?? Promise.reject(new Error("it is not"))
  );
  return Promise.any(ready).catch(() => undefined);
}

/** The line of a list of checks that says why; a server says nothing else. */
function problemOf(answer: string): string {
  const line = answer.split("\n").find((one) => one.startsWith("[-]"));
  return line?.slice("[-]".length) ?? answer.trim();
}

/** One process's metrics, in Prometheus' text format 0.0.4. */
interface WorkerMetrics {
  /** Absent: it is the parent, whose series have no such label. */
  readonly worker?: number;
  /** Our own program has written it: HELP and TYPE stand before each family. */
  readonly text: string;
}

/** The metrics of all as one text, those of one family together. */
function joinedMetrics(all: readonly WorkerMetrics[]): string {
  const families = new Map<string, string[]>();
  for (const { worker, text } of all) {
    let help = "";
    let lines: string[] = [];
    for (const line of text.split("\n")) {
      if (line.startsWith("# HELP ")) {
        help = line;
      } else if (line.startsWith("# TYPE ")) {
        const [, , name = ""] = line.split(" ");
        lines = families.get(name) ?? [help, line];
        families.set(name, lines);
      } else if (line !== "") {
        lines.push(worker === undefined ? line : labelled(line, worker));
      }
    }
  }
  return [...families.values()].flat().map((line) => `${line}\n`).join("");
}

function labelled(series: string, worker: number): string {
  const end = series.search(/[{ ]/);
  const [name, rest] = [series.slice(0, end), series.slice(end)];
  const label = `worker="${worker}"`;
  return rest.startsWith("{")
    ? `${name}{${label},${rest.slice(1)}`
    : `${name}{${label}}${rest}`;
}
