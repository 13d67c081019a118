/**
 * The known state of the server, kept up to date by its server-sent events, and
 * whether they still come.
 *
 * @module
 */

import { type Signal, signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type {
  ConduitInfo,
  NodeSummary,
} from "../../proto/admin/node_answer.ts";
import type {
  EventInfo,
  HistoryAnswer,
  HistorySample,
  WatchEvents,
} from "../../proto/admin/list_answers.ts";
import type { StatusAnswer } from "../../proto/admin/status_answer.ts";
import { hearWarnings } from "./announce.ts";
import { ask, AskError } from "./ask.ts";
import { KeyedList } from "./ordered.ts";

/** Whether the shown data are current. */
export type Following =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  /** Not for now: another try at that time of this machine. */
  | { readonly kind: "lost"; readonly nextMs: number }
  /** The login is no longer good. */
  | { readonly kind: "ended" };

export const following: Signal<Following> = signal({ kind: "connecting" });
export const status: Signal<StatusAnswer | undefined> = signal(undefined);
export const nodes: KeyedList<NodeSummary> = new KeyedList(({ name }) => name);
export const conduits: KeyedList<ConduitInfo> = new KeyedList(({ id }) => id);
/** The newest first. */
export const events: Signal<readonly EventInfo[]> = signal([]);
/** The server's clock, in milliseconds; advances with each status. */
export const clock: Signal<number> = signal(Date.now());

/** The lists that can be followed. */
export type ListName = "nodes" | "conduits" | "events";

/** Limit on kept events; the server keeps about as many. */
const EVENTS_MAX = 500;
/** The server sends this many, see `proto/admin/list_answers.ts`. */
const FOLLOWED_CONDUITS = 200;
/** A server sends a status each second: after this it is lost. */
const SILENCE_MS = 6_000;
const RETRY_FIRST_MS = 500;
const RETRY_MAX_MS = 8_000;

let source: EventSource | undefined;
let lists = "";
let retryMs = RETRY_FIRST_MS;
let retrying: ReturnType<typeof setTimeout> | undefined;
let silence: ReturnType<typeof setTimeout> | undefined;

/** Follows the server from now on, with these lists. */
export function follow(wanted: readonly ListName[]): void {
  const asked = [...wanted].sort().join(",");
  if (asked === lists && source !== undefined) return;
  lists = asked;
  connect();
}

/** Tries at once, instead of when it is time. */
export function followNow(): void {
  retryMs = RETRY_FIRST_MS;
  connect();
}

function connect(): void {
  disconnect();
  const opened = new EventSource(`${ADMIN_PATHS.watch}?lists=${lists}`);
  source = opened;
  listen(opened, "status", (answer) => {
    retryMs = RETRY_FIRST_MS;
    if (following.value.kind !== "live") {
      // An older server keeps none.
      ask<HistoryAnswer>(ADMIN_PATHS.history).then(recall, () => {});
    }
    following.value = { kind: "live" };
    status.value = answer;
    clock.value = Date.parse(answer.program.now) || Date.now();
    remember(answer);
    hearWarnings(answer.warnings, performance.now());
    expectMore();
  });
  listen(opened, "nodes", (change) => nodes.apply(change));
  listen(opened, "conduits", (change) => takeConduits(change));
  listen(opened, "events", takeEvents);
  opened.addEventListener("error", () => lost(opened));
  expectMore();
}

function listen<K extends keyof WatchEvents>(
  from: EventSource,
  name: K,
  take: (data: WatchEvents[K]) => void,
): void {
  from.addEventListener(name, (event) => {
    if (from === source) take(JSON.parse((event as MessageEvent).data));
  });
}

/**
 * Only the busiest are sent; a view requests the others itself. A missing one
 * has ended only if the server sends all.
 */
function takeConduits(change: WatchEvents["conduits"]): void {
  const all = status.value?.traffic.conduits ?? 0;
  if (!conduits.isKnown.value || all < FOLLOWED_CONDUITS) {
    conduits.apply(change);
  } else conduits.merge(change.changed);
}

function takeEvents(told: readonly EventInfo[]): void {
  const seen = new Set(told.map(keyOf));
  const others = events.value.filter((event) => !seen.has(keyOf(event)));
  const all = [...told, ...others];
  all.sort((a, b) => a.at < b.at ? 1 : a.at > b.at ? -1 : 0);
  events.value = all.slice(0, EVENTS_MAX);
}

function keyOf({ at, kind, node, message }: EventInfo): string {
  return JSON.stringify([at, kind, node, message]);
}

function disconnect(): void {
  clearTimeout(retrying);
  clearTimeout(silence);
  source?.close();
  source = undefined;
}

function expectMore(): void {
  clearTimeout(silence);
  const opened = source;
  silence = setTimeout(() => lost(opened), SILENCE_MS);
}

/** Browsers do not say why an event source failed: a question finds it out. */
function lost(opened: EventSource | undefined): void {
  if (opened === undefined || opened !== source) return;
  disconnect();
  const waitMs = retryMs * (1 + Math.random() / 4);
  retryMs = Math.min(retryMs * 2, RETRY_MAX_MS);
  following.value = { kind: "lost", nextMs: Date.now() + waitMs };
  retrying = setTimeout(connect, waitMs);
  ask<StatusAnswer>(ADMIN_PATHS.status).catch((error) => {
    if (!(error instanceof AskError)) return;
    if (error.status !== 401 && error.status !== 403) return;
    disconnect();
    following.value = { kind: "ended" };
  });
}

// What passed in the last hour: what the server has kept, and a sample for each
// status that came since.

/** What the charts show. */
export const HISTORY_SECONDS = 3_600;
/**
 * Recent samples are all kept; of earlier ones, one for each of these steps.
 */
const RECENT_SECONDS = 300;
const STEP_SECONDS = 10;
/** The line is broken after this time without a sample. */
const GAP_SECONDS = 5;

/** One moment; unknown fields are absent. */
export interface Sample extends Partial<HistorySample> {
  /** By the server's clock. */
  readonly seconds: number;
}

/** The oldest first. */
export const samples: Signal<readonly Sample[]> = signal([]);

/** Adds what a status says. */
export function remember({ program, traffic }: StatusAnswer): void {
  const seconds = Date.parse(program.now) / 1000;
  const before = samples.value;
  const last = before.at(-1);
  if (Number.isNaN(seconds) || (last && seconds <= last.seconds)) return;
  const next = thinned(before, seconds);
  if (last && seconds - last.seconds > GAP_SECONDS) {
    next.push({ seconds: last.seconds + 1 });
  }
  next.push({ ...traffic, seconds });
  samples.value = next;
}

/** Merges the server's history with the known samples. */
export function recall({ samples: kept }: HistoryAnswer): void {
  const known = samples.value.filter(({ conduits }) => conduits !== undefined);
  const older = kept.map((sample): Sample => ({
    ...sample,
    seconds: Date.parse(sample.at) / 1000,
  }));
  const all = [...older, ...known].sort((a, b) => a.seconds - b.seconds);
  samples.value = thinned(all, all.at(-1)?.seconds ?? 0);
}

function thinned(all: readonly Sample[], nowSeconds: number): Sample[] {
  const step = ({ seconds }: Sample) => Math.floor(seconds / STEP_SECONDS);
  return all.filter((sample, at) =>
    sample.seconds > nowSeconds - RECENT_SECONDS ||
    (sample.seconds > nowSeconds - HISTORY_SECONDS &&
      (at === 0 || step(sample) !== step(all[at - 1]!)))
  );
}

// An answer that a view needs, asked for when it is opened and again while it
// stays open.

/** The known state. */
export type Asked<T> =
  | { readonly kind: "waiting" }
  | { readonly kind: "known"; readonly answer: T }
  | { readonly kind: "failed"; readonly message: string };

/**
 * @param path Absent: nothing is asked for.
 * @param everyMs How often it is asked for again.
 * @param then Told of each answer.
 */
export function useAsked<T>(
  path: string | undefined,
  everyMs: number,
  then?: (answer: T) => void,
): Asked<T> {
  const [asked, setAsked] = useState<Asked<T>>({ kind: "waiting" });
  const isLive = following.value.kind === "live";
  useEffect(() => {
    setAsked({ kind: "waiting" });
  }, [path]);
  useEffect(() => {
    if (path === undefined) return undefined;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = async () => {
      if (!document.hidden) {
        const next = await answerOf<T>(path, stop.signal);
        if (stop.signal.aborted) return;
        if (next.kind === "known") then?.(next.answer);
        // A failure does not remove earlier data.
        setAsked((before) =>
          next.kind === "failed" && before.kind === "known" ? before : next
        );
      }
      timer = setTimeout(() => void again(), everyMs);
    };
    void again();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [path, everyMs, isLive]);
  return asked;
}

async function answerOf<T>(
  path: string,
  signal: AbortSignal,
): Promise<Asked<T>> {
  try {
    return { kind: "known", answer: await ask<T>(path, signal) };
  } catch (error) {
    return { kind: "failed", message: (error as Error).message };
  }
}
