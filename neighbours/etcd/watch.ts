/**
 * One watch of a prefix, from a revision on, until it ends.
 *
 * It reports changes, whole revisions at a time, and why it ended: etcd has
 * compacted the revision, is another store, or does not answer.
 * `prefix_follower.ts` decides what follows.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type { EtcdClient, EtcdStream } from "./client.ts";
import { EtcdError, failureOf } from "./errors.ts";
import { bytesOf, type Entry, entryOf, Int64Text, prefixEnd } from "./keys.ts";
import {
  Event,
  ResponseHeader,
  WATCH_METHODS,
  WatchRequest,
  WatchResponse,
} from "./etcd_messages.ts";

/**
 * After this silence etcd is asked for a sign of life; its own progress
 * notifications come every ten minutes.
 */
export const WATCH_SILENCE_MS = 30_000;

/**
 * And asked again, because etcd from 3.4.25 and 3.5.8 on forgets the question
 * if a watch is behind when it comes.
 */
export const ASK_AGAIN_MS = 1_000;

/** The watch is given up after this time without an answer. */
export const WATCH_ANSWER_MS = 10_000;

/**
 * Limit on the events of one revision that are kept until the last one comes.
 * etcd allows 128 operations in a transaction by default; a deletion of a
 * prefix is one of them, and has an event for each key.
 */
export const EVENTS_MAX = 200_000;

/** What a key holds now. */
export interface Change extends Omit<Entry, "value"> {
  /** Absent: the key is gone. */
  readonly value: Entry["value"] | undefined;
}

/** Why a watch ended. */
export type WatchEnd =
  /** Go on from where it was. */
  | { readonly kind: "broken"; readonly error: EtcdError }
  /** Begin with a list. */
  | { readonly kind: "lost"; readonly error: EtcdError };

export interface WatchOptions {
  readonly client: EtcdClient;
  readonly prefix: string;
  /** All up to this one is known. */
  readonly knownRevision: bigint;
  readonly clusterId: Int64Text;
  readonly timers: Timers;
  /** etcd has agreed. */
  readonly onOpen: () => void;
  /** Everything up to `revision` that was not said before. */
  readonly onChanges: (changes: readonly Change[], revision: bigint) => void;
}

