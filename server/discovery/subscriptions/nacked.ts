/**
 * Content that a client refused, and what it has instead.
 *
 * What was refused is not sent again until it changes: a client that says no
 * says no again, and a loop of both is the best known failure of such servers. A
 * refusal names a resource when people are lucky; then only that one is parked.
 * What of the rest was applied is not known, so nothing is assumed of it: the
 * next content is sent, even when it is what the client had before.
 *
 * A refusal that names none leaves each resource of the response a suspect: the
 * client may run it, and what it took before may be long gone. So a suspect that
 * has to be told, because its cluster changed, is tried once more, alone; the
 * answer to that is about nothing else.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import type { ByName } from "../view/view.ts";
import type { NameSet } from "./name_set.ts";
import { type Names, NO_NAMES } from "./shared_names.ts";

/**
 * What was refused is offered again after this, and each time after twice as
 * long: what a client refuses may be the world's fault, such as a port that
 * another program has. Envoy tries nothing by itself.
 */
export const NACK_RETRY_MS_MIN = 60_000;

/** But not more seldom. */
export const NACK_RETRY_MS_MAX = 1_800_000;

/** So much at once, a second apart: suspects go one by one, each on its own. */
export const NACK_RETRIES_MAX = 16;
const NACK_RETRY_GAP_MS = 1_000;

/** Characters of a client's words that are kept. */
export const NACK_MESSAGE_MAX = 1_024;

/** One refused resource. */
interface NackedContent {
  readonly version: string;
  /** What the client took last; absent if that is not known. */
  readonly good: Resource | undefined;
  /** Whether it may be another one of the same response that is bad. */
  readonly isSuspect: boolean;
  /** The client's words. */
  readonly reason: string;
  /** How often this content was. */
  readonly times: number;
  /** When it is offered again. */
  readonly dueMs: number;
  /** Whether it is, and was not answered yet. */
  readonly isRetried: boolean;
  /** Whether there is nothing of the name for now, and the client was told of it. */
  readonly isGone?: boolean;
}

/** How something was refused. */
export interface Nack {
  /** What was taken before that, as far as it is known. */
  readonly good: Resource | undefined;
  /** Whether what was refused is what there is; else it stood in for it. */
  readonly isThere: boolean;
  /** See the module description. */
  readonly isSuspect: boolean;
  /** The client's words. */
  readonly reason: string;
  readonly nowMs: number;
}

/** What goes in one response, and what after it. */
export interface Queued {
  readonly first: Names;
  readonly later: Names;
}

/** See the module description; what one stream refused of one kind. */
export class NackedResources {
  readonly #byName = new Map<string, NackedContent>();
  readonly #retriesNacked: boolean;
  /** When the next is offered again; nothing: it has to be looked for. */
  #dueMs: number | undefined;
  #retriedMs = -Infinity;

  /** @param offersAgain Else nothing is, until it changes. */
  constructor(retriesNacked: boolean) {
    this.#retriesNacked = retriesNacked;
  }

