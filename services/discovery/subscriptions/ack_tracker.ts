/**
 * Which of the sent resources a client has, as far as its answers tell: it
 * acknowledges a response (ACK), refuses it (NACK), or has not answered yet;
 * and how often it did.
 *
 * After a NACK the client does not have what it was sent, and without an answer
 * the server does not know. The server must know it for two reasons: it must
 * not send refused content again, and it needs something to send in its place.
 *
 * Reading order: `noteSent`, `noteAcked`, `noteNacked`.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import type { ByName } from "../view/view.ts";
import {
  type Names,
  type NameSet,
  namesOfList,
  NO_NAMES,
  RESOURCE_NAME_LENGTH_MAX,
  union,
} from "./name_set.ts";
import {
  NACK_MESSAGE_MAX,
  NackedResources,
  resourcesNamedIn,
} from "./nacked.ts";
import type {
  KindStatus,
  NackedResponse,
  StampedResponse,
} from "./stream_status.ts";
import type { ErrorDetail } from "../../../proto/xds/discovery.ts";
import type { HeldRemovals } from "./removals.ts";

/** After so long without an answer the next response is sent. */
export const ANSWER_WAIT_MS = 10_000;

/**
 * A client that does not answer for this long is slow. The state that it was
 * sent is then freed, and with it the knowledge of additions and removals.
 */
export const SLOW_AFTER_MS = 1_000;

/** The state that a NACK is compared with. */
export interface NackContext {
  /** The resources of the view. */
  readonly now: ByName;
  readonly held: HeldRemovals | undefined;
  /** The names that the client asked for when it refused. */
  readonly wanted: NameSet;
  /** Names that the client requested again after the response was sent. */
  readonly asked: Names;
  readonly nowMs: number;
}

/** The part of a kind's status that is kept here. */
type Answered = Pick<
  KindStatus,
  | "sent"
  | "acked"
  | "nacked"
  | "inFlightSinceMs"
  | "responses"
  | "acks"
  | "nacks"
  | "stale"
>;

/** See the module description; of one kind on one stream. */
export class AckTracker {
  /** The last response … */
  #sent: StampedResponse | undefined;
  /** … until it is answered. */
  #inFlight: InFlight | undefined;
  #acked: StampedResponse | undefined;
  #lastNack: NackedResponse | undefined;
  #isRefused = false;
  readonly #counts = { responses: 0, acks: 0, nacks: 0, stale: 0 };
  #uncertain: Uncertain | undefined;
  #nacked: NackedResources | undefined;
  /** Names that were new in a refused whole state, until the next one. */
  #nackedFresh: Names = NO_NAMES;
  #blamed: Names = NO_NAMES;
  #hasPast = false;

  /**
   * @param isWhole Whether responses have the whole state.
   * @param retriesNacked Whether refused content is retried.
   */
  constructor(
    private readonly isWhole: boolean,
    private readonly retriesNacked: boolean,
  ) {}

  /** Of the last response; empty before the first. */
  get nonce(): string {
    return this.#sent?.nonce ?? "";
  }

  /** The response that is not answered yet. */
  get inFlight(): InFlight | undefined {
    return this.#inFlight;
  }

  /** Whether the last answer was a NACK. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Whether nothing was sent, or the last response is acknowledged. */
  get isClear(): boolean {
    return this.#inFlight === undefined && !this.#isRefused;
  }

  /** When the next response is sent even without an answer; else Infinity. */
  get dueMs(): number {
    return this.#openSinceMs + ANSWER_WAIT_MS;
  }

  /** Whether the next response waits for an answer to the last. */
  isWaiting(nowMs: number): boolean {
    return this.#inFlight !== undefined && nowMs < this.dueMs;
  }

  isSlow(nowMs: number): boolean {
    return nowMs >= this.#openSinceMs + SLOW_AFTER_MS;
  }

