/**
 * A client of xDS: asks for resources, keeps those that it receives, and
 * acknowledges or refuses them. State of the world or Delta; streams come and
 * go, resources stay.
 *
 * Sans-IO: requests leave by the callback of the open stream, responses come in
 * by `receive`, and the caller says what time it is. A reader of resources
 * decides about their content. This file does not know the server behind the
 * stream.
 *
 * A resource that cannot be used is refused alone, by name: the client takes
 * the others of its response, and keeps what it had by that name. Since Envoy
 * and gRPC do so as well, a server must not conclude from a refusal that
 * nothing changed.
 *
 * Reading order: `want`, `opened`, `receive`, `#answer`, `#askAll`; what
 * becomes of one resource is in `held_resources.ts`.
 *
 * @module
 */

import { clipped } from "../../proto/peer/quoted.ts";
import type {
  DiscoveryMode,
  DiscoveryNode,
  DiscoveryRequest,
  DiscoveryResponse,
} from "../../proto/xds/discovery.ts";
import {
  byKind,
  isWholeState,
  kindOfUrl,
  RESOURCE_KINDS,
  type ResourceKind,
} from "../../proto/xds/resource.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import {
  type AdsChange,
  AdsKind,
  type AdsKindStatus,
  type Held,
  HeldResources,
  type HeldResourcesOptions,
} from "./held_resources.ts";
import { subscription } from "./subscription.ts";

/**
 * A resource that the client asked for on an open stream and did not receive for so
 * long does not exist (xDS v3, "Knowing when a requested resource does not
 * exist").
 */
export const ABSENT_AFTER_MS = 15_000;

/** Resources that one refusal names at most. */
const NAMED_MAX = 20;

/** Characters of a refusal: servers log it, and show it in each status. */
const MESSAGE_LENGTH_MAX = 2_000;

/** What a client needs. */
export interface AdsClientOptions<T> extends HeldResourcesOptions<T> {
  readonly mode: DiscoveryMode;
  /** The node of the first request of each stream. */
  readonly node: DiscoveryNode;
  readonly timers: Timers;
  /** All changes of one response, or of one lapse of time. */
  readonly onChanged: (changes: readonly AdsChange<T>[]) => void;
  /** A response is refused, for another reason than the last one of its kind. */
  readonly onRefused?: (kind: ResourceKind, refusal: string) => void;
  /** A response, or a lapse of time, is handled; everything wanted is requested. */
  readonly onSettled?: () => void;
}

/** Where requests go while a stream is open. */
export type SendRequest = (request: DiscoveryRequest) => void;

export class AdsClient<T> {
  readonly #kinds: Readonly<Record<ResourceKind, AdsKind<T>>>;
  readonly #held: HeldResources<T>;
  #send: SendRequest | undefined;
  #hasSentNode = false;
  #timer: Timer | undefined;

  constructor(private readonly options: AdsClientOptions<T>) {
    this.#kinds = byKind((kind) => new AdsKind<T>(kind));
    this.#held = new HeldResources(this.#kinds, options);
  }

  get mode(): DiscoveryMode {
    return this.options.mode;
  }

  /** The resources of a kind, by name. */
  held(kind: ResourceKind): ReadonlyMap<string, Held<T>> {
    return this.#kinds[kind].held;
  }

  /** Requested names that do not exist. */
  absent(kind: ResourceKind): ReadonlySet<string> {
    return this.#kinds[kind].absent;
  }

