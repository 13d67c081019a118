/**
 * What the audit log says about one dial: a line when it is decided, a line when
 * its connection ends.
 *
 * Nothing that a connection carries ever gets here, nor any credential: who
 * asked is known by what is public in its certificate.
 *
 * @module
 */

import type { DialError, DialTarget } from "../../proto/link/link.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import type { ConduitEnd } from "../../proto/transfer/conduit.ts";
import type { ConduitObserver } from "../../proto/transfer/observed_conduit.ts";
import type { AuditLog } from "./audit_log.ts";
import { clipped } from "./rule.ts";
import type { Verdict } from "./rule_set.ts";

/** Longest text of a peer's that a line repeats. */
const TEXT_LENGTH_MAX = 300;

/** What is known of a dial before anything is decided. */
export interface DialFacts {
  /** Who asked; absent where nobody can tell. */
  readonly who?: Readonly<Record<string, string>>;
  readonly from?: string;
  /** The agent that makes the connection; absent when there is none. */
  readonly node?: string;
  readonly target: DialTarget;
}

/** The records of a process, from its start to its end. */
export class AuditTrail {
  readonly log: AuditLog;
  readonly clock: Clock;
  readonly #open = new Set<DialRecord>();
  #dials = 0;
  #second = NaN;
  /** Up to the point in front of the milliseconds. */
  #secondText = "";

  constructor(log: AuditLog, clock: Clock) {
    this.log = log;
    this.clock = clock;
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

  /** Now, as lines say it; many are of the same second. */
  time(): string {
    const nowMs = Date.now();
    const second = Math.floor(nowMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#secondText = new Date(nowMs).toISOString().slice(0, -4);
    }
    const ms = nowMs - second * 1000;
    return `${this.#secondText}${ms < 10 ? "00" : ms < 100 ? "0" : ""}${ms}Z`;
  }

  /** Ends what is still open, and writes everything. */
  async close(): Promise<void> {
    for (const record of [...this.#open]) {
      record.cutOff();
    }
    await this.log.close();
  }
}

/** See the module description. */
export class DialRecord implements ConduitObserver {
  readonly #trail: AuditTrail;
  readonly #id: number;
  readonly #facts: DialFacts;
  readonly #startMs: number;
  /** The members that both lines have. */
  #factsJson = "";
  #inner: ConduitObserver | undefined;
  #octetsFromTarget = 0;
  #octetsToTarget = 0;

  constructor(trail: AuditTrail, id: number, facts: DialFacts) {
    this.#trail = trail;
    this.#id = id;
    this.#facts = facts;
    this.#startMs = trail.clock.now();
  }

  /** Writes the first line. */
  decided({ isAllowed, rule }: Verdict): void {
    // There will be no connection whose end could be told.
    if (!isAllowed) this.#trail.over(this);
    this.#write(
      "dial",
      `"decision":"${isAllowed ? "allowed" : "refused"}","rule":${text(rule)}`,
    );
  }

  /** The dial has failed; says so unless it was refused, which was said. */
  failed({ message }: DialError): void {
    this.#end("failed", message);
  }

  /**
   * The dial has succeeded.
   *
   * @param inner Told as well: one more conduit around the conduit would cost
   *   more than this.
   * @returns Whom its `ObservedConduit` is to tell.
   */
  observing(inner: ConduitObserver): ConduitObserver {
    this.#inner = inner;
    return this;
  }

  received(octets: number): void {
    this.#octetsFromTarget += octets;
    this.#inner?.received(octets);
  }

  sent(octets: number): void {
    this.#octetsToTarget += octets;
    this.#inner?.sent(octets);
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
    if (!this.#trail.over(this)) return;
    const why = reason === undefined ? "" : `,"reason":${text(reason)}`;
    const tookMs = Math.round(this.#trail.clock.now() - this.#startMs);
    this.#write(
      "end",
      `"end":"${kind}"${why},"octetsToTarget":${this.#octetsToTarget},` +
        `"octetsFromTarget":${this.#octetsFromTarget},"durationMs":${tookMs}`,
    );
  }

  /** By hand: this is done twice for each connection. */
  #write(event: string, what: string): void {
    if (this.#factsJson === "") this.#factsJson = factsJson(this.#facts);
    this.#trail.log.write(
      `{"time":"${this.#trail.time()}","event":"${event}",` +
        `"dial":${this.#id},${this.#factsJson},${what}}`,
    );
  }
}

function factsJson({ who, from, node, target }: DialFacts): string {
  const { protocol, address } = target;
  return (who === undefined ? "" : `"who":${membersJson(who)},`) +
    (from === undefined ? "" : `"from":${quoted(from)},`) +
    (node === undefined ? "" : `"node":${quoted(node)},`) +
    `"protocol":${text(protocol)},"target":${text(address)}`;
}

function membersJson(members: Readonly<Record<string, string>>): string {
  let json = "";
  for (const name in members) {
    json += `${json === "" ? "{" : ","}${quoted(name)}:${
      quoted(members[name]!)
    }`;
  }
  return `${json === "" ? "{" : json}}`;
}

function text(value: string): string {
  return quoted(clipped(value, TEXT_LENGTH_MAX));
}

/** What JSON writes as it is: nearly everything here. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** As `JSON.stringify`, which takes three times as long. */
function quoted(value: string): string {
  return PLAIN.test(value) ? `"${value}"` : JSON.stringify(value);
}
