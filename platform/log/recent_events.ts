/**
 * Recent events: two rings, so that many refusals do not push out links that
 * came or went. Repeated events are one entry with a count, so that a peer
 * which tries again and again does not fill a ring. An entry has a few hundred
 * bytes at most.
 *
 * @module
 */

import type { EventInfo } from "../../proto/admin/list_answers.ts";
import { kept } from "../../proto/peer/quoted.ts";
import type { Log, LogFields } from "./log.ts";
import { lineKey } from "./line_key.ts";

/** Of each of the two rings: twice what a server with 5,000 nodes links again. */
export const RECENT_EVENTS_MAX = 10_000;

/** Longest sentence that is kept. */
export const RECENT_EVENT_LENGTH_MAX = 500;

/** Longest name of a node that is kept. */
const NODE_LENGTH_MAX = 253;

/** What peers can make as many of as they like. */
const NOISY: ReadonlySet<EventInfo["kind"]> = new Set([
  "refused",
  "dial-failed",
  "warning",
]);

/** Facts about an event beside its kind and its sentence. */
export interface EventFacts {
  readonly node?: string | undefined;
  readonly code?: string | undefined;
}

/** Which events are wanted. */
export interface EventQuery {
  readonly limit: number;
  readonly node?: string | undefined;
  readonly kind?: string | undefined;
  /** Those that came or were counted behind this one; see `newest`. */
  readonly after?: number | undefined;
}

interface Entry {
  readonly kind: EventInfo["kind"];
  readonly message: string;
  readonly node: string | undefined;
  readonly code: string | undefined;
  readonly firstMs: number;
  atMs: number;
  times: number;
  /** Grows with each event. */
  number: number;
}

/** A kind of event that repeats, and since when. */
export interface Repeated {
  readonly event: EventInfo;
  readonly since: string;
}

/** See the module description. */
export class RecentEvents {
  /**
   * In order of their last time; the key is the part that makes two events
   * equal.
   */
  readonly #quiet = new Map<string, Entry>();
  readonly #noisy = new Map<string, Entry>();
  #number = 0;

  constructor(private readonly wallMs: () => number = Date.now) {}

  /** Grows with each event, so that a follower knows which events are new. */
  get newest(): number {
    return this.#number;
  }

  /** @param message As for a log; the ports in it make no two of one. */
  note(
    kind: EventInfo["kind"],
    message: string,
    { node, code }: EventFacts = {},
  ): void {
    const ring = NOISY.has(kind) ? this.#noisy : this.#quiet;
    const clipped = kept(message, RECENT_EVENT_LENGTH_MAX);
    const name = node && kept(node, NODE_LENGTH_MAX);
    const key = `${kind}\n${name ?? ""}\n${lineKey(clipped)}`;
    const atMs = this.wallMs();
    const number = ++this.#number;
    const known = ring.get(key);
    if (known === undefined) {
      const firstMs = atMs;
      ring.set(key, {
        ...{ kind, message: clipped, node: name, code },
        ...{ firstMs, atMs, times: 1, number },
      });
      if (ring.size <= RECENT_EVENTS_MAX) return;
      for (const oldest of ring.keys()) return void ring.delete(oldest);
    } else {
      ring.delete(key);
      ring.set(key, known);
      known.atMs = atMs;
      known.times++;
      known.number = number;
    }
  }

  /** Newest first. */
  list(query: EventQuery): readonly EventInfo[] {
    return this.#find(query).map(infoOf);
  }

  /** Events of one kind, with the time of the first sighting; newest first. */
  repeated(kind: EventInfo["kind"], sinceMs: number): readonly Repeated[] {
    return this.#find({ kind, limit: RECENT_EVENTS_MAX })
      .filter(({ atMs }) => atMs >= sinceMs)
      .map((entry) => ({
        event: infoOf(entry),
        since: new Date(entry.firstMs).toISOString(),
      }));
  }

  #find({ node, kind, limit, after = 0 }: EventQuery): readonly Entry[] {
    const found: Entry[] = [];
    for (const ring of [this.#quiet, this.#noisy]) {
      for (const entry of ring.values()) {
        const isWanted = entry.number > after &&
          (node === undefined || entry.node === node) &&
          (kind === undefined || entry.kind === kind);
        if (isWanted) found.push(entry);
      }
    }
    return found.sort((a, b) => b.number - a.number).slice(0, limit);
  }
}

function infoOf({ atMs, kind, message, node, code, times }: Entry): EventInfo {
  return {
    at: new Date(atMs).toISOString(),
    kind,
    code,
    message,
    node,
    times: times === 1 ? undefined : times,
  };
}

/** Log lines that become events of a kind of their own, by their first words. */
export type EventLines = readonly (readonly [
  beginning: string,
  kind: EventInfo["kind"],
])[];

/**
 * `log`, whose warnings and errors are noted as well, and those lines that
 * `lines` knows. Each is noted at any level of the log.
 */
export function withEvents(
  log: Log,
  events: RecentEvents,
  lines: EventLines,
): Log {
  const kindOf = (message: string) =>
    lines.find(([beginning]) => message.startsWith(beginning))?.[1];
  const noted = <Fields extends LogFields | undefined>(
    write: (message: string, fields: Fields, key?: string) => void,
    otherwise?: EventInfo["kind"],
  ) =>
  (message: string, fields: Fields, key?: string) => {
    const kind = kindOf(message) ?? otherwise;
    if (kind !== undefined) events.note(kind, message, factsOf(fields));
    write(message, fields, key);
  };
  return {
    error: noted(log.error.bind(log), "warning"),
    warn: noted(log.warn.bind(log), "warning"),
    info: noted(log.info.bind(log)),
    event: noted(log.event.bind(log)),
    get wantsDetails() {
      return log.wantsDetails;
    },
    detail: (message, fields) => log.detail(message, fields),
    get wantsPackets() {
      return log.wantsPackets;
    },
    packet: (message) => log.packet(message),
  };
}

function factsOf(fields: LogFields | undefined): EventFacts {
  if (fields === undefined) return {};
  const text = (value: unknown) =>
    typeof value === "string" ? value : undefined;
  const { node, agent, code } = fields;
  return { node: text(node) ?? text(agent), code: text(code) };
}
