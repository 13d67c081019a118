/**
 * What health and admin ports of several workers answer: one program does.
 * `?worker=N` asks one of them alone.
 *
 * @module
 */

import type { AdminWho } from "../../../net/admin/admin_api.ts";
import type { HttpUse } from "../../../net/admin/passed_http.ts";
import { jsonAnswer, plain } from "../../../net/admin/http_endpoints.ts";
import {
  MetricRegistry,
  METRICS_CONTENT_TYPE,
} from "../../../platform/metrics/metrics.ts";
import { registerProcessMetrics } from "../../../platform/metrics/process_metrics.ts";
import { mergedJson } from "./merged_json.ts";
import { MergedMetrics } from "./merged_metrics.ts";
import type {
  WorkerAnswer,
  WorkerProcess,
  WorkerQuestion,
} from "./worker_process.ts";

/** Those who are asked. */
export interface Workers {
  /** Those that are up. */
  readonly workers: readonly WorkerProcess[];
  /** How many there should be. */
  readonly count: number;
  readonly restarts: number;
  readonly isDraining: boolean;
}

/** A worker that answers later counts as one that does not: scrapers wait 10 s. */
const ANSWER_MS = 3_000;

/** Of one worker: `?worker=N`, else the first one. */
const PROFILES = "/debug/pprof";

/** An answer of a worker is whole before it is passed on. */
const PROFILE_SECONDS_MAX = 8;
const PROFILE_MS = 9_500;

const TOO_LONG = `Cannot profile a worker for so long, wanted at most ` +
  `?seconds=${PROFILE_SECONDS_MAX}\n`;

/** The parent, among the workers' numbers. */
const PARENT = -1;

/** From a worker, or why there is nothing. */
interface Answered {
  readonly worker: WorkerProcess;
  readonly answer: WorkerAnswer | undefined;
}

export class WorkerAnswers {
  readonly #metrics = new MergedMetrics();
  readonly #own = new MetricRegistry();

