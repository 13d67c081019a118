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

/** A list at one moment, by key; an item that is as before is the same object. */
type Items<T extends object> = ReadonlyMap<string, T>;

/** Absent: nobody has wanted it yet. */
interface Lists {
  nodes?: Items<NodeSummary>;
  conduits?: Items<ConduitInfo>;
}

/** One screen. */
interface Watcher {
  readonly lists: ReadonlySet<ListName>;
  /** The last tick that it has received. */
  seen: number;
  /** What it was told last, of each list. */
  readonly told: Lists;
  /** The newest event that it was told. */
  event: number;
  /** What of a tick is still to be told. */
  readonly rest: (() => SentEvent)[];
  wake: (() => void) | undefined;
}

/** See the module description. */
export class WatchFeed {
  readonly #watchers = new Set<Watcher>();
  #lists: Lists = {};
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
      told: {},
      event: 0,
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
    this.#lists = {};
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
    const { lists, rest } = watcher;
    watcher.seen = this.#tick;
    const status = this.#status!;
    rest.push(() => ({ name: "status", data: status }));
    for (const name of ["nodes", "conduits"] as const) {
      if (!lists.has(name)) continue;
      rest.push(
        ...changesOf(name, () => this.#lists[name], watcher.told[name]),
      );
      Object.assign(watcher.told, { [name]: this.#lists[name] });
    }
    if (!lists.has("events")) return;
    const { events } = this.facts;
    if (events.newest === watcher.event) return;
    const data = events.list({ limit: EVENTS_MAX, after: watcher.event });
    watcher.event = events.newest;
    rest.push(() => ({ name: "events", data }));
  }

  #lookNow(): void {
    if (this.#isLooking) return;
    // A watcher may ask for a list that had no watcher until now.
    if (this.#wants("nodes") && !this.#lists.nodes) this.#view = undefined;
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
        this.#lists.conduits = renewed(
          this.#lists.conduits,
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
    if (this.#wants("nodes")) {
      const nodes = await summaries(view);
      this.#lists.nodes = renewed(this.#lists.nodes, nodes);
    }
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
function* changesOf(
  name: ListName,
  newest: () => Items<object> | undefined,
  told: Items<object> | undefined,
): Iterable<() => SentEvent> {
  const now = newest();
  if (now === undefined || now === told) return;
  const changed = [...now.keys()]
    .filter((key) => told?.get(key) !== now.get(key));
  const gone = [...told?.keys() ?? []].filter((key) => !now.has(key));
  const isWhole = told === undefined;
  if (!isWhole && changed.length + gone.length === 0) return;
  for (let from = 0; from === 0 || from < changed.length; from += ITEMS_MAX) {
    yield () => {
      const data: ListChange<object> = {
        isWhole: isWhole && from === 0,
        // Read when their turn comes; an item that is gone by then is reported
        // with the next message.
        changed: changed.slice(from, from + ITEMS_MAX)
          .flatMap((key) => newest()?.get(key) ?? []),
        gone: from === 0 ? gone : [],
      };
      return { name, data };
    };
  }
}

/** The present items. */
function renewed<T extends object>(
  before: Items<T> | undefined,
  items: Iterable<readonly [key: string, item: T]>,
): Items<T> {
  const now = new Map<string, T>();
  for (const [key, item] of items) {
    const known = before?.get(key);
    now.set(key, known !== undefined && isSame(known, item) ? known : item);
  }
  return now;
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
