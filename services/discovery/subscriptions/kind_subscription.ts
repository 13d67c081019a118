/**
 * What a client asked for of one kind, what it was sent, and what it is to be
 * sent next: all that SotW and Delta have in common. What the client
 * acknowledges is for `ack_tracker.ts`.
 *
 * A client is sent the difference between what it was sent last and what the
 * view has now (`difference.ts`), cut to what it asked for, and the pending
 * names besides (`pending.ts`). Both are computed once for all clients with the
 * same change, so a client whose names did not change costs a few lookups.
 *
 * One response is in flight. What changes meanwhile is found when it is
 * answered, and is then one difference, however often it changed.
 *
 * Reading order: `observe`, `respond`, `noteAnswer`, then `ack_tracker.ts`.
 *
 * @module
 */

import type {
  DiscoveryMode,
  ErrorDetail,
  ResponseBody,
} from "../../../proto/xds/discovery.ts";
import {
  isWholeState,
  type Resource,
  type ResourceKind,
} from "../../../proto/xds/resource.ts";
import type { ByName } from "../view/view.ts";
import { Difference, PendingNames } from "./difference.ts";
import {
  type KindStatus,
  type ResourceStatus,
  resourceStatusesOf,
} from "./stream_status.ts";
import {
  cutTo,
  type Names,
  type NameSet,
  namesOfList,
  NO_NAMES,
  NOTHING_NAMED,
  union,
} from "./name_set.ts";
import type { NackedResources } from "./nacked.ts";
import type { HeldRemovals } from "./removals.ts";
import {
  bodyOf,
  contentOf,
  firstPart,
  type MissingForm,
  select,
  type Selection,
  stateVersionOf,
} from "./selection.ts";
import type { InterimRoutes } from "../generate/routes.ts";
import { AckTracker } from "./ack_tracker.ts";

/** How a client is served where the protocol leaves a choice. */
export interface ClientProfile {
  /**
   * How long a removed resource stays after nothing leads to it any more; see
   * `REMOVAL_PATIENCE_MS`.
   */
  readonly removalPatienceMs: number;
  /** Whether refused content is retried, at ever longer intervals. */
  readonly retriesNacked: boolean;
  /**
   * Routes to be sent between two states, so that the client fetches clusters
   * before it needs them; absent: none.
   */
  interimRoutesOf?(before: ByName, after: ByName): InterimRoutes | undefined;
}

/** The choices that the protocol suggests. */
export const PLAIN_PROFILE: ClientProfile = Object.freeze({
  removalPatienceMs: 0,
  retriesNacked: false,
});

/** A response, and the names that it has new content of. */
export interface SentResponse {
  readonly body: ResponseBody;
  readonly nonce: string;
  readonly fresh: Names;
}

/** The moment of an observation. */
export interface Observation {
  /** Counts up with each view of the stream. */
  readonly generation: number;
  readonly nowMs: number;
  /** Whether a removed resource stays until nothing leads to it. */
  readonly holdsRemovals: boolean;
  /** Whether the stream knows the client to be slow. */
  readonly isLate: boolean;
}

/** See the module description. */
export abstract class KindSubscription {
  #names: NameSet = NOTHING_NAMED;
  protected readonly pending = new PendingNames();
  protected readonly acks: AckTracker;
  readonly #difference: Difference;
  #clearedTo = 0;
  /** Of the last whole state. */
  #content = "";
  readonly #missing: MissingForm;
  /** Whether each response has the whole state. */
  protected readonly isWhole: boolean;

