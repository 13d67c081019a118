/**
 * Answers of the admin API by several workers, as of one program. Pure.
 *
 * Each worker is a server of its own to agents, which link to all of them; a
 * conduit is one worker's.
 *
 * @module
 */

import type {
  ConduitInfo,
  ConduitsAnswer,
} from "../../../proto/admin/conduit_answer.ts";
import type { EventInfo } from "../../../proto/admin/event_answer.ts";
import type {
  HistoryAnswer,
  HistorySample,
} from "../../../proto/admin/history_answer.ts";
import type {
  NodeDetail,
  NodesAnswer,
  NodeSummary,
} from "../../../proto/admin/node_answer.ts";
import type { PingAnswer } from "../../../proto/admin/path_check.ts";
import type {
  StatusAnswer,
  Traffic,
} from "../../../proto/admin/status_answer.ts";

/** Of `NodeDetail`. */
const CONDUITS_OF_NODE_MAX = 50;

/** Of `StatusAnswer`. */
const TOP_MAX = 10;
const SLOWEST_MAX = 5;
const LAST_GONE_MAX = 20;

type Numbers<T> = {
  [K in keyof T]-?: NonNullable<T[K]> extends number ? K : never;
}[keyof T];

function sum<T>(all: readonly T[], key: Numbers<T>): number {
  // deno-lint-ignore tunnel/own-keys -- a field of an answer of ours.
  return all.reduce((total, one) => total + (Number(one[key]) || 0), 0);
}

/** @returns `undefined`: none of them knows. */
function best<T>(
  all: readonly T[],
  key: Numbers<T>,
  pick: (...values: number[]) => number,
): number | undefined {
  // deno-lint-ignore tunnel/own-keys -- a field of an answer of ours.
  const known = all.map((one) => one[key]).filter((value) =>
    typeof value === "number"
  );
  return known.length === 0 ? undefined : pick(...known);
}

/** The first of each key, in order. */
function distinct<T>(
  all: readonly T[],
  keyOf: (one: T) => string,
): readonly T[] {
  const first = new Map<string, T>();
  for (const one of all) {
    const key = keyOf(one);
    if (!first.has(key)) first.set(key, one);
  }
  return [...first.values()];
}

/** Under `key` if it is known. */
function ifKnown<K extends string, T>(
  key: K,
  value: T | undefined,
): { readonly [P in K]?: T } {
  return (value === undefined ? {} : { [key]: value }) as {
    readonly [P in K]?: T;
  };
}

/** What a merge takes and gives. */
export interface MergeQuery {
  readonly params: URLSearchParams;
  /** Of the program. */
  readonly pid: number;
  readonly workers: number;
}

/** `/v1/nodes`; asked of each worker without `state`, `limit` and `after`. */
export function mergedNodes(
  answers: readonly NodesAnswer[],
  { params }: Pick<MergeQuery, "params">,
): NodesAnswer {
  const byName = new Map<string, NodeSummary[]>();
  for (const { nodes } of answers) {
    for (const node of nodes) {
      byName.set(node.name, [...byName.get(node.name) ?? [], node]);
    }
  }
  const state = params.get("state");
  const after = params.get("after") ?? "";
  const limit = Number(params.get("limit") ?? Infinity);
  const wanted = [...byName.values()].map(mergedNode)
    .filter((node) => state === null || node.state === state)
    .sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
  return {
    nodes: wanted.filter(({ name }) => name > after).slice(0, limit),
    total: wanted.length,
    ...ifKnown("now", answers[0]?.now),
  };
}

/** One node, as several workers see it; it is online where one has it. */
export function mergedNode<T extends NodeSummary>(all: readonly T[]): T {
  const first = all.find(({ state }) => state === "online") ?? all[0]!;
  const since = all.filter(({ state }) => state === first.state)
    .flatMap(({ since }) => since ?? []).sort();
  return {
    ...first,
    // Online since the first of them had it, offline since the last had it.
    ...ifKnown("since", first.state === "online" ? since[0] : since.at(-1)),
    links: sum<NodeSummary>(all, "links"),
    conduits: sum<NodeSummary>(all, "conduits"),
    toTargetRate: sum<NodeSummary>(all, "toTargetRate"),
    fromTargetRate: sum<NodeSummary>(all, "fromTargetRate"),
    ...ifKnown(
      "roundTripMs",
      best<NodeSummary>(all, "roundTripMs", Math.min),
    ),
    servers: [...new Set(all.flatMap(({ servers }) => servers))],
    ...ifKnown("problem", first.problem ?? problemOf(all, first)),
  };
}

