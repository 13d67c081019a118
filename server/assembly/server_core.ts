/**
 * What every port of a server stands on: its files, its counts, its limits, the
 * agents that it knows, and who connects callers to them. Knows no port.
 *
 * @module
 */

import {
  type DialProblem,
  DialReports,
} from "../../platform/conduits/dial_reports.ts";
import type { Log } from "../../platform/log/log.ts";
import { LiveConduits } from "../../platform/conduits/live_conduits.ts";
import {
  type ConnectionFacts,
  ConnectionLog,
} from "../../platform/log/connection_log.ts";
import {
  type EventLines,
  RecentEvents,
  withEvents,
} from "../../platform/log/recent_events.ts";
import { lacksDescriptors } from "../../proto/peer/dial_error.ts";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { registerInternalErrors } from "../../platform/log/internal_error_log.ts";
import {
  registerLoopLag,
  registerProcessMetrics,
} from "../../platform/metrics/process_metrics.ts";
import { registerBuildInfo } from "../../platform/process/build_info.ts";
import { WatchedFiles } from "../../net/tls/trust/watched_files.ts";
import { lineKey } from "../../platform/log/line_key.ts";
import { VERSION } from "../../platform/process/version.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import { Dialer } from "../routing/dialer.ts";
import { ServerLimiter } from "./server_admission.ts";
import { SERVER_PREFIX } from "../metrics/metric_families.ts";
import type { ServerOptions } from "../options.ts";
import {
  closeConnection,
  connectStore,
  type StoreConnection,
} from "../../neighbours/store/store_connection.ts";
import { stateLocationOf } from "../state/open_state.ts";
import { AccessLog } from "../../policy/access_log.ts";
import { Authorization } from "../policy/authorization.ts";
import { Membership } from "../peers/membership.ts";
import { Registry } from "../routing/registry.ts";
import { newInstanceId } from "../../proto/peer/instance_id.ts";
import { ServerForwarding } from "./server_forwarding.ts";
import { ServerMetrics } from "./server_metrics.ts";

/** Lines of the log that people are told of as what they are. */
const EVENT_LINES: EventLines = [
  ["node joined", "joined"],
  ["node waits for approval", "joined"],
  ["join refused", "refused"],
  ["renew refused", "refused"],
  ["no second process speaks for the agent", "duplicate"],
  ["issued a certificate for this server", "certificate"],
  ["the certificate authorities have changed", "certificate"],
];

/** How long a TLS handshake may take. */
export const HANDSHAKE_TIMEOUT_MS = 10_000;

/** The parts of a server that all others use. */
export class ServerCore {
  readonly log: Log;
  /** What people are told has happened, beside the log. */
  readonly events = new RecentEvents();
  /** What is open now, and being dialed. */
  readonly conduits = new LiveConduits(systemTimers);
  readonly metricRegistry = new MetricRegistry();
  readonly metrics: ServerMetrics;
  /** Read again when they change. */
  readonly files: WatchedFiles;
  /** Of all connections. */
  readonly receiveBudget = new ReceiveBudget();
  readonly limiter: ServerLimiter;
  /** The agents that are linked. */
  readonly registry: Registry;
  /** Who may reach what. */
  readonly authorization: Authorization;
  readonly access: AccessLog | undefined;
  readonly dialer: Dialer;
  /** Of this process; agents and other servers tell it from a successor by it. */
  readonly instanceId = newInstanceId((bytes) => crypto.getRandomValues(bytes));
  /** Dials to other servers, and from them. */
  readonly forwarding: ServerForwarding;
  /** The other servers, and which of them may have an agent. */
  readonly peers: Membership;

  #state: StoreConnection | undefined;

