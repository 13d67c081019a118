/**
 * The admin API of a program of several workers: all are asked, and what they
 * say is told as of one.
 *
 * @module
 */

import {
  AdminFailure,
  type AdminWho,
  failureAnswer,
  jsonOf,
} from "../../../net/admin/admin_api.ts";
import {
  eventAnswer,
  type ServerEvent,
} from "../../../net/admin/event_stream.ts";
import { jsonAnswer } from "../../../net/admin/http_endpoints.ts";
import type { HttpPeer } from "../../../net/admin/http_port.ts";
import type {
  ConduitInfo,
  ConduitsAnswer,
} from "../../../proto/admin/conduit_answer.ts";
import type { HistoryAnswer } from "../../../proto/admin/history_answer.ts";
import type { EventInfo } from "../../../proto/admin/event_answer.ts";
import type {
  NodeDetail,
  NodesAnswer,
  NodeSummary,
} from "../../../proto/admin/node_answer.ts";
import type { PingAnswer } from "../../../proto/admin/path_check.ts";
import type { StatusAnswer } from "../../../proto/admin/status_answer.ts";
import type { ListChange } from "../../../proto/admin/watch.ts";
import {
  mergedByTime,
  mergedConduits,
  mergedDetail,
  mergedHistory,
  mergedNodes,
  mergedPing,
  mergedStatus,
} from "./merged_api.ts";
import type { Workers } from "./worker_answers.ts";
import type { WorkerAnswer, WorkerProcess } from "./worker_process.ts";

/** A worker that answers later counts as one that does not. */
const ANSWER_MS = 5_000;

/** What is done may wait for a dial. */
const ACTION_MS = 25_000;

/** Between two events of a watcher. */
const WATCH_MS = 1_000;

/** All of them. */
const NODES_MAX = 999_999_999;

/** Of `watch`. */
const CONDUITS_WATCHED_MAX = 200;

/** What each worker does of its part. */
const OF_ALL = /^\/v1\/nodes\/[^/]+\/(?:drain|ping)$/;

type Json = Readonly<Record<string, unknown>>;

/** A question, as it is passed on. */
interface Question {
  readonly method: string;
  readonly path: string;
  readonly who: AdminWho;
  readonly body?: string;
}

export class WorkerApi {
  constructor(private readonly of: Workers) {}

  /** Answers what is below `/v1`. */
  async answer(
    request: Request,
    peer: HttpPeer,
    who: AdminWho,
  ): Promise<Response> {
    try {
      const url = new URL(request.url);
      const { method } = request;
      peer.mayTake?.(ACTION_MS);
      if (method === "POST") {
        const body = JSON.stringify(await jsonOf(request));
        return await this.#act({ method, path: url.pathname, who, body });
      }
      if (method !== "GET" && method !== "HEAD") {
        throw new AdminFailure(405, {
          message: "This path is not for that method: wanted GET or POST",
        });
      }
      return url.pathname === "/v1/watch"
        ? this.#watch(url.searchParams, who, request.signal)
        : await this.#tell(url, who);
    } catch (error) {
      if (error instanceof AdminFailure) return failureAnswer(error);
      throw error;
    }
  }

