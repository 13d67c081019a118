/**
 * What the audit log says about one dial: a line when it is decided, a line
 * when its connection ends.
 *
 * No content of a connection comes here, and no credential: a caller is named
 * by the public part of its certificate.
 *
 * @module
 */

import type { AuditTrail } from "./audit_trail.ts";
import type { JsonLine } from "./json_line.ts";
import type { RuleDecision } from "./rule_set.ts";
import type { ConnectionId } from "../proto/peer/connection_id.ts";
import type { DialError, DialTarget } from "../proto/peer/dial_error.ts";
import { clipped } from "../proto/peer/quoted.ts";
import type { Clock } from "../proto/sync/clock.ts";
import type { ConduitEnd } from "../proto/transfer/conduit.ts";
import type { ConduitObserver } from "../proto/transfer/observed_conduit.ts";

/** Longest text of a peer's that a line repeats. */
export const TEXT_LENGTH_MAX = 300;

/** Facts about a dial before any decision. */
export interface DialFacts {
  /** The connection's, in the logs of all programs that it passes. */
  readonly id?: ConnectionId | undefined;
  /** The caller, as plain text; absent when unknown. */
  readonly who?: Readonly<Record<string, string | number>>;
  readonly from?: string | undefined;
  /** The agent that makes the connection; absent when there is none. */
  readonly node?: string;
  /** The server that is asked for the connection; absent: an agent here is. */
  readonly forwardedTo?: string;
  /**
   * The address that its client connected to, if it differs from the target.
   */
  readonly service?: string;
  /** Absent: none was found. */
  readonly target?: DialTarget | undefined;
}

/** The record of one dial; observes its connection. */
export class DialRecord implements ConduitObserver {
  #inner: ConduitObserver | undefined;
  #bytesFromTarget = 0;
  #bytesToTarget = 0;

  constructor(
    private readonly trail: AuditTrail,
    private readonly id: number,
    private readonly facts: DialFacts,
    /** When the dial began, by the trail's clock. */
    readonly startMs: number,
  ) {}

  /**
   * Writes the first line.
   *
   * @param timeMs Now, by the trail's clock.
   */
  decided({ isAllowed, rule }: RuleDecision, timeMs: number): void {
    // There will be no connection whose end could be recorded.
    if (!isAllowed) this.trail.over(this);
    const line = this.#begin("dial", timeMs).raw(
      isAllowed
        ? ',"decision":"allowed","rule":'
        : ',"decision":"refused","rule":',
    );
    this.#write(line.text(clipped(rule, TEXT_LENGTH_MAX)));
  }

  /**
   * Records that the dial has failed, unless it was recorded as refused.
   *
   * @param earlyBytes What had left with it.
   */
  failed({ message }: Pick<DialError, "message">, earlyBytes = 0): void {
    this.#bytesToTarget = earlyBytes;
    this.#end("failed", message);
  }

  /**
   * The dial has succeeded.
   *
   * @param inner Observes as well: one more conduit around the conduit would
   *   cost more than this.
   * @returns The observer for its `ObservedConduit`.
   */
  observing(inner: ConduitObserver): ConduitObserver {
    this.#inner = inner;
    return this;
  }

  received(bytes: number): void {
    this.#bytesFromTarget += bytes;
    this.#inner?.received(bytes);
  }

  sent(bytes: number): void {
    this.#bytesToTarget += bytes;
    this.#inner?.sent(bytes);
  }

  ended(end: ConduitEnd): void {
    this.#end(end.kind, end.kind === "clean" ? undefined : end.reason);
    this.#inner?.ended(end);
  }

  /** The process ends before the connection does. */
  cutOff(): void {
    this.#end("lost", "the process has ended");
  }

  #end(kind: ConduitEnd["kind"] | "failed", reason: string | undefined): void {
    if (!this.trail.over(this)) return;
    const timeMs = this.trail.clock.now();
    const line = this.#begin("end", timeMs).raw(',"end":').text(kind);
    if (reason !== undefined) {
      line.raw(',"reason":').text(clipped(reason, TEXT_LENGTH_MAX));
    }
    this.#write(
      line.raw(',"bytesToTarget":').number(this.#bytesToTarget)
        .raw(',"bytesFromTarget":').number(this.#bytesFromTarget)
        .raw(',"durationMs":').number(Math.round(timeMs - this.startMs)),
    );
  }

  /** The common beginning of both lines. */
  #begin(event: "dial" | "end", timeMs: number): JsonLine {
    const { id, who, from, node, forwardedTo, service, target } = this.facts;
    const line = this.trail.lineAt(timeMs).raw('Z","event":').text(event)
      .raw(',"dial":').number(this.id);
    if (id !== undefined) line.raw(',"id":"').raw(id).raw('"');
    if (who !== undefined) line.raw(',"who":').members(who);
    if (from !== undefined) line.raw(',"from":').text(from);
    if (node !== undefined) line.raw(',"node":').text(node);
    if (forwardedTo !== undefined) {
      line.raw(',"forwardedTo":').text(forwardedTo);
    }
    if (service !== undefined) line.raw(',"service":').text(service);
    if (target === undefined) return line;
    return line
      .raw(',"protocol":').text(clipped(target.protocol, TEXT_LENGTH_MAX))
      .raw(',"target":').text(clipped(target.address, TEXT_LENGTH_MAX));
  }

  #write(line: JsonLine): void {
    this.trail.log.write(line.raw("}").finish());
  }
}

/** The machine's clock may be set; it is read again after this time. */
const CLOCK_LOOK_MS = 100;

export class LineTime {
  /** What the machine's clock is ahead of `clock`, in ms. */
  #aheadMs = 0;
  #lookedMs = -Infinity;
  #second = NaN;
  #text = "";

  /** @param write A second's text; ISO's up to behind the point unless given. */
  constructor(
    private readonly clock: Clock,
    private readonly write: (second: Date) => string = isoSecond,
  ) {}

  /**
   * Looks at a moment of `clock`.
   *
   * @returns Its milliseconds behind the full second.
   */
  look(ms: number): number {
    if (ms > this.#lookedMs + CLOCK_LOOK_MS) {
      this.#lookedMs = this.clock.now();
      this.#aheadMs = Date.now() - this.#lookedMs;
    }
    const wallMs = Math.round(ms + this.#aheadMs);
    const second = Math.floor(wallMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#text = this.write(new Date(second * 1000));
    }
    return (wallMs - second * 1000) | 0;
  }

  /** The last moment that was read. */
  get second(): string {
    return this.#text;
  }
}

function isoSecond(second: Date): string {
  return second.toISOString().slice(0, -4);
}
