/**
 * The common base of a server's ports: its files, counts, limits, agents, and
 * the dialer. It knows no port.
 *
 * @module
 */

import {
  connectStore,
  type StoreConnection,
} from "../../neighbours/store/store_connection.ts";
import { tlsUpstream } from "../../net/channel/server_upstream.ts";
import type { Program } from "../../net/program/program.ts";
import type {
  CredentialFiles,
  Credentials,
} from "../../net/tls/trust/credentials.ts";
import type {
  DialProblem,
  DialReports,
} from "../../platform/conduits/dial_reports.ts";
import {
  type ConnectionFacts,
  withPacketLines,
} from "../../platform/log/connection_log.ts";
import { lineKey } from "../../platform/log/line_key.ts";
import type { EventLines } from "../../platform/log/recent_events.ts";
import { watchBudget } from "../../platform/metrics/process_metrics.ts";
import { VERSION } from "../../platform/process/version.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";
import { linkKeepalive } from "../../proto/link/link_limits.ts";
import { lacksDescriptors } from "../../proto/peer/dial_error.ts";
import { hostOf, portOf } from "../../proto/peer/host_port.ts";
import { newInstanceId } from "../../proto/peer/peer_identity.ts";
import { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import { ServerLimiter } from "./server_admission.ts";
import { ServerMetrics } from "./server_metrics.ts";
import { PeerForwarder } from "../forwarding/peer_way.ts";
import type { ServerOptions } from "../options.ts";
import { Membership } from "../peers/membership.ts";
import { Authorization } from "../policy/authorization.ts";
import { CallerLoads, type LimitedTools } from "../routing/caller_loads.ts";
import { Dialer } from "../routing/dialer.ts";
import { Registry } from "../routing/registry.ts";
import { stateLocationOf } from "../state/open_state.ts";

/** Log lines that become events of a kind of their own. */
export const SERVER_EVENT_LINES: EventLines = [
  ["node joined", "joined"],
  ["node waits for approval", "joined"],
  ["join refused", "refused"],
  ["renew refused", "refused"],
  ["no second process speaks for the agent", "duplicate"],
  ["issued a certificate for this server", "certificate"],
  ["the certificate authorities have changed", "certificate"],
];

/** The parts of a server that all others use. */
export class ServerCore {
  readonly metrics: ServerMetrics;
  /** Of all connections. */
  readonly receiveBudget = new ReceiveBudget();
  readonly limiter: ServerLimiter;
  /** The agents that are linked. */
  readonly registry: Registry;
  /** Who may reach what. */
  readonly authorization: Authorization;
  readonly dialer: Dialer;
  readonly #reports: DialReports;
  readonly #loads = new CallerLoads();
  /**
   * Of this process; it distinguishes the process from its successor for agents
   * and other servers.
   */
  readonly instanceId = newInstanceId((bytes) => crypto.getRandomValues(bytes));
  /** Sends dials to other servers; absent unless it was asked for. */
  readonly forwarder: PeerForwarder | undefined;
  /** Shown to other servers. */
  #peerCredentials: Credentials | undefined;
  /** The other servers, and which of them may have an agent. */
  readonly peers: Membership;

  #state: StoreConnection | undefined;

  constructor(
    readonly options: ServerOptions,
    readonly program: Program,
    /**
     * Called when fewer things may be running: the shutdown may wait for that.
     */
    readonly loadChanged: () => void,
  ) {
    const { timers } = program;
    this.metrics = new ServerMetrics(
      program.metrics,
      timers,
      options.metricsNodesMax,
    );
    this.registry = new Registry({
      strategies: options.strategies,
      clock: timers,
      random: Math.random,
    });
    this.limiter = new ServerLimiter(options.limiter ?? {}, program);
    this.metrics.watch(this.registry);
    watchBudget(program.metrics, program.prefix, this.receiveBudget);
    this.authorization = new Authorization(
      options.authorization ?? {},
      program.metrics,
      program.trail,
    );
    this.peers = this.#membership();
    this.forwarder = this.#createForwarder();
    this.#reports = program.reports(
      (error, facts) => this.#dialFailed(error, facts),
      this.metrics.dialWitness(loadChanged),
      this.#loads,
    );
    this.dialer = new Dialer({
      peers: this.peers,
      forwarder: this.forwarder,
      authorizer: this.authorization.dials,
      registry: this.registry,
      timers,
      dialTimeoutMs: options.dialTimeoutMs ?? 0,
      reports: this.#reports,
    });
  }

  /** The other servers: those that the options name, or that share the state. */
  #membership(): Membership {
    const { options, program: { log, timers, metrics } } = this;
    return new Membership({
      serverId: options.serverId,
      instanceId: this.instanceId,
      software: `tunnel/${VERSION}`,
      serverCount: options.serverCount,
      fixed: options.membership?.fixed ?? [],
      strategies: options.strategies,
      timers,
      wallClock: Date.now,
      metrics,
      warn: (line) => log.warn(line, { code: "TUN802" }, lineKey(line)),
      event: (line) => log.event(line, {}, lineKey(line)),
    });
  }

  /**
   * Dials go to servers of our own authority: a foreign certificate does not say
   * whether its holder is a server.
   */
  #createForwarder(): PeerForwarder | undefined {
    const { options, metrics, program: { log, timers }, receiveBudget } = this;
    const { serverId, messageBytesMax, agents } = options;
    if (options.peerForwarding !== true) return undefined;
    if (agents.identity === undefined) {
      throw new TypeError("Cannot forward dials: there is no identity");
    }
    return new PeerForwarder({
      serverId,
      hasPolicy: this.authorization.dials.hidesNodes,
      timers,
      observer: withPacketLines(metrics.packetObserver("agent"), log, "server"),
      messageBytesMax,
      keepalive: linkKeepalive(agents.keepaliveMs),
      receiveBudget,
      upstreamTo: ({ address }) =>
        tlsUpstream({
          addresses: [{ host: hostOf(address), port: portOf(address) }],
          credentials: () => this.#peerCredentials!.current,
          // Whatever the address is: each server of our authority has this name.
          serverName: TUNNEL_SERVER_NAME,
          proxyEnv: {},
        }),
    });
  }

  /** Whom to trust is known. @throws {CredentialsError} */
  openTrust(own: CredentialFiles): void {
    if (this.forwarder === undefined) return;
    const { files } = this.program;
    this.#peerCredentials = files.credentials("other-servers", own);
  }

  #dialFailed(error: DialProblem, { who, node }: ConnectionFacts): void {
    const { message } = error;
    const text = who === undefined ? message : `${who}: ${message}`;
    const code = lacksDescriptors(error) ? "TUN513" : error.tunnelCode;
    this.program.events.note("dial-failed", text, { node, code });
  }

  /** Options of a frontend. @param who Its callers, for the log. */
  callerTools(who: "client" | "node" | "server"): LimitedTools {
    const { metrics, options, program: { log, timers } } = this;
    return {
      timers,
      observer: withPacketLines(metrics.packetObserver("client"), log, who),
      messageBytesMax: options.messageBytesMax,
      dial: (request, answer) => this.dialer.dial(request, answer),
      loads: this.#loads,
      join: (caller, target, over) => this.#reports.join(caller, target, over),
    };
  }

  /** A caller was turned away before its target was looked at. */
  callerRefused(line: string): void {
    this.metrics.ours.refusedCallers.add();
    this.program.log.event(line, {}, lineKey(line));
  }

  /** Whether an agent has announced this very host or address, wherever it is. */
  serves(host: string): boolean {
    if (this.registry.serves(host)) return true;
    if (this.forwarder === undefined) return false;
    return this.peers.find({ protocol: "tcp", address: host }, host)
      .some(({ agentsAreKnown }) => agentsAreKnown === true);
  }

  /** Servers share it, and close it after all its users; absent: there is none. */
  get state(): StoreConnection | undefined {
    return this.#state;
  }

  /**
   * Opens the store that servers share; nothing is sent yet.
   *
   * @throws {NeighbourConfigError} One sentence.
   */
  async connectStore(): Promise<void> {
    const location = stateLocationOf(this.options);
    if (location === undefined) return;
    this.#state = await connectStore(location, this.program.timers);
  }
}