  constructor(
    readonly kind: ResourceKind,
    mode: DiscoveryMode,
    { removalPatienceMs, retriesNacked }: ClientProfile,
  ) {
    this.isWhole = mode === "sotw" && isWholeState(kind);
    this.#missing = mode === "delta"
      ? "removed"
      : this.isWhole
      ? "absent"
      : "unsaid";
    this.acks = new AckTracker(this.isWhole, retriesNacked);
    this.#difference = new Difference(
      this.#missing,
      removalPatienceMs,
      this.acks,
    );
  }

  /** The names to be sent first, now that the first view is there. */
  protected abstract firstPending(now: ByName): Names;

  /**
   * The content of a response about `names`.
   *
   * @param pending Those of them that are sent whether they changed or not.
   */
  protected abstract compose(names: Names, pending: Names): Selection;

  /** The state that the client was sent last; absent before the first view. */
  protected get sent(): ByName | undefined {
    return this.#difference.sent;
  }

  /** The state that may be sent. */
  get now(): ByName {
    return this.#difference.now;
  }

  /** Removed resources that the client still has. */
  protected get held(): HeldRemovals | undefined {
    return this.#difference.held;
  }

  /** Absent while the client refuses nothing. */
  protected get nacked(): NackedResources | undefined {
    return this.acks.nacked;
  }

  /** The names that the client asks for. */
  protected get names(): NameSet {
    return this.#names;
  }

  /** A name that it asks for no longer is forgotten as refused. */
  protected set names(names: NameSet) {
    this.#names = names;
    this.nacked?.forgetUnasked(names);
  }

  /** Whether the client waits for something that it asked for. */
  get isAwaited(): boolean {
    return this.pending.isAwaited;
  }

  get isEmpty(): boolean {
    return this.#names.isEmpty;
  }

  /** Characters of what is asked for. */
  get namesLength(): number {
    return this.#names.length;
  }

  /** Whether the client still has removed resources. */
  get isHolding(): boolean {
    return this.#difference.isHolding;
  }

  /** Whether the client has not answered the last response. */
  get isOpen(): boolean {
    return this.acks.inFlight !== undefined;
  }

  /** Nonce of the last response; empty before the first. */
  get nonce(): string {
    return this.acks.nonce;
  }

  /**
   * The generation of views up to which the client acknowledged everything
   * of this kind.
   */
  get clearedTo(): number {
    return this.#clearedTo;
  }

  /** When there may be something without a request or a view; else Infinity. */
  get dueMs(): number {
    const otherMs = Math.min(
      this.held?.dueMs ?? Infinity,
      this.nacked?.dueMs ?? Infinity,
    );
    const { dueMs } = this.acks;
    return dueMs < otherMs && this.#hasNews() ? dueMs : otherMs;
  }

  /** Whether something is to be sent that waits for an answer. */
  isBlocked(nowMs: number): boolean {
    return this.acks.isWaiting(nowMs) && this.#hasNews();
  }

  asksFor(name: string): boolean {
    return this.#names.covers(name);
  }

  /**
   * Whether the client has some version of `name`, or none is expected: it does
   * not request it, refuses it, or it does not exist.
   */
  isUsable(name: string): boolean {
    if (!this.#names.covers(name) || !this.now.has(name)) return true;
    if (this.nacked?.has(name)) return true;
    if (this.sent?.has(name) !== true) return false;
    return !this.pending.names.has(name) && !this.acks.isUnanswered(name);
  }

  // --- Changes ---------------------------------------------------------------

  /**
   * Notes that nothing changed; else call {@linkcode observe}.
   *
   * @returns Whether that is so.
   */
  stays(now: ByName, generation: number): boolean {
    if (!this.#difference.stays(now, generation)) return false;
    this.#settle();
    return true;
  }

  /** Takes the state of the latest view, which {@linkcode stays} did not. */
  observe(now: ByName, moment: Observation): void {
    const { generation, nowMs, holdsRemovals, isLate } = moment;
    const difference = this.#difference;
    difference.observe(now, generation);
    if (difference.sent === undefined) {
      difference.advance();
      this.addPending(this.firstPending(now));
      return this.#settle();
    }
    if (holdsRemovals) difference.holdGone(this.names, this.pending, nowMs);
    const back = this.nacked?.lookAtGone(now, difference.sent) ?? [];
    if (back.length > 0) this.addPending(new Set(back));
    difference.lookAtHeld(nowMs);
    const news = difference.news(this.names);
    if (news.size === 0) difference.advance();
    else if (isLate || this.acks.isSlow(nowMs)) {
      difference.letGo(news);
      this.pending.add(news);
    }
    this.#settle();
  }

  /** Refused content may be due for a retry. */
  retryNacked(nowMs: number): void {
    // Not while something else is in flight: the answer would be about both.
    if (this.nacked === undefined || this.acks.isWaiting(nowMs)) return;
    const names = this.nacked.takeRetries(nowMs);
    if (names.length === 0) return;
    this.addPending(new Set(names));
    // It may be the last whole state, which was refused.
    if (this.isWhole) this.pending.mustAnswer = true;
  }

  /** Releases removals that nothing leads to any more. */
  release(clearedTo: number, nowMs: number): void {
    const released = this.#difference.release(this.names, clearedTo, nowMs);
    if (released.size === 0) return;
    this.pending.noteReleased(released);
    this.addPending(released);
  }

  /** Names are to be sent whether they changed or not. */
  protected addPending(names: Names): void {
    this.pending.add(cutTo(names, this.names));
  }

  /** The client requests names for the first time, or again. */
  protected answer(names: Names): void {
    this.pending.noteAsked(names);
    this.addPending(names);
  }

  /**
   * The content to send for `resource`. If it was refused, that is the last
   * acknowledged version, and only if the name is pending; a suspect is tried
   * then.
   */
  protected sendable(resource: Resource, pending: Names): Resource | undefined {
    const isPending = pending.has(resource.name);
    if (isPending && this.nacked?.tries(resource)) return resource;
    const taken = this.acks.acked(resource);
    return taken === resource || isPending ? taken : undefined;
  }

  /** Those of some resources that are sent, as they are or as others. */
  protected sendableOf(
    resources: readonly Resource[],
    pending: Names,
  ): Resource[] {
    return resources
      .flatMap((resource) => this.sendable(resource, pending) ?? []);
  }

  #hasNews(): boolean {
    return !this.pending.isNothing ||
      this.#difference.news(this.names).size > 0;
  }

  #settle(): void {
    const isSettled = this.acks.isClear && this.pending.isNothing &&
      !this.isHolding;
    if (isSettled) this.#clearedTo = this.#difference.sentGeneration;
  }

  // --- Responses -------------------------------------------------------------

  /**
   * The next response, if any; it counts as sent.
   *
   * @param nextNonce Called for a response.
   */
  respond(nowMs: number, nextNonce: () => string): SentResponse | undefined {
    if (this.sent === undefined || this.acks.isWaiting(nowMs)) return undefined;
    const pending = cutTo(this.pending.names, this.names);
    const names = union(pending, this.#difference.news(this.names));
    if (names.size === 0 && !this.pending.mustAnswer) {
      this.pending.reset(NO_NAMES);
      this.#settle();
      return undefined;
    }
    const { selection, rest } = this.#select(names, pending);
    const version = this.#versionOf(selection);
    const body = bodyOf(this.kind, selection, this.#missing, version);
    const isSaid = this.pending.mustAnswer || this.#says(body);
    const before = this.sent;
    this.pending.reset(rest);
    this.#difference.advance();
    if (!isSaid) {
      if (rest.size > 0) return this.respond(nowMs, nextNonce);
      this.#settle();
      return undefined;
    }
    const fresh = this.#freshOf(names, body);
    const { resources, removed } = body;
    const nonce = nextNonce();
    const inFlight = { resources, removed, before, pending, fresh };
    this.acks.noteSent(inFlight, { version, nonce, atMs: nowMs });
    this.onSent(body);
    if (this.isWhole) this.#content = contentOf(resources);
    return { body, nonce, fresh };
  }

  protected onSent(_body: ResponseBody): void {}

  /** Names that a response brings something new of, as far as the client knows. */
  #freshOf(names: Names, { resources }: ResponseBody): Names {
    if (!this.isWhole) return namesOfList(resources);
    const fresh = union(this.acks.unacked(), names);
    const changed = cutTo(fresh, this.names);
    if (this.nacked === undefined && !this.isHolding) {
      return namesOfList(select(changed, this.now).resources);
    }
    // A replacement, or a held resource, is new to a client that does not have
    // it.
    return namesOfList(resources.filter(({ name }) => changed.has(name)));
  }

  #select(
    names: Names,
    pending: Names,
  ): { selection: Selection; rest: Names } {
    if (this.isWhole) {
      return { selection: this.compose(names, pending), rest: NO_NAMES };
    }
    const queued = this.nacked?.queueSuspects(names, pending, this.now);
    const part = firstPart(this.compose(queued?.first ?? names, pending));
    const rest = union(part.rest, queued?.later ?? NO_NAMES);
    return { selection: part.selection, rest };
  }

  #says({ resources, removed }: ResponseBody): boolean {
    if (!this.isWhole) return resources.length > 0 || removed.length > 0;
    // Acknowledged or refused: the client has received exactly this.
    return contentOf(resources) !== this.#content;
  }

  /**
   * A whole state with replaced or omitted resources gets a version of its own.
   */
  #versionOf({ resources }: Selection): string {
    const isAsItIs = !this.isWhole ||
      (this.nacked === undefined && !this.isHolding);
    return isAsItIs
      ? stateVersionOf(this.names, this.now)
      : contentOf(resources);
  }

  // --- Answers ---------------------------------------------------------------

  /**
   * The client speaks of the last response.
   *
   * @param wanted The names that it asked for then.
   */
  protected noteAnswer(
    error: ErrorDetail | undefined,
    wanted: NameSet,
    nowMs: number,
  ): void {
    if (error !== undefined) {
      const { now, held, pending: { asked } } = this;
      const against = { now, held, wanted, asked, nowMs };
      return this.addPending(this.acks.noteNacked(error, against));
    }
    if (this.acks.inFlight === undefined) return;
    this.acks.noteAcked(this.sent!, this.pending.names, nowMs);
    this.#settle();
  }

  /**
   * What the client has and should have, name by name; for people.
   *
   * @param latest The state of the latest view, whether it may be sent or not.
   */
  resourceStatuses(latest = this.now): readonly ResourceStatus[] {
    const { names, sent, held, acks } = this;
    const pending = this.pending.names;
    return resourceStatusesOf({
      names,
      sent,
      now: latest,
      pending,
      held,
      acks,
    });
  }

  /** For people. */
  get status(): KindStatus {
    const nackedNames = this.nacked?.names ?? [];
    return {
      kind: this.kind,
      wildcard: this.names.isWildcard,
      names: this.names.names.size,
      isBehind: this.#hasNews() || this.isHolding,
      nackedNames,
      isRefused: this.acks.isRefused || nackedNames.length > 0,
      ...this.acks.status,
    };
  }
}
