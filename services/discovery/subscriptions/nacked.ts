/**
 * Content that a client refused (NACK), and what it has instead.
 *
 * Refused content is not sent again until it changes: the client would refuse
 * it again, and that loop is the best known failure of such servers. If the
 * NACK names a resource, only that one counts as refused. The server does not
 * know which others the client applied, and assumes nothing: the next content
 * is sent, even when it is what the client had before.
 *
 * A NACK that names none leaves each resource of the response a suspect: the
 * client may use it, and what it acknowledged before may be gone. So a suspect
 * that must be sent, because its cluster changed, is tried once more, alone, so
 * that the answer is about it only.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import type { ByName } from "../view/view.ts";
import { type Names, type NameSet, NO_NAMES } from "./name_set.ts";

/**
 * Refused content is retried after this, and each time after twice as long: the
 * cause may be outside, such as a port that another program uses. Envoy retries
 * nothing by itself.
 */
export const NACK_RETRY_MS_MIN = 60_000;

/** The longest time between two retries. */
export const NACK_RETRY_MS_MAX = 1_800_000;

/** Names that are retried at once; then a second passes. */
export const NACK_RETRIES_MAX = 16;
const NACK_RETRY_GAP_MS = 1_000;

/** Characters of a client's message that are kept. */
export const NACK_MESSAGE_MAX = 1_024;

/** One refused resource. */
interface NackedContent {
  readonly version: string;
  /** What the client acknowledged last; absent if that is unknown. */
  readonly good: Resource | undefined;
  /** Whether another resource of the same response may be the bad one. */
  readonly isSuspect: boolean;
  /** The client's message. */
  readonly reason: string;
  /** How often this content was refused. */
  readonly times: number;
  /** When it is retried. */
  readonly dueMs: number;
  /** Whether it is being retried, and not answered yet. */
  readonly isRetried: boolean;
  /** Whether the resource is gone, and the client was not sent that yet. */
  readonly isGone?: boolean;
}

/** How a resource was refused. */
export interface Nack {
  /** The last acknowledged version, if known. */
  readonly good: Resource | undefined;
  /** Whether the view has the refused content; else that stood in for another. */
  readonly isThere: boolean;
  /** See the module description. */
  readonly isSuspect: boolean;
  /** The client's message. */
  readonly reason: string;
  readonly nowMs: number;
}

/** Names for the next response, and names for later ones. */
export interface Queued {
  readonly first: Names;
  readonly later: Names;
}

/** See the module description; of one kind on one stream. */
export class NackedResources {
  readonly #byName = new Map<string, NackedContent>();
  /** When the next is retried; absent: it has to be computed. */
  #dueMs: number | undefined;
  #retriedMs = -Infinity;

  /** @param retriesNacked Else refused content is not sent until it changes. */
  constructor(private readonly retriesNacked: boolean) {}

  /** When {@linkcode takeRetries} has something; else Infinity. */
  get dueMs(): number {
    if (!this.retriesNacked) return Infinity;
    if (this.#dueMs === undefined) {
      let firstMs = Infinity;
      for (const { dueMs, isRetried, isGone } of this.#byName.values()) {
        if (!isRetried && !isGone && dueMs < firstMs) firstMs = dueMs;
      }
      this.#dueMs = firstMs;
    }
    return Math.max(this.#dueMs, this.#retriedMs + NACK_RETRY_GAP_MS);
  }

  get size(): number {
    return this.#byName.size;
  }

  get names(): readonly string[] {
    return [...this.#byName].flatMap(([name, { isGone }]) =>
      isGone ? [] : [name]
    );
  }

  /** An earlier entry of the name keeps its good content, where it has any. */
  add(
    { name, version }: Resource,
    { good, isThere, isSuspect, reason, nowMs }: Nack,
  ): void {
    const before = this.#byName.get(name);
    const times = before?.version === version ? before.times + 1 : 1;
    const entry: NackedContent = {
      ...{ version, good, isSuspect, reason, times, isRetried: false },
      dueMs: nowMs + waitMs(times),
    };
    if (before === undefined) {
      this.#set(name, entry);
    } else if (before.good?.version !== version) {
      this.#set(name, { ...entry, good: before.good });
    } else if (isThere && before.version !== version) {
      // The content that seemed to be good was only unanswered.
      this.#set(name, { ...entry, good: undefined });
    } // It stands in for the content that was refused first, which stays refused.
  }

  #set(name: string, entry: NackedContent): void {
    this.#byName.set(name, entry);
    this.#dueMs = undefined;
  }

  /** Names that are retried from now on, until they are answered. */
  takeRetries(nowMs: number): readonly string[] {
    if (nowMs < this.dueMs) return [];
    const names: string[] = [];
    for (const [name, entry] of this.#byName) {
      if (entry.isRetried || entry.isGone || nowMs < entry.dueMs) continue;
      if (names.length === NACK_RETRIES_MAX) break;
      names.push(name);
      this.#set(name, { ...entry, isRetried: true });
    }
    this.#retriedMs = nowMs;
    return names;
  }

  /** A refused response had these: each retry among them has failed. */
  noteRetriesRefused(
    resources: readonly Resource[],
    nowMs: number,
  ): void {
    for (const { name } of resources) {
      const entry = this.#byName.get(name);
      if (entry?.isRetried !== true) continue;
      const times = entry.times + 1;
      const dueMs = nowMs + waitMs(times);
      this.#set(name, { ...entry, times, dueMs, isRetried: false });
    }
  }

