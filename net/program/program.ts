/**
 * What every program of ours has, whatever it does: its log and its timers, its
 * metrics, what is live and what has happened, its access log, the files that it
 * watches, and its health and admin ports. A server, an agent, a proxy and the
 * parent of workers are each built on one, and hand it to their parts.
 *
 * It knows neither what the program does nor when it ends.
 *
 * @module
 */

import type { HttpHandler, LimitReached } from "../admin/http_port.ts";
import type { HandoverFields } from "../handover/packet_socket.ts";
import { AdminPort, type AdminPortOptions } from "../listen/admin_port.ts";
import {
  type BoundListener,
  type ListenAddress,
  listenHealth,
} from "../listen/listeners.ts";
import { openDescriptors } from "../libc/descriptors.ts";
import { WatchedFiles } from "../tls/trust/watched_files.ts";
import {
  type DialProblem,
  DialReports,
  type DialWitness,
} from "../../platform/conduits/dial_reports.ts";
import { LiveConduits } from "../../platform/conduits/live_conduits.ts";
import {
  type ConnectionFacts,
  ConnectionLog,
} from "../../platform/log/connection_log.ts";
import { registerInternalErrors } from "../../platform/log/internal_error_log.ts";
import type { Log } from "../../platform/log/log.ts";
import {
  type EventLines,
  RecentEvents,
  withEvents,
} from "../../platform/log/recent_events.ts";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import {
  registerBuildInfo,
  registerLoopLag,
  registerProcessMetrics,
} from "../../platform/metrics/process_metrics.ts";
import type { NamedTools } from "../../platform/program/tools.ts";
import { VERSION } from "../../platform/process/version.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { AccessLog, type AccessLogOptions } from "../../policy/access_log.ts";
import type { AuditLogOptions } from "../../policy/audit_log.ts";
import { AuditTrail } from "../../policy/audit_trail.ts";

/** The kinds of programs; their metrics are named after them. */
export type ProgramKind = "server" | "agent" | "proxy" | "workers";

/** What differs from program to program. */
export interface ProgramOptions {
  readonly kind: ProgramKind;
  /** Log lines that become events of a kind of their own. */
  readonly eventLines: EventLines;
  /** Absent: there is no access log. */
  readonly access?: AccessLogOptions | undefined;
  /** Absent: there is no audit log. */
  readonly audit?: AuditLogOptions | undefined;
}

/** See the module description. */
export class Program implements NamedTools {
  readonly log: Log;
  readonly timers = systemTimers;
  readonly metrics: MetricRegistry;
  readonly prefix: string;
  /** What people are told has happened, beside the log. */
  readonly events = new RecentEvents();
  /** Connections that are open or being dialed. */
  readonly conduits = new LiveConduits(systemTimers);
  readonly access: AccessLog | undefined;
  /** Its records for auditors. */
  readonly trail: AuditTrail | undefined;
  #files: WatchedFiles | undefined;
  readonly #listeners: BoundListener[] = [];
  #answered: Promise<unknown> = Promise.resolve();

  /** @throws {AuditLogError} One of its logs can never be written. */
  constructor(
    { kind, eventLines, access, audit }: ProgramOptions,
    output: Log,
  ) {
    this.log = withEvents(output, this.events, eventLines);
    this.prefix = `tunnel_${kind}_`;
    this.metrics = processMetrics(kind);
    // The others watch for no lapses: they would report a lag of 0 for ever.
    if (kind === "server" || kind === "agent") registerLoopLag(this.metrics);
    this.access = AccessLog.open(access, this);
    this.trail = AuditTrail.open(audit, this);
  }