  get #openSinceMs(): number {
    return this.#inFlight === undefined ? Infinity : this.#sent!.atMs;
  }

  /** Absent while the client refuses nothing. */
  get nacked(): NackedResources | undefined {
    return this.#nacked;
  }

  /** The client's message in the last NACK. */
  get reason(): string | undefined {
    return this.#lastNack?.message;
  }

  /**
   * Names that were new in a whole state that the client refused without naming
   * a resource, until it acknowledges a state. The server cannot know what the
   * client has of them.
   */
  get blamed(): Names {
    return this.#blamed;
  }

  /** The client has a state from an earlier stream. */
  notePast(): void {
    this.#hasPast = true;
  }

  /** For people. */
  get status(): Answered {
    return {
      sent: this.#sent,
      acked: this.#acked,
      // The refused resource may be gone, too.
      nacked: this.isClear && (this.#nacked?.names ?? []).length === 0
        ? undefined
        : this.#lastNack,
      inFlightSinceMs: this.#inFlight && this.#sent!.atMs,
      ...this.#counts,
    };
  }

  // --- What the client has ---------------------------------------------------

  /** What the client has after it was sent `resource`: it may have refused it. */
  acked(resource: Resource): Resource | undefined {
    return this.#nacked?.isNacked(resource)
      ? this.#nacked.standIn(resource)
      : resource;
  }

  /**
   * What the client has of a resource that is gone.
   *
   * @param sent The content that it was sent last.
   * @param isPending Whether something of that name is still to be sent.
   */
  had(sent: Resource, isPending: boolean): Resource | undefined {
    const known = isPending ? this.#uncertain?.hadOf(sent.name) : undefined;
    return known === undefined ? this.acked(sent) : known.had;
  }

  /** Whether a name was sent and never acknowledged. */
  isUnanswered(name: string): boolean {
    if (this.#uncertain?.isUnanswered(name)) return true;
    if (this.#inFlight?.fresh.has(name) !== true) return false;
    const { before, pending } = this.#inFlight;
    return before?.has(name) !== true || pending.has(name);
  }

  /**
   * Remembers that the client has version `had` of a name, whatever it is sent
   * next. If `had` is in the response in flight, a NACK leaves the client with
   * its earlier version.
   */
  remember(name: string, had: Resource | undefined): void {
    const inFlight = this.#inFlight;
    this.#uncertain ??= new Uncertain();
    if (inFlight?.fresh.has(name) !== true) {
      return this.#uncertain.rememberOne(name, had);
    }
    if (this.#uncertain.hadOf(name)?.had !== undefined) return;
    const before = inFlight.pending.has(name)
      ? undefined
      : inFlight.before?.get(name);
    this.#uncertain.rememberOne(name, (before && this.acked(before)) ?? had);
  }

  // --- What is sent ----------------------------------------------------------

  /** Names that were new in unacknowledged whole states; returned once. */
  unacked(): Names {
    const names = this.#inFlight?.fresh ?? this.#nackedFresh;
    this.#nackedFresh = NO_NAMES;
    return names;
  }

  /** A response is sent; the one before may never be acknowledged. */
  noteSent(inFlight: InFlight, sent: StampedResponse): void {
    if (this.#inFlight !== undefined) this.#noteUncertain(this.#inFlight);
    this.#inFlight = inFlight;
    this.#sent = sent;
    this.#counts.responses++;
  }

  /** Remembers what matters of `sent`, so that the large old state is freed. */
  letGo(sent: ByName, news: Names): void {
    if (this.#inFlight !== undefined) {
      this.#noteUncertain(this.#inFlight);
      this.#inFlight = { ...this.#inFlight, before: undefined };
    }
    this.#uncertain ??= new Uncertain();
    this.#uncertain.remember(news, sent);
  }

  #noteUncertain(inFlight: InFlight): void {
    this.#uncertain ??= new Uncertain();
    this.#uncertain.add(inFlight, false);
  }

  // --- What the client answers -----------------------------------------------

  /** A request is about a response that was not the last. */
  noteStale(): void {
    this.#counts.stale++;
  }

  /**
   * The client acknowledges the last response.
   *
   * @param pending Names that are still to be sent.
   */
  noteAcked(sent: ByName, pending: Names, nowMs: number): void {
    const inFlight = this.#inFlight;
    const resources = inFlight?.resources ?? [];
    this.#inFlight = undefined;
    this.#isRefused = false;
    this.#counts.acks++;
    this.#acked = { ...this.#sent!, atMs: nowMs };
    this.#blamed = NO_NAMES;
    const isUncertain = this.#uncertain?.settle(
      pending,
      inFlight,
      this.isWhole,
    );
    if (isUncertain === false) this.#uncertain = undefined;
    this.#nacked?.forgetAcked(sent, resources);
    if (this.#nacked?.size === 0) this.#nacked = undefined;
    if (this.#nacked === undefined) this.#lastNack = undefined;
  }

  /**
   * The client refuses the last response.
   *
   * @returns Names whose retry is known to be bad now: something has to be sent in
   *   their place. And names whose removal was in the refused response.
   */
  noteNacked({ code, message }: ErrorDetail, against: NackContext): Names {
    const inFlight = this.#inFlight;
    const resources = inFlight?.resources ?? [];
    const named = resourcesNamedIn(message, resources);
    const blamed = named.length > 0 ? named : resources;
    const { nowMs } = against;
    const reason = message.slice(0, NACK_MESSAGE_MAX);
    this.#isRefused = true;
    this.#counts.nacks++;
    this.#lastNack = {
      ...{ ...this.#sent!, atMs: nowMs, code, message: reason },
      names: blamed.map(({ name }) => name.slice(0, RESOURCE_NAME_LENGTH_MAX)),
    };
    if (inFlight === undefined) return NO_NAMES;
    this.#inFlight = undefined;
    this.#uncertain ??= new Uncertain();
    const suspects = resources.filter((resource) =>
      this.#nacked?.suspects(resource)
    );
    this.#addNacked(named, inFlight, reason, against);
    this.#nacked?.noteRetriesRefused(resources, nowMs);
    if (this.isWhole) this.#exchangeHeld(named, inFlight, against.held);
    // When the NACK names some resources, the client may have applied the
    // others.
    this.#uncertain.add(inFlight, named.length === 0);
    this.#nackedFresh = inFlight.fresh;
    const isNameless = this.isWhole && named.length === 0;
    this.#blamed = isNameless ? inFlight.fresh : NO_NAMES;
    const bad = suspects.filter((resource) =>
      this.#nacked?.standIn(resource) !== undefined
    );
    // Some clients apply nothing of a refused response. A response with
    // removals only is not sent twice, or they would refuse it again and again.
    const gone = resources.length === 0
      ? []
      : inFlight.removed.filter((name) => !against.now.has(name));
    return new Set([...bad.map(({ name }) => name), ...gone]);
  }

  #addNacked(
    named: readonly Resource[],
    inFlight: InFlight,
    reason: string,
    { now, wanted, asked, nowMs }: NackContext,
  ): void {
    // A whole state without these names would remove good resources.
    const isAll = named.length === 0 && !this.isWhole;
    const blamed = isAll ? inFlight.resources : named;
    // A name that the client requested again since then is sent again.
    const refused = blamed.filter(({ name }) =>
      wanted.covers(name) && !asked.has(name) &&
      (this.isWhole || now.has(name))
    );
    if (refused.length === 0) return;
    this.#nacked ??= new NackedResources(this.retriesNacked);
    const isSuspect = isAll && inFlight.resources.length > 1;
    for (const resource of refused) {
      const isThere = now.get(resource.name)?.version === resource.version;
      const good = this.#goodBefore(resource, inFlight);
      const nack = { good, isThere, isSuspect, reason, nowMs };
      this.#nacked.add(resource, nack);
    }
  }

  /** Refused content does not stay in the whole state once it is gone. */
  #exchangeHeld(
    named: readonly Resource[],
    inFlight: InFlight,
    held: HeldRemovals | undefined,
  ): void {
    for (const resource of named) {
      const { name, version } = resource;
      if (held?.get(name)?.version !== version) continue;
      held.exchange(name, this.#goodBefore(resource, inFlight));
    }
  }

  /** What the client acknowledged last in the place of refused content. */
  #goodBefore(resource: Resource, inFlight: InFlight): Resource | undefined {
    const uncertain = this.#uncertain!;
    const had = uncertain.ackedInsteadOf(resource, inFlight);
    if (had !== undefined || !this.isWhole) return had;
    // Leaving it out of a whole state would remove it. It is better to repeat
    // the version that the client acknowledged, or may still have.
    const mayHaveOlder = this.#hasPast && uncertain.isFirst(resource, inFlight);
    return mayHaveOlder || uncertain.wasAcked(resource, inFlight)
      ? resource
      : undefined;
  }
}

/** A response that was sent. */
export interface InFlight {
  readonly resources: readonly Resource[];
  /** Delta: names that it removed. */
  readonly removed: readonly string[];
  /** The state that was sent before; absent when `Uncertain` remembers it. */
  readonly before: ByName | undefined;
  /** Names that it had to have whether they changed or not. */
  readonly pending: Names;
  /** Names with new content since the last acknowledged response. */
  readonly fresh: Names;
}

/**
 * The last acknowledged version of names whose newer version the client did not
 * acknowledge: it refused that response, or had not answered it when the next
 * response was due.
 *
 * Needed only when the client refuses a resource by name, to know what it has
 * instead. So nothing is remembered for a client that answers, and only the
 * differences for a client that does not.
 */
class Uncertain {
  readonly #had = new Map<string, Resource | undefined>();
  #neverHad: Names = NO_NAMES;
  /** Names that were sent for the first time, without an answer yet. */
  #maybeHas: Names = NO_NAMES;

  /**
   * A response was not acknowledged.
   *
   * @param isNacked Else it may be acknowledged yet.
   */
  add({ resources, before, pending }: InFlight, isNacked: boolean): void {
    const never = new Set<string>();
    if (!isNacked) this.#forgetAbsence(namesOfList(resources), never);
    for (const { name, version } of before === undefined ? [] : resources) {
      if (pending.has(name) || this.#isKnown(name)) continue;
      const had = before!.get(name);
      if (had === undefined) never.add(name);
      else if (had.version !== version) this.#had.set(name, had);
    }
    const names = union(pending, never);
    if (isNacked) this.#neverHad = union(this.#neverHad, names);
    else this.#maybeHas = union(this.#maybeHas, names);
  }

  /** Names that the client may have by now; before, it had nothing of them. */
  #forgetAbsence(sent: Names, into: Set<string>): void {
    for (const [name, had] of this.#had) {
      if (had !== undefined || !sent.has(name)) continue;
      this.#had.delete(name);
      into.add(name);
    }
  }

  /** `names` are about to be sent, and `sent` is the state that was sent last. */
  remember(names: Names, sent: ByName): void {
    for (const name of names) {
      if (this.#had.has(name) || this.#neverHad.has(name)) continue;
      this.#had.set(name, sent.get(name));
    }
  }

  /**
   * Remembers that the client has version `had` of a name, whatever it was
   * sent.
   */
  rememberOne(name: string, had: Resource | undefined): void {
    this.#had.set(name, had);
  }

  /**
   * The version that the client has of a remembered name; absent if it has
   * none.
   */
  hadOf(name: string): { readonly had: Resource | undefined } | undefined {
    return this.#had.has(name) ? { had: this.#had.get(name) } : undefined;
  }

  /**
   * The version that the client acknowledged last in place of the sent
   * `resource`; absent when there is none, or it is unknown.
   */
  ackedInsteadOf(
    { name, version }: Resource,
    { before, pending }: InFlight,
  ): Resource | undefined {
    const isRemembered = this.#had.has(name);
    if (!isRemembered && (this.#neverHad.has(name) || pending.has(name))) {
      return undefined;
    }
    const had = isRemembered ? this.#had.get(name) : before?.get(name);
    return had?.version === version ? undefined : had;
  }

  /** Whether a name was sent once, and nothing else is known. */
  isUnanswered(name: string): boolean {
    return this.#maybeHas.has(name);
  }

  /**
   * Whether a name was sent because the client asked for it, and is not
   * acknowledged yet.
   */
  isFirst({ name }: Resource, { pending }: InFlight): boolean {
    return pending.has(name) && !this.#isKnown(name);
  }

  /** Whether the client acknowledged `resource` before it was sent again. */
  wasAcked(
    { name, version }: Resource,
    { before, pending }: InFlight,
  ): boolean {
    if (this.#isKnown(name) || pending.has(name)) return false;
    return before === undefined || before.get(name)?.version === version;
  }

  /**
   * The client acknowledges a response.
   *
   * @param pending Names that are still to be sent.
   * @param acked The response.
   * @param isWhole Whether the response has the whole state.
   * @returns Whether anything is left.
   */
  settle(
    pending: Names,
    acked: InFlight | undefined,
    isWhole: boolean,
  ): boolean {
    this.#neverHad = NO_NAMES;
    this.#maybeHas = NO_NAMES;
    for (const name of this.#had.keys()) {
      if (!pending.has(name)) this.#had.delete(name);
    }
    if (this.#had.size > 0 && acked !== undefined) this.#has(acked, isWhole);
    return this.#had.size > 0;
  }

  /** The client has what the response had, of remembered names. */
  #has({ resources, removed }: InFlight, isWhole: boolean): void {
    const gone = isWhole ? [...this.#had.keys()] : removed;
    for (const name of gone) {
      if (this.#had.has(name)) this.#had.set(name, undefined);
    }
    for (const resource of resources) {
      if (this.#had.has(resource.name)) this.#had.set(resource.name, resource);
    }
  }

  #isKnown(name: string): boolean {
    return this.#had.has(name) || this.#neverHad.has(name) ||
      this.#maybeHas.has(name);
  }
}
