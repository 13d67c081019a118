/**
 * `/v1/watch`: the feed for screens. One tick a second computes what any of
 * them needs, and each gets the changes since its last message: a slow reader
 * skips ticks. Without watchers nothing is computed.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { conduitsAnswer } from "../../platform/conduits/conduit_info.ts";
import { AdminFailure } from "../../net/admin/admin_api.ts";
import { eventAnswer, type SentEvent } from "../../net/admin/event_stream.ts";
import type {
  ConduitInfo,
  NodeSummary,
} from "../../proto/admin/node_answer.ts";
import type { StatusAnswer } from "../../proto/admin/status_answer.ts";
import type { ListChange } from "../../proto/admin/list_answers.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import type { Expiries } from "./expiries.ts";
import { type NodeView, turn, viewNodes } from "./node_view.ts";
import type { ServerParts } from "../../server/assembly/server_admin_port.ts";
import { statusAnswer } from "./status.ts";

/** Time between two ticks. */
export const WATCH_TICK_MS = 1_000;

/** Nodes for which there is time each second: of 5,000 all are seen in four. */
const NODES_A_TICK = 1_500;

/** Items of one event: to make a text of more takes too long at a stretch. */
export const ITEMS_MAX = 250;

/** Conduits that are followed. */
const BIGGEST = { sort: "rate", limit: 200 } as const;

/** Events that a new watcher is sent, and at most at once. */
const EVENTS_MAX = 200;

/** How long summaries are made at a stretch. */
const SLICE_MS = 3;

const LISTS = ["nodes", "conduits", "events"] as const;
type ListName = typeof LISTS[number];

/** One screen. */
interface Watcher {
  readonly lists: ReadonlySet<ListName>;
  /** The last tick that it has received. */
  seen: number;
  /** Of each list. */
  readonly versions: { nodes: number; conduits: number; events: number };
  /** What of a tick is still to be told. */
  readonly rest: (() => SentEvent)[];
  wake: (() => void) | undefined;
}