  /** Files that are read again when they change; made when it has any. */
  get files(): WatchedFiles {
    return this.#files ??= new WatchedFiles(
      this,
      () => [this.trail?.log.problem, this.access?.problem],
    );
  }

  /**
   * The reports of its dials, for all observers.
   *
   * @param note Called when a dial fails for another reason than its caller.
   * @param counts Its metrics.
   */
  reports(
    note: (problem: DialProblem, facts: ConnectionFacts) => void,
    ...counts: readonly DialWitness[]
  ): DialReports {
    return new DialReports(
      this.conduits,
      ...counts,
      new ConnectionLog(this.log, this.timers, this.access),
      {
        failed(problem, _dial, facts) {
          if (problem.reason !== "cancelled") note(problem, facts);
        },
      },
    );
  }

  /** @throws {ListenError} */
  openHealth(
    address: ListenAddress,
    handler: HttpHandler,
    reached?: LimitReached,
  ): BoundListener {
    return this.#kept(listenHealth(address, handler, reached));
  }

  /**
   * Listens on loopback; its other ways in are opened later.
   *
   * @throws {ListenError}
   */
  openAdmin(options: Omit<AdminPortOptions, "log">): AdminPort {
    return this.#kept(new AdminPort({ ...options, log: this.log }));
  }

  /** Reads files again, and opens its logs again. */
  reload(): void {
    this.#files?.reload();
    this.access?.reopen();
    this.trail?.log.reopen();
  }

  /** Closes its ports and watches nothing any more; harmless when repeated. */
  close(): void {
    this.#files?.close();
    this.conduits.stop();
    const listeners = this.#listeners.splice(0);
    if (listeners.length === 0) return;
    for (const listener of listeners) listener.close();
    // A failure of one is reported where it happens.
    this.#answered = Promise.allSettled(
      listeners.map(({ finished }) => finished),
    );
  }

  /** Gives the last answers and writes the last lines: the program has ended. */
  async end(): Promise<void> {
    await this.#answered;
    await Promise.all([this.access?.close(), this.trail?.close()]);
  }

  #kept<Listener extends BoundListener>(listener: Listener): Listener {
    this.#listeners.push(listener);
    return listener;
  }
}

/** For any process of that kind, even one that only waits to take over. */
export function processMetrics(kind: ProgramKind): MetricRegistry {
  const metrics = new MetricRegistry();
  registerProcessMetrics(metrics);
  if (openDescriptors() !== undefined) {
    metrics.computed(
      "gauge",
      "process_open_fds",
      "Number of open file descriptors.",
      () => openDescriptors() ?? NaN,
    );
  }
  registerBuildInfo(metrics, VERSION);
  registerInternalErrors(metrics, `tunnel_${kind}`);
  return metrics;
}

/** One that is up. */
export interface Running {
  /** Settles when everything is closed. */
  readonly finished: Promise<void>;
  /**
   * Ends when idle or at its timeout; callers that come meanwhile are served.
   *
   * @param why Such as `SIGTERM`.
   */
  shutdown(why?: string): void;
  /** Ends at once. */
  stop(reason: string): void;
  /** Reads its files again; what runs is not disturbed. */
  reload(): void;
}

/** One whose place a new process can take. */
export interface Replaceable extends Running {
  /**
   * Settles when it can serve every caller, or when it ends.
   *
   * @param peers How many the previous process was linked to: agents, or servers.
   * @param isServed That one serves until then.
   */
  whenReady(peers: number, isServed?: boolean): Promise<void>;
  /** It ends anyway, so a successor need not insist. */
  readonly isDraining: boolean;
  /** Sockets that it takes before it is ready: their callers make it ready. */
  readonly early?: readonly string[];
  /**
   * Sockets on which it should not accept before it is ready, where no other
   * process accepts instead.
   */
  readonly late?: readonly string[];
  /**
   * After a request to end, it does not count as idle before this many ms: a
   * successor may come, or is starting. A later call replaces the value; 0:
   * none is awaited.
   */
  awaitSuccessor(ms: number): void;
  /** A successor accepts on these of our sockets, and waits until it is ready. */
  handedOverEarly?(pid: number): void;
  /** How many agents are linked; of several processes: when they were asked. */
  readonly agents?: number;
  /** Asks the parts that know it, for a while. */
  askForAgents?(): Promise<void>;
  /** It serves alone: the process whose place it takes serves no more. */
  tookOver?(): void;
  /** A successor has all sockets: it ends when its connections have ended. */
  handedOver(pid: number): void;
  /** What a successor goes on with, in packets: the places of its clients. */
  readonly memory?: Iterable<HandoverFields> | AsyncIterable<HandoverFields>;
  /** A packet of it, which may be any. */
  recall?(part: HandoverFields): void;
  /** That process is gone: no process reads what still has the old sockets. */
  successorEnded?(): void;
}
