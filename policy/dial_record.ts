/**
 * What the audit log says about one dial: a line when it is decided, a line when
 * its connection ends.
 *
 * Nothing that a connection carries ever gets here, nor any credential: who
 * asked is known by what is public in its certificate.
 *
 * @module
 */

import type { AuditLog } from "./audit_log.ts";
import { JsonLine } from "./json_line.ts";
import type { RuleDecision } from "./rule_set.ts";
import type { ConnectionId } from "../proto/peer/connection_id.ts";
import type { DialError, DialTarget } from "../proto/peer/dial_error.ts";
import { clipped } from "../proto/peer/quoted.ts";
import type { Clock } from "../proto/sync/clock.ts";
import type { ConduitEnd } from "../proto/transfer/conduit.ts";
import type { ConduitObserver } from "../proto/transfer/observed_conduit.ts";

/** Longest text of a peer's that a line repeats. */
const TEXT_LENGTH_MAX = 300;

/** What is known of a dial before anything is decided. */
export interface DialFacts {
  /** The connection's, in the logs of all programs that it passes. */
  readonly id?: ConnectionId | undefined;
  /** Who asked, as plain text; absent where it is not known. */
  readonly who?: Readonly<Record<string, string | number>>;
  readonly from?: string;
  /** The agent that makes the connection; absent when there is none. */
  readonly node?: string;
  /** The server that is asked for the connection; absent: an agent here is. */
  readonly forwardedTo?: string;
  readonly target: DialTarget;
}

/** What was asked for on an admin port. */
export interface OperatorAction {
  readonly who: Readonly<Record<string, string>>;
  /** Such as `POST /v1/nodes/edge-7/drain`. */
  readonly action: string;
  /** Of the answer. */
  readonly status: number;
  /** Why it was not done. */
  readonly problem?: string;
}

/** The records of a process, from its start to its end. */
export class AuditTrail {
  readonly #open = new Set<DialRecord>();
  readonly #line = new JsonLine();
  #dials = 0;
  readonly #time: LineTime;

  constructor(readonly log: AuditLog, readonly clock: Clock) {
    this.#time = new LineTime(clock);
  }

  begin(facts: DialFacts): DialRecord {
    const record = new DialRecord(this, ++this.#dials, facts);
    this.#open.add(record);
    return record;
  }

  /** `record` has no more to say. @returns Whether it had until now. */
  over(record: DialRecord): boolean {
    return this.#open.delete(record);
  }

  /**
   * Begins a line with a time; many are of the same second.
   *
   * @param ms Of `clock`.
   */
  lineAt(ms: number): JsonLine {
    const millisecond = this.#time.look(ms);
    return this.#line.raw('{"time":"').raw(this.#time.second)
      .digits(millisecond, 3);
  }

  /**
   * An operator did something, or tried to.
   *
   * @param who As the door that they came by knows them.
   */
  acted({ who, action, status, problem }: OperatorAction): void {
    const line = this.lineAt(this.clock.now()).raw('Z","event":"admin","who":');
    addMembers(line, who);
    line.raw(',"action":').text(clipped(action, TEXT_LENGTH_MAX))
      .raw(',"status":').number(status);
    if (problem !== undefined) {
      line.raw(',"problem":').text(clipped(problem, TEXT_LENGTH_MAX));
    }
    this.log.write(line.raw("}").finish());
  }

  /** Ends what is still open, and writes everything. */
  async close(): Promise<void> {
    for (const record of [...this.#open]) {
      record.cutOff();
    }
    await this.log.close();
  }
}

/** The record of one dial; observes the connection that comes of it. */
export class DialRecord implements ConduitObserver {
  /** When the dial began, by the trail's clock. */
  readonly startMs: number;
  #inner: ConduitObserver | undefined;
  #bytesFromTarget = 0;
  #bytesToTarget = 0;

  constructor(
    private readonly trail: AuditTrail,
    private readonly id: number,
    private readonly facts: DialFacts,
  ) {
    this.startMs = trail.clock.now();
  }

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

  /** What both lines begin with. */
  #begin(event: "dial" | "end", timeMs: number): JsonLine {
    const { id, who, from, node, forwardedTo, target } = this.facts;
    const line = this.trail.lineAt(timeMs).raw('Z","event":').text(event)
      .raw(',"dial":').number(this.id);
    if (id !== undefined) line.raw(',"id":"').raw(id).raw('"');
    if (who !== undefined) addMembers(line.raw(',"who":'), who);
    if (from !== undefined) line.raw(',"from":').text(from);
    if (node !== undefined) line.raw(',"node":').text(node);
    if (forwardedTo !== undefined) {
      line.raw(',"forwardedTo":').text(forwardedTo);
    }
    return line
      .raw(',"protocol":').text(clipped(target.protocol, TEXT_LENGTH_MAX))
      .raw(',"target":').text(clipped(target.address, TEXT_LENGTH_MAX));
  }

  #write(line: JsonLine): void {
    this.trail.log.write(line.raw("}").finish());
  }
}

function addMembers(
  line: JsonLine,
  members: Readonly<Record<string, string | number>>,
): void {
  let before = "{";
  for (const name in members) {
    // deno-lint-ignore tunnel/own-keys -- it is one of its own.
    const value = members[name]!;
    line.raw(before).text(name).raw(":");
    if (typeof value === "number") line.number(value);
    else line.text(value);
    before = ",";
  }
  line.raw(before === "{" ? "{}" : "}");
}

/** The clock of the machine may be set; it is looked at again after so long. */
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

  /** Of the moment that was looked at last. */
  get second(): string {
    return this.#text;
  }
}

function isoSecond(second: Date): string {
  return second.toISOString().slice(0, -4);
}