/** Where it is not linked is no problem while it is linked elsewhere. */
function problemOf(
  all: readonly NodeSummary[],
  { state }: NodeSummary,
): string | undefined {
  return all.find((one) => one.state === state && one.problem !== undefined)
    ?.problem;
}

/** `/v1/nodes/NAME`, of those that know it. */
export function mergedDetail(all: readonly NodeDetail[]): NodeDetail {
  return {
    ...mergedNode(all),
    linkDetails: all.flatMap(({ linkDetails }) => linkDetails),
    warnings: distinct(
      all.flatMap(({ warnings }) => warnings),
      ({ message }) => message,
    ),
    conduitDetails: biggest(
      all.flatMap(({ conduitDetails }) => conduitDetails),
      "rate",
    ).slice(0, CONDUITS_OF_NODE_MAX),
    events: newest(all.flatMap(({ events }) => events)),
  };
}

/** `/v1/conduits` */
export function mergedConduits(
  answers: readonly ConduitsAnswer[],
  { params }: Pick<MergeQuery, "params">,
): ConduitsAnswer {
  const all = answers.flatMap(({ conduits }) => conduits);
  const limit = Number(params.get("limit") ?? 100);
  return {
    conduits: biggest(all, params.get("sort") ?? "rate").slice(0, limit),
    total: sum(answers, "total"),
  };
}

function biggest(
  all: readonly ConduitInfo[],
  sort: string,
): readonly ConduitInfo[] {
  const keyOf = CONDUIT_KEYS.get(sort) ?? rateOf;
  return [...all].sort((a, b) => keyOf(b) - keyOf(a));
}

const rateOf = (one: ConduitInfo) => one.toTargetRate + one.fromTargetRate;

const CONDUIT_KEYS: ReadonlyMap<string, (one: ConduitInfo) => number> = new Map(
  Object.entries({
    rate: rateOf,
    bytes: (one) => one.toTargetBytes + one.fromTargetBytes,
    age: (one) => one.ageMs,
    idle: (one) => one.idleMs,
    queue: (one) => one.queuedBytes ?? 0,
  }),
);

function newest(all: readonly EventInfo[]): readonly EventInfo[] {
  return [...all].sort((a, b) => a.at < b.at ? 1 : a.at > b.at ? -1 : 0);
}

/** Lists that have a time each, newest first. */
export function mergedByTime(
  answers: readonly Readonly<Record<string, unknown>>[],
  list: string,
  time: string,
  limit: number,
): unknown {
  const all = answers.flatMap((answer) => {
    const items = answer[list];
    return Array.isArray(items) ? items : [];
  }) as Readonly<Record<string, unknown>>[];
  // deno-lint-ignore tunnel/own-keys -- the same.
  const timeOf = (one: Readonly<Record<string, unknown>>) => `${one[time]}`;
  all.sort((a, b) =>
    timeOf(a) < timeOf(b) ? 1 : timeOf(a) > timeOf(b) ? -1 : 0
  );
  return { [list]: all.slice(0, limit) };
}

/** `/v1/nodes/NAME/ping` */
export function mergedPing(all: readonly PingAnswer[]): PingAnswer {
  return { ...all[0]!, links: all.flatMap(({ links }) => links) };
}

/** `/v1/history`: sums of one moment; of times the worst. */
export function mergedHistory(
  answers: readonly HistoryAnswer[],
): HistoryAnswer {
  const all = Map.groupBy(
    answers.flatMap(({ samples }) => samples),
    (one) => one.at,
  );
  const samples = [...all].sort(([a], [b]) => a < b ? -1 : 1)
    .map(([at, some]): HistorySample => ({
      at,
      conduits: sum(some, "conduits"),
      toTargetRate: sum(some, "toTargetRate"),
      fromTargetRate: sum(some, "fromTargetRate"),
      dialRate: sum(some, "dialRate"),
      failedDials: sum(some, "failedDials"),
      ...ifKnown("dialP50Ms", best(some, "dialP50Ms", Math.max)),
      ...ifKnown("dialP99Ms", best(some, "dialP99Ms", Math.max)),
    }));
  return { stepMs: answers[0]!.stepMs, samples };
}