/** See the module description. */
export class WatchFeed {
  readonly #watchers = new Set<Watcher>();
  readonly #lists = {
    nodes: new VersionedList<NodeSummary>(),
    conduits: new VersionedList<ConduitInfo>(),
  };
  #status: StatusAnswer | undefined;
  #view: NodeView | undefined;
  #viewedTick = 0;
  #tick = 0;
  #timer: Timer | undefined;
  #isLooking = false;

  constructor(
    private readonly facts: ServerParts,
    private readonly expiries: Expiries,
  ) {}

  /** @throws {AdminFailure} */
  watch(params: URLSearchParams, signal: AbortSignal): Response {
    const watcher: Watcher = {
      lists: listsIn(params),
      seen: 0,
      versions: { nodes: 0, conduits: 0, events: 0 },
      rest: [],
      wake: undefined,
    };
    this.#watchers.add(watcher);
    signal.addEventListener("abort", () => this.#left(watcher));
    if (signal.aborted) this.#left(watcher);
    else this.#lookNow();
    return eventAnswer(() => this.#next(watcher, signal), signal);
  }

  /** Ends all feeds. */
  stop(): void {
    for (const watcher of [...this.#watchers]) this.#left(watcher);
  }

  #left(watcher: Watcher): void {
    this.#watchers.delete(watcher);
    watcher.wake?.();
    this.#forget();
  }

  /** Nothing is kept without watchers: it would be shown to the next one. */
  #forget(): void {
    if (this.#watchers.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#tick = this.#viewedTick = 0;
    this.#status = undefined;
    this.#view = undefined;
    this.#lists.nodes.clear();
    this.#lists.conduits.clear();
  }

  async #next(
    watcher: Watcher,
    signal: AbortSignal,
  ): Promise<readonly SentEvent[] | undefined> {
    while (watcher.rest.length === 0) {
      if (signal.aborted || !this.#watchers.has(watcher)) return undefined;
      if (watcher.seen < this.#tick && !this.#isLooking) this.#tell(watcher);
      else await new Promise<void>((wake) => watcher.wake = wake);
    }
    return [watcher.rest.shift()!()];
  }

  /** Collects the changes since its last message. */
  #tell(watcher: Watcher): void {
    const { lists, versions, rest } = watcher;
    watcher.seen = this.#tick;
    const status = this.#status!;
    rest.push(() => ({ name: "status", data: status }));
    for (const name of ["nodes", "conduits"] as const) {
      const list: VersionedList<NodeSummary | ConduitInfo> = this.#lists[name];
      if (!lists.has(name) || list.version === 0) continue;
      tellList(rest, name, list, versions[name]);
      versions[name] = list.version;
    }
    if (!lists.has("events")) return;
    const { events } = this.facts;
    if (events.newest === versions.events) return;
    const data = events.list({ limit: EVENTS_MAX, after: versions.events });
    versions.events = events.newest;
    rest.push(() => ({ name: "events", data }));
  }

  #lookNow(): void {
    if (this.#isLooking) return;
    // A watcher may ask for a list that had no watcher until now.
    if (this.#wants("nodes") && this.#lists.nodes.version === 0) {
      this.#view = undefined;
    }
    this.#timer?.cancel();
    unawaited("http", this.#look());
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    const facts = this.facts;
    try {
      const biggest = this.#wants("conduits")
        ? conduitsAnswer(facts.conduits, BIGGEST).conduits
        : undefined;
      if (biggest !== undefined) {
        this.#lists.conduits.update(
          biggest.map((one) => [one.id, one] as const),
        );
      }
      await turn();
      const view = await this.#viewNow();
      const status = await statusAnswer(facts, view, this.expiries, biggest);
      this.#status = status;
      this.#tick++;
    } finally {
      this.#isLooking = false;
      // The last one may have left meanwhile.
      this.#forget();
      this.#again();
    }
    for (const watcher of this.#watchers) watcher.wake?.();
  }

  /** Nodes may be many, and change seldom: a big fleet is looked at less often. */
  async #viewNow(): Promise<NodeView> {
    const every = Math.ceil((this.#view?.nodes.size ?? 0) / NODES_A_TICK);
    const isDue = this.#tick >= this.#viewedTick + every;
    if (this.#view !== undefined && !isDue) return this.#view;
    this.#viewedTick = this.#tick;
    const view = this.#view = await viewNodes(this.facts);
    if (this.#wants("nodes")) this.#lists.nodes.update(await summaries(view));
    await turn();
    return view;
  }

  #again(): void {
    if (this.#watchers.size === 0) return;
    this.#timer = this.facts.timers.after(
      WATCH_TICK_MS,
      () => this.#lookNow(),
    );
  }

  #wants(list: ListName): boolean {
    return [...this.#watchers].some(({ lists }) => lists.has(list));
  }
}

/** In pieces; the first of a whole list is marked. */
function tellList<T extends object>(
  rest: (() => SentEvent)[],
  name: ListName,
  list: VersionedList<T>,
  version: number,
): void {
  const changes: Changes = list.since(version);
  const { changed, gone } = changes;
  if (!changes.isWhole && changed.length + gone.length === 0) return;
  for (let from = 0; from === 0 || from < changed.length; from += ITEMS_MAX) {
    rest.push(() => {
      const data: ListChange<T> = {
        isWhole: changes.isWhole && from === 0,
        // Read when their turn comes; an item that is gone by then is reported
        // with the next message.
        changed: changed.slice(from, from + ITEMS_MAX)
          .flatMap((key) => list.get(key) ?? []),
        gone: from === 0 ? gone : [],
      };
      return { name, data };
    });
  }
}

async function summaries(
  { nodes, summaryOf }: NodeView,
): Promise<readonly (readonly [string, NodeSummary])[]> {
  const found: (readonly [string, NodeSummary])[] = [];
  let untilMs = performance.now() + SLICE_MS;
  for (const [name, node] of nodes) {
    found.push([name, summaryOf(node)]);
    if (performance.now() < untilMs) continue;
    await turn();
    untilMs = performance.now() + SLICE_MS;
  }
  return found;
}

function listsIn(params: URLSearchParams): ReadonlySet<ListName> {
  const asked = (params.get("lists") ?? "").split(",").filter((name) => name);
  const isList = (name: string): name is ListName =>
    (LISTS as readonly string[]).includes(name);
  if (!asked.every(isList)) {
    throw new AdminFailure(400, {
      message: `Cannot watch that list: wanted some of ${LISTS.join(",")}`,
    });
  }
  return new Set(asked.filter(isList));
}

/** What of a conduit moves without being told: its age is known from its start. */
const UNTOLD: ReadonlySet<string> = new Set(["ageMs", "idleMs"]);

/**
 * Whether all reported fields are unchanged; thousands of items are compared.
 */
function isSame<T extends object>(one: T, other: T): boolean {
  for (const name in one) {
    if (!UNTOLD.has(name) && !isEqual(one[name], other[name])) return false;
  }
  return Object.keys(one).length === Object.keys(other).length;
}

function isEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  return Array.isArray(one) && Array.isArray(other) &&
    one.length === other.length &&
    one.every((item, at) => item === other[at]);
}

interface Kept<T> {
  readonly item: T;
  /** The version in which its present form first appeared. */
  readonly version: number;
}

/**
 * Departed items are reported for this many versions; a slower watcher gets the
 * whole list again.
 */
const GONE_VERSIONS = 60;

/** The changes. */
interface Changes {
  /** Whether `changed` is all that there is. */
  readonly isWhole: boolean;
  /** Keys of items that are other, or new. */
  readonly changed: readonly string[];
  readonly gone: readonly string[];
}

/** See the module description. */
class VersionedList<T extends object> {
  #items = new Map<string, Kept<T>>();
  readonly #gone = new Map<string, number>();
  #version = 0;

  get(key: string): T | undefined {
    return this.#items.get(key)?.item;
  }

  /** Replaces the items. */
  update(items: Iterable<readonly [key: string, item: T]>): void {
    const version = ++this.#version;
    const before = this.#items;
    const now = new Map<string, Kept<T>>();
    for (const [key, item] of items) {
      const known = before.get(key);
      before.delete(key);
      this.#gone.delete(key);
      now.set(
        key,
        known !== undefined && isSame(known.item, item)
          ? known
          : { item, version },
      );
    }
    for (const key of before.keys()) this.#gone.set(key, version);
    for (const [key, goneAt] of this.#gone) {
      if (goneAt <= version - GONE_VERSIONS) this.#gone.delete(key);
    }
    this.#items = now;
  }

  /** Since that version; 0 for a watcher without data. */
  since(version: number): Changes {
    const isWhole = version === 0 || version < this.#version - GONE_VERSIONS;
    const changed: string[] = [];
    for (const [key, kept] of this.#items) {
      if (isWhole || kept.version > version) changed.push(key);
    }
    const gone: string[] = [];
    if (!isWhole) {
      for (const [key, goneAt] of this.#gone) {
        if (goneAt > version) gone.push(key);
      }
    }
    return { isWhole, changed, gone };
  }

  /** Grows with each update. */
  get version(): number {
    return this.#version;
  }

  /** No watcher is left. */
  clear(): void {
    this.#items.clear();
    this.#gone.clear();
    this.#version = 0;
  }
}
