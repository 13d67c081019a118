/**
 * The log lines about connections: that one could not be made (by default),
 * when each begins and ends (`--v=4`), and which packets pass (`--v=10`); and
 * what an access log gets about each finished one.
 *
 * A server, an agent and a service proxy use the same words, so that one
 * connection can be followed through all of them. A level that is off costs
 * only the check.
 *
 * @module
 */

import type { DialError, DialTarget } from "../../proto/peer/dial_error.ts";
import type { ConnectionId } from "../../proto/peer/connection_id.ts";
import type { PacketObserver } from "../../proto/link/link.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import type { ConduitEnd } from "../../proto/transfer/conduit.ts";
import type { ConduitObserver } from "../../proto/transfer/observed_conduit.ts";
import type { Log, LogFields } from "./log.ts";

/** Facts about a connection. */
export interface ConnectionFacts {
  /** The same in the logs of all programs that it passes. */
  readonly id?: ConnectionId;
  /** The caller. */
  readonly who?: string;
  /** The address from which it is connected. */
  readonly from?: string;
  /** The node that makes the connection, or was to make it. */
  readonly node?: string | undefined;
  /** Another server that has that node's agent, and makes it connect. */
  readonly forwardedTo?: string | undefined;
  /**
   * The address that the caller connected to, if it differs from the target.
   */
  readonly service?: string;
  /** Absent: no target was reached. */
  readonly target?: DialTarget;
  /** Whose load it is, of callers that may not have any number; never shown. */
  readonly countedAs?: string | undefined;
}

/** A connection that is over, or could not be made. Times are by the clock. */
export interface ConnectionRecord {
  readonly facts: ConnectionFacts;
  /** When it was requested. */
  readonly startMs: number;
  /** When it stood; absent: never. */
  readonly openedMs?: number;
  readonly bytesToTarget: number;
  readonly bytesFromTarget: number;
  readonly end: ConduitEnd | FailedDial;
}

/** Why a connection could not be made. */
export type FailedDial =
  & { readonly kind: "failed" }
  & Pick<DialError, "reason" | "message">;

/** Writes a line for each connection that is over; see `policy/access_log.ts`. */
export interface AccessRecorder {
  /** Whether the next one is written down. Those that fail always are. */
  draws(): boolean;
  /** @param connection Kept for a while, so nothing of it may change. */
  record(connection: ConnectionRecord): void;
}

export class ConnectionLog {
  /** @param access Absent: there is no access log. */
  constructor(
    private readonly log: Log,
    private readonly clock: Clock,
    private readonly access?: AccessRecorder,
  ) {}

  /**
   * It could not be made. A caller that gave up knows that, so it is a detail.
   *
   * @param asked When, by the clock; now unless given. And what had left with it.
   */
  failed(
    error: Pick<DialError, "reason" | "message" | "tunnelCode">,
    { askedMs = this.clock.now(), earlyBytes = 0 }: AskedDial,
    facts: ConnectionFacts,
  ): void {
    const { reason, message } = error;
    this.access?.record({
      facts,
      startMs: askedMs,
      bytesToTarget: earlyBytes,
      bytesFromTarget: 0,
      end: { kind: "failed", reason, message },
    });
    if (reason === "cancelled" && !this.log.wantsDetails) return;
    const fields = { code: error.tunnelCode, ...fieldsOf(facts) };
    const line = `connection failed: ${message}`;
    if (reason === "cancelled") return this.log.detail(line, fields);
    const { who = "", node = "", service = "", target } = facts;
    const where = target === undefined ? message : textOf(target);
    this.log.event(
      line,
      fields,
      `${reason} ${who} ${node} ${service} ${where}`,
    );
  }

  /**
   * It is open.
   *
   * @param inner Called as well.
   * @returns The observer for its `ObservedConduit`.
   */
  connected(
    { askedMs }: { readonly askedMs: number },
    inner: ConduitObserver,
    { facts, openedMs }: {
      readonly facts: ConnectionFacts;
      readonly openedMs: number;
    },
  ): ConduitObserver {
    const access = this.access?.draws() === true ? this.access : undefined;
    if (access === undefined && !this.log.wantsDetails) return inner;
    const to = { log: this.log, clock: this.clock, access };
    return new LoggedConnection(to, facts, askedMs, openedMs, inner);
  }
}

/** A dial, as far as a line about its failure says when it began, and what left. */
interface AskedDial {
  readonly askedMs?: number;
  readonly earlyBytes?: number;
}

/** The log for lines about a connection. */
interface Lines {
  readonly log: Log;
  readonly clock: Clock;
  readonly access: AccessRecorder | undefined;
}

class LoggedConnection implements ConduitObserver, ConnectionRecord {
  bytesFromTarget = 0;
  bytesToTarget = 0;
  end: ConduitEnd = { kind: "clean" };

  constructor(
    private readonly to: Lines,
    readonly facts: ConnectionFacts,
    readonly startMs: number,
    readonly openedMs: number,
    private readonly inner: ConduitObserver,
  ) {
    if (!to.log.wantsDetails) return;
    const ms = Math.round(openedMs - startMs);
    to.log.detail("connection opened", { ...fieldsOf(facts), ms });
  }

  received(bytes: number): void {
    this.bytesFromTarget += bytes;
    this.inner.received(bytes);
  }

  sent(bytes: number): void {
    this.bytesToTarget += bytes;
    this.inner.sent(bytes);
  }

  ended(end: ConduitEnd): void {
    this.end = end;
    const { log, access } = this.to;
    if (log.wantsDetails) this.#log(log);
    access?.record(this);
    this.inner.ended(end);
  }

  #log(log: Log): void {
    const { end } = this;
    log.detail("connection ended", {
      ...fieldsOf(this.facts),
      end: end.kind,
      ...(end.kind === "clean" ? {} : { reason: end.reason }),
      bytesToTarget: this.bytesToTarget,
      bytesFromTarget: this.bytesFromTarget,
      ms: Math.round(this.to.clock.now() - this.startMs),
    });
  }
}

function fieldsOf(
  { id, who, from, node, forwardedTo, service, target }: ConnectionFacts,
): LogFields {
  return {
    id,
    who,
    from,
    node,
    forwardedTo,
    service,
    target: target && textOf(target),
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