  async #act(question: Question): Promise<Response> {
    const { pathname } = new URL(question.path, "http://localhost");
    if (OF_ALL.test(pathname)) {
      const answers = await this.#askAll(question, ACTION_MS);
      const good = answers.filter(({ status }) => status === 200);
      if (good.length === 0) return asJson(answers);
      return pathname.endsWith("/ping")
        ? jsonAnswer(mergedPing(good.map((one) => json<PingAnswer>(one))))
        : asJson(good);
    }
    const answers: WorkerAnswer[] = [];
    // One after the other: what one has done, no other should do again.
    for (const worker of this.#awake) {
      const [answer] = await this.#askAll(question, ACTION_MS, [worker]);
      if (answer === undefined) continue;
      answers.push(answer);
      if (answer.status !== 404) break;
    }
    return asJson([...answers].reverse());
  }

  async #tell(url: URL, who: AdminWho): Promise<Response> {
    const { pathname, searchParams: params } = url;
    const path = pathname === "/v1/nodes"
      ? `${pathname}?limit=${NODES_MAX}`
      : `${pathname}${url.search}`;
    const answers = await this.#askAll({ method: "GET", path, who }, ANSWER_MS);
    const good = answers.filter(({ status }) => status === 200);
    if (good.length === 0) return asJson(answers);
    const merged = this.#merged(pathname, params, good);
    return merged === undefined ? asJson(good) : jsonAnswer(merged);
  }

  /** @returns `undefined`: what the first says is so of all. */
  #merged(
    path: string,
    params: URLSearchParams,
    answers: readonly WorkerAnswer[],
  ): unknown {
    const all = <T>() => answers.map((one) => json<T>(one));
    const limit = Number(params.get("limit") ?? 100);
    const program = { pid: Deno.pid, workers: this.of.count };
    switch (path) {
      case "/v1/status":
        return mergedStatus(all<StatusAnswer>(), program);
      case "/v1/history":
        return mergedHistory(all<HistoryAnswer>());
      case "/v1/nodes":
        return mergedNodes(all<NodesAnswer>(), { params });
      case "/v1/conduits":
        return mergedConduits(all<ConduitsAnswer>(), { params });
      case "/v1/events":
        return mergedByTime(all<Json>(), "events", "at", limit);
      case "/v1/audit":
        return mergedByTime(all<Json>(), "entries", "time", limit);
      case "/v1/discovery":
        return mergedByTime(all<Json>(), "clients", "since", Infinity);
    }
    return /^\/v1\/nodes\/[^/]+$/.test(path)
      ? mergedDetail(all<NodeDetail>())
      : undefined;
  }

  get #awake(): readonly WorkerProcess[] {
    return this.of.workers.filter(({ isSilent }) => !isSilent);
  }

  /** What those say that answer. */
  async #askAll(
    { method, path, who, body }: Question,
    timeoutMs: number,
    workers = this.#awake,
  ): Promise<readonly WorkerAnswer[]> {
    const signal = AbortSignal.timeout(timeoutMs);
    const asking = workers.map(async (worker) => {
      try {
        const question = { use: "admin", method, path, who } as const;
        return [
          await worker.ask(
            { ...question, ...(body === undefined ? {} : { body }) },
            signal,
          ),
        ];
      } catch {
        // It has ended, or is stuck; the log says so.
        return [];
      }
    });
    return (await Promise.all(asking)).flat();
  }

  /** Workers are asked again and again for all of it; few watch at a time. */
  #watch(
    params: URLSearchParams,
    who: AdminWho,
    signal: AbortSignal,
  ): Response {
    const asked = (params.get("lists") ?? "").split(",");
    const feeds = [
      new ListFeed<NodeSummary>("nodes", ({ name }) => name),
      new ListFeed<ConduitInfo>("conduits", ({ id }) => id),
    ].filter(({ name }) => asked.includes(name)) as ListFeed<unknown>[];
    const wantsEvents = asked.includes("events");
    let lastAt = "";
    let isFirst = true;
    const next = async (): Promise<readonly ServerEvent[]> => {
      if (!isFirst) await passed(WATCH_MS, signal);
      isFirst = false;
      const get = async <T>(path: string) => {
        const url = new URL(path, "http://localhost");
        const response = await this.#tell(url, who);
        const answer = await response.json();
        return response.ok ? answer as T : undefined;
      };
      const events: ServerEvent[] = [];
      const status = await get<StatusAnswer>("/v1/status");
      if (status !== undefined) events.push({ name: "status", data: status });
      for (const feed of feeds) {
        const list = await get<Json>(
          `/v1/${feed.name}?limit=${
            feed.name === "nodes" ? NODES_MAX : CONDUITS_WATCHED_MAX
          }`,
        );
        const data = list && feed.change(list);
        if (data !== undefined) events.push({ name: feed.name, data });
      }
      if (wantsEvents) {
        const list = await get<{ events: readonly EventInfo[] }>("/v1/events");
        const fresh = (list?.events ?? []).filter(({ at }) => at > lastAt);
        lastAt = fresh[0]?.at ?? lastAt;
        if (fresh.length > 0) events.push({ name: "events", data: fresh });
      }
      return events;
    };
    return eventAnswer(next, signal);
  }
}

/** What has changed of a list since it was looked at last. */
class ListFeed<T> {
  readonly #keyOf: (item: T) => string;
  #last: ReadonlyMap<string, string> | undefined;

  constructor(readonly name: string, keyOf: (item: T) => string) {
    this.#keyOf = keyOf;
  }

  /** @returns `undefined`: nothing. */
  change(answer: Json): ListChange<T> | undefined {
    const items = answer[this.name] as readonly T[];
    const last = this.#last;
    const now = new Map<string, string>();
    const changed: T[] = [];
    for (const item of items) {
      const key = this.#keyOf(item);
      const text = JSON.stringify(item);
      now.set(key, text);
      if (last?.get(key) !== text) changed.push(item);
    }
    const gone = [...last?.keys() ?? []].filter((key) => !now.has(key));
    this.#last = now;
    const isWhole = last === undefined;
    return isWhole || changed.length + gone.length > 0
      ? { isWhole, changed, gone }
      : undefined;
  }
}

function passed(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
  });
}

function json<T>({ body }: WorkerAnswer): T {
  return JSON.parse(new TextDecoder().decode(body)) as T;
}

/** The first of them, as it is. */
function asJson([first]: readonly WorkerAnswer[]): Response {
  if (first === undefined) {
    throw new AdminFailure(503, { message: "No worker answers" });
  }
  const { status, contentType, body } = first;
  return new Response(body, {
    status,
    headers: { "content-type": contentType, "cache-control": "no-store" },
  });
}