  /** Whether each requested name was received, or is known not to exist. */
  get isSynced(): boolean {
    return Object.values(this.#kinds).every((state) => state.isSynced);
  }

  /** Of each kind that is wanted, or ever was. */
  get status(): Readonly<Partial<Record<ResourceKind, AdsKindStatus>>> {
    return Object.fromEntries(
      RESOURCE_KINDS.filter((kind) => {
        const { wanted, responses } = this.#kinds[kind];
        return !wanted.isEmpty || responses > 0;
      }).map((kind) => [kind, this.#kinds[kind].status]),
    );
  }

  /**
   * Replaces the names that the client wants; it forgets all others, and what
   * those needed.
   *
   * @param isWildcard The client also wants every resource of this kind.
   */
  want(
    kind: ResourceKind,
    isWildcard: boolean,
    names: Iterable<string> = [],
  ): void {
    this.#kinds[kind].wanted.choose(isWildcard, names);
    const changes: AdsChange<T>[] = [];
    this.#held.forgetUnwanted(kind, changes);
    this.#tell(changes);
    this.#askAll();
  }

  /** A stream is open. */
  opened(send: SendRequest): void {
    this.#send = send;
    this.#hasSentNode = false;
    const { mode } = this.options;
    for (const state of Object.values(this.#kinds)) {
      state.subscription = subscription(mode, state);
      state.isUnconfirmed = mode === "delta" && state.isUnannounced;
    }
    this.#askAll();
  }

  /** The stream is over; what is held stays. */
  closed(): void {
    this.#send = undefined;
    this.#timer?.cancel();
    for (const state of Object.values(this.#kinds)) {
      state.subscription = undefined;
      state.lookedAt = undefined;
      // The silence of an unreachable server means nothing (gRFC A57).
      state.awaited.clear();
    }
  }

  /** The server has sent a response. */
  receive(received: DiscoveryResponse): void {
    const kind = kindOfUrl(received.typeUrl);
    const state = kind && this.#kinds[kind];
    // A kind that is not wanted any more is answered, too: a server may wait.
    if (state === undefined || !state.subscription?.isBegun) return;
    state.responses++;
    const changes: AdsChange<T>[] = [];
    const problems: string[] = [];
    const seen = new Set<string>();
    for (const resource of received.resources) {
      const { name } = resource;
      const problem = seen.has(name)
        ? "it is there twice"
        : this.#held.take(state, resource, changes);
      seen.add(name);
      if (problem !== undefined) problems.push(`${name}: ${problem}`);
    }
    if (this.options.mode === "sotw" && isWholeState(state.kind)) {
      for (const name of [...state.held.keys()]) {
        if (!seen.has(name)) this.#held.remove(state, name, changes);
      }
    }
    for (const name of received.removed) {
      this.#held.remove(state, name, changes);
    }
    if (state.isUnconfirmed) this.#awaitAll(state, seen);
    this.#tell(changes);
    this.#answer(state, received, problems);
    this.#askAll();
    this.options.onSettled?.();
  }

  #tell(changes: readonly AdsChange<T>[]): void {
    if (changes.length > 0) this.options.onChanged(changes);
  }

  // --- Requests ------------------------------------------------------------------

  #answer(
    state: AdsKind<T>,
    { version, nonce }: DiscoveryResponse,
    problems: readonly string[],
  ): void {
    const refusal = problems.length === 0 ? undefined : refusalOf(problems);
    if (refusal === undefined) {
      state.accepted++;
      state.acceptedVersion = version;
      state.refusal = undefined;
    } else {
      state.refused++;
      if (refusal !== state.refusal?.message) {
        this.options.onRefused?.(state.kind, refusal);
      }
      const atMs = this.options.timers.now();
      state.refusal = { message: refusal, version, atMs };
    }
    const code = StatusCode.INVALID_ARGUMENT;
    const errorDetail = refusal === undefined
      ? undefined
      : { code, message: refusal };
    this.#send?.(state.subscription!.answer(nonce, errorDetail));
  }

  /** Requests names that are wanted and not requested yet. */
  #askAll(): void {
    const send = this.#send;
    if (send === undefined) return;
    const dueMs = this.options.timers.now() + ABSENT_AFTER_MS;
    for (const state of Object.values(this.#kinds)) {
      const node = this.#hasSentNode ? undefined : this.options.node;
      for (const request of state.subscription!.ask(node)) {
        this.#hasSentNode = true;
        send(request);
      }
      const { names } = state.wanted;
      if (state.lookedAt === names) continue;
      state.lookedAt = names;
      for (const name of names) {
        const isKnown = state.held.has(name) || state.absent.has(name);
        if (!isKnown && !state.awaited.has(name)) {
          state.awaited.set(name, dueMs);
        }
      }
    }
    this.#arm();
  }

  /** The server sends everything: what it does not send is gone. */
  #awaitAll(state: AdsKind<T>, seen: ReadonlySet<string>): void {
    state.isUnconfirmed = false;
    const dueMs = this.options.timers.now() + ABSENT_AFTER_MS;
    for (const name of state.held.keys()) {
      if (!seen.has(name)) state.awaited.set(name, dueMs);
    }
  }

  // --- Absence -------------------------------------------------------------------

  #arm(): void {
    this.#timer?.cancel();
    let dueMs = Infinity;
    for (const { awaited } of Object.values(this.#kinds)) {
      const [first] = awaited.values();
      if (first !== undefined && first < dueMs) dueMs = first;
    }
    if (dueMs === Infinity) return;
    const { timers } = this.options;
    const delayMs = Math.max(0, dueMs - timers.now());
    this.#timer = timers.after(delayMs, () => this.#giveUpWaiting());
  }

  #giveUpWaiting(): void {
    const nowMs = this.options.timers.now();
    const changes: AdsChange<T>[] = [];
    for (const state of Object.values(this.#kinds)) {
      for (const [name, dueMs] of [...state.awaited]) {
        if (dueMs > nowMs) break;
        this.#held.remove(state, name, changes);
      }
    }
    this.#tell(changes);
    this.#askAll();
    this.options.onSettled?.();
  }
}

function refusalOf(problems: readonly string[]): string {
  const rest = problems.length - NAMED_MAX;
  const named = problems.slice(0, NAMED_MAX).join("; ") +
    (rest > 0 ? `; and ${rest} more` : "");
  return clipped(named, MESSAGE_LENGTH_MAX);
}