  /** When {@linkcode takeDue} has something; else Infinity. */
  get dueMs(): number {
    if (!this.#retriesNacked) return Infinity;
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

  /** What was good before counts no more when something is parked already. */
  park(
    { name, version }: Resource,
    { good, isThere, isSuspect, reason, nowMs }: Nack,
  ): void {
    const before = this.#byName.get(name);
    const times = before?.version === version ? before.times + 1 : 1;
    const parked: NackedContent = {
      ...{ version, good, isSuspect, reason, times, isRetried: false },
      dueMs: nowMs + waitMs(times),
    };
    if (before === undefined) {
      this.#set(name, parked);
    } else if (before.good?.version !== version) {
      this.#set(name, { ...parked, good: before.good });
    } else if (isThere && before.version !== version) {
      // What seemed to be good was only not answered.
      this.#set(name, { ...parked, good: undefined });
    } // It stood in for what was refused first, and that is still so.
  }

  #set(name: string, parked: NackedContent): void {
    this.#byName.set(name, parked);
    this.#dueMs = undefined;
  }

  /** Names of what is offered again from now on, until it is answered. */
  takeRetries(nowMs: number): readonly string[] {
    if (nowMs < this.dueMs) return [];
    const names: string[] = [];
    for (const [name, parked] of this.#byName) {
      if (parked.isRetried || parked.isGone || nowMs < parked.dueMs) continue;
      if (names.length === NACK_RETRIES_MAX) break;
      names.push(name);
      this.#set(name, { ...parked, isRetried: true });
    }
    this.#retriedMs = nowMs;
    return names;
  }

  /** A response was refused, and what it offered with it, if it was not named. */
  noteRetriesRefused(
    resources: readonly Resource[],
    { nowMs }: { readonly nowMs: number },
  ): void {
    for (const { name } of resources) {
      const parked = this.#byName.get(name);
      if (parked?.isRetried !== true) continue;
      const times = parked.times + 1;
      const dueMs = nowMs + waitMs(times);
      this.#set(name, { ...parked, times, dueMs, isRetried: false });
    }
  }

  /** Whether exactly this is offered again. */
  isRetried({ name, version }: Resource): boolean {
    const parked = this.#byName.get(name);
    return parked?.version === version && parked.isRetried;
  }

  /** Whether anything of a name was refused, and nothing taken since. */
  has(name: string): boolean {
    return this.#byName.has(name);
  }

  /** Why something of a name is refused, as the client said it. */
  reasonOf(name: string): string | undefined {
    return this.#byName.get(name)?.reason;
  }

  /** Whether exactly this was refused. */
  isNacked({ name, version }: Resource): boolean {
    return this.#byName.get(name)?.version === version;
  }

  /** Whether exactly this was refused, or maybe something beside it. */
  suspects({ name, version }: Resource): boolean {
    const parked = this.#byName.get(name);
    return parked?.version === version && parked.isSuspect;
  }

  /** Whether exactly this is told to who has to be told something. */
  tries(resource: Resource): boolean {
    return this.suspects(resource) || this.isRetried(resource);
  }

  /** What the client has instead; only of what is held. */
  standIn({ name }: Resource): Resource | undefined {
    const parked = this.#byName.get(name);
    // It may have what is held as well.
    return parked?.isSuspect ? undefined : parked?.good;
  }

  /**
   * Parts what may be told together from suspects, which go one by one.
   *
   * @param names What is to be told.
   * @param owed Those of them that are told whether they changed or not.
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

  /** A client that asks again is told again. */
  forgetUnasked(asked: NameSet): void {
    for (const name of this.#byName.keys()) {
      if (!asked.covers(name)) this.#byName.delete(name);
    }
  }

  forget(names: Names): void {
    for (const name of names) this.#byName.delete(name);
  }

  /**
   * Nothing is refused of what is not there. But `told` may still say that the
   * client has it: then it is known to be refused until that changes.
   *
   * @returns Names that are back as they were refused: to be offered again.
   */
  lookAtGone(now: ByName, sent: ByName): readonly string[] {
    const back: string[] = [];
    for (const [name, parked] of this.#byName) {
      if (now.has(name)) {
        if (parked.isGone !== true) continue;
        const isSame = now.get(name)!.version === parked.version;
        this.#set(name, { ...parked, isGone: false, isRetried: isSame });
        if (isSame) back.push(name);
      } else if (sent.get(name)?.version !== parked.version) {
        this.#byName.delete(name);
      } else if (!parked.isGone) {
        this.#set(name, { ...parked, isGone: true, isRetried: false });
      }
    }
    return back;
  }

  /**
   * The client took what it was told: forgets what that is instead of.
   *
   * @param taken The response; a suspect in it is none any more.
   */
  forgetAcked(sent: ByName, taken: readonly Resource[]): void {
    for (const resource of taken) {
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
/** In a name, but also behind one, at the end of a sentence. */
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
