/**
 * The log lines about connections: that one could not be made (by default),
 * when each begins and ends (`--v=4`), and which packets pass (`--v=10`).
 *
 * A server, an agent and a service proxy use the same words, so that one
 * connection can be followed through all of them. Where a level is off, it
 * costs a look at the level and nothing else.
 *
 * @module
 */

import type { DialError, DialTarget } from "../../proto/peer/dial_error.ts";
import type { ConnectionId } from "../../proto/peer/connection_id.ts";
import type { PacketObserver } from "../../proto/link/packet_observer.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import type { ConduitEnd } from "../../proto/transfer/conduit.ts";
import type { ConduitObserver } from "../../proto/transfer/observed_conduit.ts";
import type { Log, LogFields } from "./log.ts";

/** What is known of a connection. */
export interface ConnectionFacts {
  /** The same in the logs of all programs that it passes. */
  readonly id?: ConnectionId;
  /** The caller. */
  readonly who?: string;
  /** Where that is connected from. */
  readonly from?: string;
  /** The node that makes the connection, or was to make it. */
  readonly node?: string;
  /** Another server that has that node's agent, and makes it connect. */
  readonly forwardedTo?: string;
  /** What the caller connected to, where that stands for targets. */
  readonly service?: string;
  /** Absent: there was none to be had. */
  readonly target?: DialTarget;
}

export class ConnectionLog {
  readonly #log: Log;
  readonly #clock: Clock;

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Whether `opened` logs anything: check before facts are gathered. */
  get wantsAll(): boolean {
    return this.#log.wantsDetails;
  }

  /** It could not be made. A caller that gave up knows that, so it is a detail. */
  failed(
    { reason, message }: Pick<DialError, "reason" | "message">,
    facts: ConnectionFacts,
  ): void {
    if (reason === "cancelled" && !this.#log.wantsDetails) return;
    const fields = fieldsOf(facts);
    const line = `connection failed: ${message}`;
    if (reason === "cancelled") return this.#log.detail(line, fields);
    const { who = "", node = "", service = "", target } = facts;
    const where = target === undefined ? message : textOf(target);
    this.#log.event(
      line,
      fields,
      `${reason} ${who} ${node} ${service} ${where}`,
    );
  }

  /**
   * It is open.
   *
   * @param startMs When it was requested, by the clock.
   * @param inner Called as well, where there is another observer.
   * @returns The observer for its `ObservedConduit`.
   */
  opened(
    facts: ConnectionFacts,
    startMs: number,
    inner: ConduitObserver = NOBODY,
  ): ConduitObserver {
    return new LoggedConnection(this.#log, this.#clock, facts, startMs, inner);
  }
}

const NOBODY: ConduitObserver = { received() {}, sent() {}, ended() {} };

class LoggedConnection implements ConduitObserver {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #fields: LogFields;
  readonly #startMs: number;
  readonly #inner: ConduitObserver;
  #fromTarget = 0;
  #toTarget = 0;

  constructor(
    log: Log,
    clock: Clock,
    facts: ConnectionFacts,
    startMs: number,
    inner: ConduitObserver,
  ) {
    this.#log = log;
    this.#clock = clock;
    this.#fields = fieldsOf(facts);
    this.#startMs = startMs;
    this.#inner = inner;
    log.detail("connection opened", { ...this.#fields, ms: this.#ageMs });
  }

  get #ageMs(): number {
    return Math.round(this.#clock.now() - this.#startMs);
  }

  received(bytes: number): void {
    this.#fromTarget += bytes;
    this.#inner.received(bytes);
  }

  sent(bytes: number): void {
    this.#toTarget += bytes;
    this.#inner.sent(bytes);
  }

  ended(end: ConduitEnd): void {
    this.#log.detail("connection ended", {
      ...this.#fields,
      end: end.kind,
      ...(end.kind === "clean" ? {} : { reason: end.reason }),
      bytesToTarget: this.#toTarget,
      bytesFromTarget: this.#fromTarget,
      ms: this.#ageMs,
    });
    this.#inner.ended(end);
  }
}

function fieldsOf(
  { id, who, from, node, forwardedTo, service, target }: ConnectionFacts,
): LogFields {
  return {
    ...(id === undefined ? {} : { id }),
    ...(who === undefined ? {} : { who }),
    ...(from === undefined ? {} : { from }),
    ...(node === undefined ? {} : { node }),
    ...(forwardedTo === undefined ? {} : { forwardedTo }),
    ...(service === undefined ? {} : { service }),
    ...(target === undefined ? {} : { target: textOf(target) }),
  };
}

function textOf({ protocol, address }: DialTarget): string {
  return `${protocol} ${address}`;
}

/**
 * Logs each packet that `observer` counts.
 *
 * @param peer Their sender or receiver, for the line.
 */
export function withPacketLines<Observer extends PacketObserver>(
  observer: Observer,
  log: Log,
  peer: string,
): Observer {
  return {
    ...observer,
    packetReceived(type: string, bytes: number) {
      if (log.wantsPackets) log.packet(`${type} from ${peer}: ${bytes} bytes`);
      observer.packetReceived(type, bytes);
    },
    packetSent(type: string, bytes: number) {
      if (log.wantsPackets) log.packet(`${type} to ${peer}: ${bytes} bytes`);
      observer.packetSent(type, bytes);
    },
  };
}