/** `/v1/status` */
export function mergedStatus(
  all: readonly StatusAnswer[],
  { pid, workers }: Pick<MergeQuery, "pid" | "workers">,
): StatusAnswer {
  const first = all[0]!;
  const programs = all.map(({ program }) => program);
  const expiries = distinct(
    all.flatMap(({ expiries }) => expiries),
    ({ what, at }) => `${what} ${at}`,
  );
  return {
    ...first,
    program: {
      ...first.program,
      pid,
      workers,
      isReady: programs.some(({ isReady }) => isReady),
      isDraining: programs.every(({ isDraining }) => isDraining),
      ...ifKnown("residentBytes", added(programs, "residentBytes")),
      ...ifKnown("cpuSeconds", added(programs, "cpuSeconds")),
    },
    warnings: distinct(
      all.flatMap(({ warnings }) => warnings),
      ({ node = "", message }) => `${node} ${message}`,
    ),
    traffic: mergedTraffic(all.map(({ traffic }) => traffic)),
    expiries: [...expiries].sort((a, b) => a.at < b.at ? -1 : 1)
      .slice(0, first.expiries.length),
    ...ifKnown("nodes", mergedCounts(all)),
    ...ifKnown("links", first.links && all.flatMap(({ links }) => links ?? [])),
    ...ifKnown(
      "servers",
      first.servers && distinct(
        all.flatMap(({ servers }) => servers ?? []),
        ({ id }) => id,
      ),
    ),
    ...ifKnown("sources", first.sources && mergedSources(all)),
    ...ifKnown("discovery", mergedDiscovery(all)),
    ...ifKnown(
      "top",
      first.top &&
        biggest(all.flatMap(({ top }) => top ?? []), "rate").slice(0, TOP_MAX),
    ),
  };
}

function added<T>(all: readonly T[], key: Numbers<T>): number | undefined {
  return best(all, key, (...values) => values.reduce((a, b) => a + b, 0));
}

function mergedTraffic(all: readonly Traffic[]): Traffic {
  const total = (key: Numbers<Traffic>) => sum<Traffic>(all, key);
  return {
    conduits: total("conduits"),
    pendingDials: total("pendingDials"),
    toTargetBytes: total("toTargetBytes"),
    fromTargetBytes: total("fromTargetBytes"),
    toTargetRate: total("toTargetRate"),
    fromTargetRate: total("fromTargetRate"),
    dialRate: total("dialRate"),
    failedDials: total("failedDials"),
    // Quantiles cannot be added: the worst worker's is said.
    ...ifKnown("dialP50Ms", best<Traffic>(all, "dialP50Ms", Math.max)),
    ...ifKnown("dialP99Ms", best<Traffic>(all, "dialP99Ms", Math.max)),
  };
}

/** A node that one worker has is online, so the worker with most is right. */
function mergedCounts(
  all: readonly StatusAnswer[],
): StatusAnswer["nodes"] | undefined {
  const counts = all.flatMap(({ nodes }) => nodes ?? []);
  if (counts.length === 0) return undefined;
  const fullest = counts.reduce((a, b) => b.online > a.online ? b : a);
  const gone = counts.map(({ lastGone }) =>
    new Set(lastGone.map(({ name }) => name))
  );
  return {
    ...fullest,
    links: sum<NonNullable<StatusAnswer["nodes"]>>(counts, "links"),
    lastGone: fullest.lastGone
      .filter(({ name }) => gone.every((names) => names.has(name)))
      .slice(0, LAST_GONE_MAX),
    slowest: distinct(
      counts.flatMap(({ slowest }) => slowest)
        .sort((a, b) => (b.roundTripMs ?? 0) - (a.roundTripMs ?? 0)),
      ({ name }) => name,
    ).slice(0, SLOWEST_MAX),
  };
}

function mergedSources(
  all: readonly StatusAnswer[],
): NonNullable<StatusAnswer["sources"]> {
  const sources = all.flatMap(({ sources }) => sources ?? []);
  return distinct(sources, ({ name }) => name).map((source) => {
    const same = sources.filter(({ name }) => name === source.name);
    return {
      name: source.name,
      isSynced: same.every(({ isSynced }) => isSynced),
      ...ifKnown(
        "problem",
        same.find(({ problem }) => problem !== undefined)?.problem,
      ),
    };
  });
}

function mergedDiscovery(
  all: readonly StatusAnswer[],
): StatusAnswer["discovery"] | undefined {
  const counts = all.flatMap(({ discovery }) => discovery ?? []);
  if (counts.length === 0) return undefined;
  type Counts = NonNullable<StatusAnswer["discovery"]>;
  return {
    clients: sum<Counts>(counts, "clients"),
    inSync: sum<Counts>(counts, "inSync"),
    refused: sum<Counts>(counts, "refused"),
  };
}