  constructor(
    readonly options: ServerOptions,
    output: Log,
    /** To be called when less may be under way: the shutdown may wait for that. */
    readonly loadChanged: () => void,
  ) {
    this.metrics = new ServerMetrics(
      this.metricRegistry,
      systemTimers,
      options.metricsNodesMax,
    );
    const log = this.log = withEvents(output, this.events, EVENT_LINES);
    this.files = new WatchedFiles({
      log,
      timers: systemTimers,
      metrics: this.metricRegistry,
      prefix: SERVER_PREFIX,
    });
    this.registry = new Registry({
      strategies: options.strategies,
      clock: systemTimers,
      random: Math.random,
    });
    this.limiter = new ServerLimiter(options.limiter ?? {}, {
      log,
      metrics: this.metricRegistry,
      clock: systemTimers,
    });
    this.metrics.watch(this.registry);
    this.metrics.watchBudget(this.receiveBudget);
    registerProcess(this.metricRegistry);
    this.authorization = new Authorization(options.authorization ?? {}, {
      log,
      timers: systemTimers,
      metrics: this.metricRegistry,
    });
    this.access = openAccess(options, log, this.metricRegistry);
    this.peers = this.#membership();
    const { files, metrics, receiveBudget } = this;
    const { dials } = this.authorization;
    this.forwarding = new ServerForwarding({
      ...{ options, log, files, metrics, receiveBudget },
      hasPolicy: dials.hidesNodes,
      dial: (request, answer) => this.dialer.dial(request, answer),
    });
    const { forwarder } = this.forwarding;
    this.dialer = new Dialer({
      peers: this.peers,
      ...(forwarder === undefined ? {} : { forwarder }),
      authorizer: this.authorization.dials,
      registry: this.registry,
      timers: systemTimers,
      dialTimeoutMs: options.dialTimeoutMs ?? 0,
      observer: this.metrics.dialObserver(loadChanged),
      reports: new DialReports({
        log: new ConnectionLog(log, systemTimers, this.access),
        conduits: this.conduits,
        failed: (error, facts) => this.#dialFailed(error, facts),
      }),
    });
  }

  /** The other servers: those that the options name, or that share the state. */
  #membership(): Membership {
    const { options, log } = this;
    return new Membership({
      serverId: options.serverId,
      instanceId: this.instanceId,
      software: `tunnel/${VERSION}`,
      serverCount: options.serverCount,
      fixed: options.membership?.fixed ?? [],
      strategies: options.strategies,
      timers: systemTimers,
      wallClock: Date.now,
      metrics: this.metricRegistry,
      warn: (line) => log.warn(line, { code: "TUN802" }, lineKey(line)),
      event: (line) => log.event(line, {}, lineKey(line)),
    });
  }

  #dialFailed(error: DialProblem, { who, node }: ConnectionFacts): void {
    const { message } = error;
    const text = who === undefined ? message : `${who}: ${message}`;
    const code = lacksDescriptors(error) ? "TUN513" : error.tunnelCode;
    this.events.note("dial-failed", text, { node, code });
  }

  /** Whether an agent has announced this very host or address, wherever it is. */
  serves(host: string): boolean {
    if (this.registry.serves(host)) return true;
    if (this.forwarding.forwarder === undefined) return false;
    return this.peers.find({ protocol: "tcp", address: host }, host)
      .some(({ agentsAreKnown }) => agentsAreKnown === true);
  }

  /**
   * Opens the way to what servers have in common; nothing is sent yet.
   *
   * @throws {EtcdConfigError | KubernetesConfigError} One sentence.
   */
  async connectStore(): Promise<void> {
    const location = stateLocationOf(this.options);
    if (location === undefined) return;
    this.#state = await connectStore(location, systemTimers);
  }

  /** Where servers keep what they have in common; `undefined`: nowhere. */
  get state(): StoreConnection | undefined {
    return this.#state;
  }

  /** Behind all who use it. */
  closeState(): void {
    this.conduits.stop();
    if (this.#state !== undefined) closeConnection(this.#state);
  }
}

function registerProcess(metrics: MetricRegistry): void {
  registerProcessMetrics(metrics);
  registerLoopLag(metrics);
  registerBuildInfo(metrics);
  registerInternalErrors(metrics, "tunnel_server");
}

function openAccess(
  { access }: ServerOptions,
  log: Log,
  metrics: MetricRegistry,
): AccessLog | undefined {
  const prefix = SERVER_PREFIX;
  return AccessLog.open(access, { log, timers: systemTimers, metrics, prefix });
}