  constructor(private readonly of: Workers) {
    registerProcessMetrics(this.#own);
    this.#own.computed(
      "gauge",
      "tunnel_workers",
      "Workers that are up.",
      () => of.workers.length,
    );
    this.#own.computed(
      "counter",
      "tunnel_worker_restarts_total",
      "Workers that have ended and were replaced.",
      () => of.restarts,
    );
  }

  /** @param who Asks; absent: nobody is known to. */
  async answer(
    use: HttpUse,
    request: Request,
    who?: AdminWho,
  ): Promise<Response> {
    const url = new URL(request.url);
    const path = `${url.pathname}${url.search}`;
    if (request.method !== "GET" && request.method !== "HEAD") {
      return plain(405, "only GET and HEAD are answered here\n");
    }
    if (url.pathname === "/healthz" && use === "health") {
      return plain(200, "ok");
    }
    const wanted = url.searchParams.get("worker");
    const { workers } = this.of;
    const awake = workers.filter(({ isSilent }) => !isSilent);
    const asked = wanted === null
      ? awake
      : workers.filter(({ index }) => String(index) === wanted);
    if (asked.length === 0) {
      return plain(503, wanted === null ? "no worker is up" : "no such worker");
    }
    // Of one process, and a question that keeps it busy.
    const isOfOne = url.pathname.startsWith(PROFILES);
    if (isOfOne && secondsOf(url) > PROFILE_SECONDS_MAX) {
      return plain(400, TOO_LONG);
    }
    const timeoutMs = isOfOne ? PROFILE_MS : ANSWER_MS;
    const asking = asked.slice(0, isOfOne ? 1 : Infinity)
      .map((worker) =>
        ask(worker, { use, method: "GET", path, who }, timeoutMs)
      );
    // Probes wait a second, which one that is frozen must not cost.
    const ready = READY.has(url.pathname) && !url.searchParams.has("verbose")
      ? await firstReady(asking)
      : undefined;
    if (ready !== undefined) return asResponse(ready);
    const answers = await Promise.all(asking);
    return this.#merged(url, answers, wanted === null && !isOfOne);
  }

  #merged(url: URL, all: readonly Answered[], ofAll: boolean): Response {
    const answers = all.flatMap(({ answer }) => answer ?? []);
    const [first] = answers;
    if (first === undefined) return plain(503, "no worker answers");
    if (READY.has(url.pathname)) {
      return this.#ready(url, all, ofAll);
    }
    const refused = answers.find(({ status }) => status !== 200);
    // Who may not be told by one of them may not be told at all.
    if (refused !== undefined) return asResponse(refused);
    if (!ofAll) return asResponse(first);
    if (url.pathname === "/metrics") return this.#allMetrics(all);
    if (!first.contentType.includes("json")) return asResponse(first);
    return jsonAnswer(mergedJson(answers.map(({ body }) => json(body))));
  }

  /** Ready while one worker is: callers reach those that are. */
  #ready(url: URL, all: readonly Answered[], ofAll: boolean): Response {
    const answers = all.flatMap(({ worker, answer }) =>
      answer === undefined ? [] : [{ worker, answer }]
    );
    const ready = answers.find(({ answer }) => answer.status === 200);
    const shown = ready ?? answers[0]!;
    const isVerbose = url.searchParams.has("verbose");
    if (!ofAll || !isVerbose) return asResponse(shown.answer);
    const others = this.of.count - answers
      .filter(({ answer }) => answer.status === 200).length;
    if (others === 0) return asResponse(shown.answer);
    const note = answers
      .filter(({ answer }) => answer.status !== 200)
      .map(({ worker, answer }) =>
        `[!]worker ${worker.index}: ${problemOf(text(answer.body))}\n`
      ).join("");
    return plain(
      shown.answer.status,
      `${text(shown.answer.body)}[!]${others} of ${this.of.count} workers ` +
        `are not ready\n${note}`,
    );
  }

  #allMetrics(all: readonly Answered[]): Response {
    for (const { worker, answer } of all) {
      if (answer === undefined) continue;
      this.#metrics.take(worker.index, worker.pid, text(answer.body));
    }
    this.#metrics.take(PARENT, Deno.pid, this.#own.expose());
    return new Response(this.#metrics.text() + this.#byWorker(), {
      headers: { "content-type": METRICS_CONTENT_TYPE },
    });
  }

  /** So that one that is busier than others is seen. */
  #byWorker(): string {
    const registry = new MetricRegistry();
    for (const [name, kind, help] of BY_WORKER) {
      registry.computedLabelled(
        kind,
        `tunnel_worker_${name.replace(/^process_/, "")}`,
        help,
        ["worker"],
        () =>
          this.of.workers.flatMap(({ index }) => {
            const value = this.#metrics.valueOf(index, name);
            return value === undefined
              ? []
              : [[[String(index)], value] as const];
          }),
      );
    }
    return registry.expose();
  }
}

const BY_WORKER = [
  ["process_cpu_seconds_total", "counter", "CPU time of each worker."],
  ["process_resident_memory_bytes", "gauge", "Memory of each worker."],
] as const;

const READY: ReadonlySet<string> = new Set(["/readyz", "/ready"]);

/** @returns `undefined`: none of them is. */
async function firstReady(
  asking: readonly Promise<Answered>[],
): Promise<WorkerAnswer | undefined> {
  const ready = asking.map(async (asked) => {
    const { answer } = await asked;
    if (answer?.status !== 200) throw new Error("it is not ready");
    return answer;
  });
  return await Promise.any(ready).catch(() => undefined);
}

function secondsOf(url: URL): number {
  const isCpu = url.pathname === `${PROFILES}/profile`;
  return isCpu ? Number(url.searchParams.get("seconds") ?? Infinity) : 0;
}

async function ask(
  worker: WorkerProcess,
  question: WorkerQuestion,
  timeoutMs: number,
): Promise<Answered> {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    return { worker, answer: await worker.ask(question, signal) };
  } catch {
    // It has ended, or is stuck; the log says so.
    return { worker, answer: undefined };
  }
}

function asResponse({ status, contentType, location, body }: WorkerAnswer) {
  const headers = new Headers({ "content-type": contentType });
  if (location !== "") headers.set("location", location);
  return new Response(body, { status, headers });
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

function json(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(text(bytes));
  } catch {
    return undefined;
  }
}

/** The line of a list of checks that says why; a server says nothing else. */
function problemOf(answer: string): string {
  const line = answer.split("\n").find((one) => one.startsWith("[-]"));
  return line?.slice("[-]".length) ?? answer.trim();
}