export class Watch {
  readonly #doing: string;
  readonly #ended = Promise.withResolvers<WatchEnd>();
  #isOver = false;
  #stream: EtcdStream | undefined;
  #fragments: Event[] = [];
  #timer: Timer | undefined;
  /** When it was first asked and has not answered since. */
  #askedMs: number | undefined;
  /** Callers that wait until all changes up to a revision are known. */
  readonly #waiting = new Set<{
    readonly revision: bigint;
    readonly resolve: () => void;
  }>();

  constructor(private readonly options: WatchOptions) {
    this.#doing = `watch ${options.prefix}`;
    options.client.openStream(WATCH_METHODS.watch, {
      onOpen: (stream) => this.#begin(stream),
      onMessage: (message) => this.#receive(message),
      onEnd: (error) => this.#break(error),
    });
  }

  /** Settles once. */
  get ended(): Promise<WatchEnd> {
    return this.#ended.promise;
  }

  /** Gives it up; no event is reported afterwards. */
  stop(): void {
    this.#break(
      new GrpcError(StatusCode.CANCELLED, "it is not wanted any more"),
    );
  }

  /**
   * Settles when all changes up to `revision` were said, or it has ended. etcd
   * is asked, and asked again: it does not answer while the watch is behind.
   */
  reached(revision: bigint): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isOver) return resolve();
      this.#waiting.add({ revision, resolve });
      this.#ask();
    });
  }

  #begin(stream: EtcdStream): void {
    const { prefix, knownRevision } = this.options;
    const key = bytesOf(prefix);
    if (this.#isOver) return stream.cancel();
    this.#stream = stream;
    stream.send(WatchRequest.encode({
      createRequest: {
        key,
        rangeEnd: prefixEnd(key),
        startRevision: `${knownRevision + 1n}`,
        progressNotify: true,
        fragment: true,
      },
    }));
    this.#listen();
  }

  #receive(bytes: Uint8Array): void {
    if (this.#isOver) return;
    this.#listen();
    const response = WatchResponse.decode(bytes);
    const { header, created, canceled, events } = response;
    // A refusal's head has no revision.
    if (canceled) return this.#refused(response);
    const other = header === null ? undefined : this.#otherStore(header);
    if (other !== undefined) return this.#lose(other);
    if (created) return this.options.onOpen();
    this.#take(events, response.fragment);
    if (this.#isOver || header === null || response.fragment) return;
    // A batch for a watch that was behind has the store's revision in its head
    // and may be incomplete: only a message without events says that there are
    // none up to its revision. An answer to our progress request covers all
    // watches of the stream, and is no revision to resume from: it may overtake
    // events (etcd before 3.4.25 and 3.5.8).
    if (events.length > 0) return;
    const revision = BigInt(header.revision);
    if (response.watchId !== "-1") this.options.onChanges([], revision);
    this.#tell(revision);
  }

  /** Whether this is another store, or an older state of the same. */
  #otherStore({ clusterId, revision }: ResponseHeader): string | undefined {
    const { clusterId: known, knownRevision } = this.options;
    if (clusterId !== known) return "it is another cluster now";
    return BigInt(revision) < knownRevision
      ? `it is at revision ${revision}, behind ${knownRevision} that was read`
      : undefined;
  }

  #refused({ compactRevision, cancelReason }: WatchResponse): void {
    if (compactRevision !== "0") {
      return this.#lose(`all before revision ${compactRevision} was compacted`);
    }
    const message = cancelReason || "the watch was cancelled";
    const code = /permission denied/.test(message)
      ? StatusCode.PERMISSION_DENIED
      : StatusCode.UNAVAILABLE;
    this.#stream?.blame({ code, message });
    this.#break(new GrpcError(code, message));
  }

  #take(events: readonly Event[], isFragment: boolean): void {
    if (this.#fragments.length + events.length > EVENTS_MAX) {
      return this.#break(
        new GrpcError(
          StatusCode.RESOURCE_EXHAUSTED,
          `more than ${EVENTS_MAX} changes came at once`,
        ),
      );
    }
    for (const event of events) this.#fragments.push(event);
    if (isFragment || this.#fragments.length === 0) return;
    const changes = this.#fragments.flatMap(changeOf);
    this.#fragments = [];
    const revision = changes.reduce(
      (most, { modRevision }) => modRevision > most ? modRevision : most,
      0n,
    );
    this.options.onChanges(changes, revision);
    // In order: no earlier event is still to come.
    this.#tell(revision);
  }

  #tell(revision: bigint): void {
    for (const waiting of this.#waiting) {
      if (waiting.revision > revision) continue;
      this.#waiting.delete(waiting);
      waiting.resolve();
    }
  }

  // --- Silence -------------------------------------------------------------------

  #listen(): void {
    this.#askedMs = undefined;
    const isAwaited = this.#waiting.size > 0;
    this.#askIn(isAwaited ? ASK_AGAIN_MS : WATCH_SILENCE_MS);
  }

  #askIn(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.options.timers.after(delayMs, () => this.#ask());
  }

  #ask(): void {
    if (this.#stream === undefined) return;
    const nowMs = this.options.timers.now();
    this.#askedMs ??= nowMs;
    if (nowMs - this.#askedMs < WATCH_ANSWER_MS) {
      this.#stream.send(WatchRequest.encode({ progressRequest: {} }));
      return this.#askIn(ASK_AGAIN_MS);
    }
    const error = new GrpcError(
      StatusCode.UNAVAILABLE,
      `it sent nothing for ${WATCH_ANSWER_MS} ms`,
    );
    this.#stream.blame(error);
    this.#break(error);
  }

  // --- End -----------------------------------------------------------------------

  #break(error: GrpcError): void {
    this.#end({ kind: "broken", error: failureOf(this.#doing, error) });
  }

  #lose(why: string): void {
    const error = new EtcdError(
      StatusCode.OUT_OF_RANGE,
      `Cannot go on to ${this.#doing} in etcd: ${why}; all is read again`,
    );
    this.#end({ kind: "lost", error });
  }

  #end(end: WatchEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer?.cancel();
    this.#stream?.cancel();
    this.#ended.resolve(end);
    this.#tell(2n ** 63n);
  }
}

function changeOf({ type, kv }: Event): Change[] {
  if (kv === null) return [];
  return [{ ...entryOf(kv), value: type === 0 ? kv.value : undefined }];
}