  /** Whether exactly this content is being retried. */
  isRetried({ name, version }: Resource): boolean {
    const entry = this.#byName.get(name);
    return entry?.version === version && entry.isRetried;
  }

  /** Whether content of a name was refused, and none acknowledged since. */
  has(name: string): boolean {
    return this.#byName.has(name);
  }

  /** The client's message about a name. */
  reasonOf(name: string): string | undefined {
    return this.#byName.get(name)?.reason;
  }

  /** Whether exactly this content was refused. */
  isNacked({ name, version }: Resource): boolean {
    return this.#byName.get(name)?.version === version;
  }

  /**
   * Whether exactly this content was refused, alone or together with other
   * content.
   */
  suspects({ name, version }: Resource): boolean {
    const entry = this.#byName.get(name);
    return entry?.version === version && entry.isSuspect;
  }

  /** Whether exactly this content is sent when its name has to be sent. */
  tries(resource: Resource): boolean {
    return this.suspects(resource) || this.isRetried(resource);
  }

  /** What the client has instead of refused content, if that is known. */
  standIn({ name }: Resource): Resource | undefined {
    const entry = this.#byName.get(name);
    // The client may use the suspect itself.
    return entry?.isSuspect ? undefined : entry?.good;
  }

  /**
   * Separates names that may be sent together from suspects, which are sent one
   * by one.
   *
   * @param names What is to be sent.
   * @param pending Those of them that are sent whether they changed or not.
   */
  queueSuspects(names: Names, pending: Names, now: ByName): Queued {
    const suspects: string[] = [];
    for (const name of this.#byName.keys()) {
      const resource = pending.has(name) ? now.get(name) : undefined;
      if (resource && this.suspects(resource)) suspects.push(name);
    }
    if (suspects.length === 0) return { first: names, later: NO_NAMES };
    const others = new Set(names);
    for (const name of suspects) others.delete(name);
    const first = others.size > 0 ? others : new Set([suspects.shift()!]);
    return { first, later: new Set(suspects) };
  }

  /** A name that the client asks for again is sent again. */
  forgetUnasked(asked: NameSet): void {
    for (const name of this.#byName.keys()) {
      if (!asked.covers(name)) this.#byName.delete(name);
    }
  }

  forget(names: Names): void {
    for (const name of names) this.#byName.delete(name);
  }

  /**
   * Forgets resources that are gone, except those whose refused content is in
   * `sent`: without its entry that content would count as acknowledged.
   *
   * @returns Names that are back with the refused content, to be retried.
   */
  lookAtGone(now: ByName, sent: ByName): readonly string[] {
    const back: string[] = [];
    for (const [name, entry] of this.#byName) {
      if (now.has(name)) {
        if (entry.isGone !== true) continue;
        const isSame = now.get(name)!.version === entry.version;
        this.#set(name, { ...entry, isGone: false, isRetried: isSame });
        if (isSame) back.push(name);
      } else if (sent.get(name)?.version !== entry.version) {
        this.#byName.delete(name);
      } else if (!entry.isGone) {
        this.#set(name, { ...entry, isGone: true, isRetried: false });
      }
    }
    return back;
  }

  /**
   * The client acknowledges a response: forgets what that replaces.
   *
   * @param acked Its resources; a suspect among them is none any more.
   */
  forgetAcked(sent: ByName, acked: readonly Resource[]): void {
    for (const resource of acked) {
      if (this.isNacked(resource)) this.#byName.delete(resource.name);
    }
    for (const [name, { version }] of this.#byName) {
      if (sent.get(name)?.version !== version) this.#byName.delete(name);
    }
  }
}

function waitMs(times: number): number {
  return Math.min(NACK_RETRY_MS_MIN * 2 ** (times - 1), NACK_RETRY_MS_MAX);
}

/** Part of a name, when it stands right beside one. */
const NAME_PART = /[\p{L}\p{N}_/-]/u;
/**
 * Characters of a name that may also stand behind it, at the end of a sentence.
 */
const NAME_JOINT = /[.:~@]/;

/** Those of `resources` that a client's message names. */
export function resourcesNamedIn(
  message: string,
  resources: readonly Resource[],
): readonly Resource[] {
  return resources.filter(({ name }) => isNamedIn(message, name));
}

function isNamedIn(message: string, name: string): boolean {
  if (name === "") return false;
  for (
    let at = message.indexOf(name);
    at >= 0;
    at = message.indexOf(name, at + 1)
  ) {
    if (isWholeName(message, at, at + name.length)) return true;
  }
  return false;
}

/** `web:80` is not named by `web:8080`, nor by `default/web:80`. */
function isWholeName(message: string, start: number, end: number): boolean {
  const before = message.charAt(start - 1);
  if (NAME_PART.test(before)) return false;
  if (NAME_JOINT.test(before) && NAME_PART.test(message.charAt(start - 2))) {
    return false;
  }
  const after = message.charAt(end);
  if (NAME_PART.test(after)) return false;
  return !(NAME_JOINT.test(after) && NAME_PART.test(message.charAt(end + 1)));
}
