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
    const decision = isAllowed ? "allowed" : "refused";
    this.#write(
      `${this.#begin("dial", timeMs)},"decision":"${decision}"` +
        member("rule", clipped(rule, TEXT_LENGTH_MAX)),
    );
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
    this.#write(
      `${this.#begin("end", timeMs)},"end":"${kind}"` +
        member("reason", reason && clipped(reason, TEXT_LENGTH_MAX)) +
        `,"bytesToTarget":${this.#bytesToTarget}` +
        `,"bytesFromTarget":${this.#bytesFromTarget}` +
        `,"durationMs":${Math.round(timeMs - this.startMs)}`,
    );
  }

  /** The common beginning of both lines. */
  #begin(event: "dial" | "end", timeMs: number): string {
    const { id, who, from, node, forwardedTo, service, target } = this.facts;
    return `{"time":"${this.trail.timeAt(timeMs)}","event":"${event}"` +
      `,"dial":${this.id}` + member("id", id) +
      (who === undefined ? "" : `,"who":${JSON.stringify(who)}`) +
      member("from", from) + member("node", node) +
      member("forwardedTo", forwardedTo) + member("service", service) +
      member("protocol", target && clipped(target.protocol, TEXT_LENGTH_MAX)) +
      member("target", target && clipped(target.address, TEXT_LENGTH_MAX));
  }

  #write(line: string): void {
    this.trail.write(`${line}}\n`);
  }
}

function member(name: string, value: string | undefined): string {
  return value === undefined ? "" : `,"${name}":${jsonText(value)}`;
}

/** What stands in JSON as it is. */
const PLAIN_JSON = /^[ !#-[\]-~]*$/;

/** A text as JSON has it. */
export function jsonText(text: string): string {
  return PLAIN_JSON.test(text) ? `"${text}"` : JSON.stringify(text);
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

  /** A moment of `clock`, if seconds are written as ISO has them. */
  iso(ms: number): string {
    const millisecond = this.look(ms);
    const zeros = millisecond < 10 ? "00" : millisecond < 100 ? "0" : "";
    return `${this.#text}${zeros}${millisecond}Z`;
  }

  /** The last moment that was read. */
  get second(): string {
    return this.#text;
  }
}

function isoSecond(second: Date): string {
  return second.toISOString().slice(0, -4);
}
