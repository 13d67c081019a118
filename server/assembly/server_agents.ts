/**
 * The agents' side of a server: the trust in them, the port where they call in,
 * and what happens when a link comes, changes, goes, or loses trust.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { listenSecure } from "../../net/listen/secure_listener.ts";
import type { BoundListener } from "../../net/listen/listeners.ts";
import { withPacketLines } from "../../platform/log/connection_log.ts";
import { lineKey } from "../../platform/log/line_key.ts";
import { LapseWatch } from "../../platform/time/loop_lag.ts";
import type {
  CredentialFiles,
  Credentials,
} from "../../net/tls/trust/credentials.ts";
import { HTTP2_ALPN, STREAMS_ALPN } from "../../proto/link/hello.ts";
import type {
  AgentLink,
  LinkAuthorization,
  LinkCandidate,
  LinkRefusal,
} from "../../proto/link/link.ts";
import { duplicateReports } from "../identity/duplicate_records.ts";
import {
  type AgentTrust,
  openAgentTrust,
  reconsider,
} from "../identity/agent_trust.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import type { ServerIdentity } from "../identity/server_identity.ts";
import { NodeHistory } from "../links/node_history.ts";
import { outageNotes, watchOutages } from "../state/open_state.ts";
import { authorize, type Authorizer } from "../links/authorizer.ts";
import { AgentPort, type AgentPortObserver } from "../links/agent_port.ts";
import { Duplicates } from "../links/duplicates.ts";
import { standingMethods } from "../links/standing_service.ts";
import { PEER_TIMEOUT_MS } from "../../neighbours/store/ephemerals.ts";
import { countLeases } from "../metrics/metric_families.ts";
import { authorityIdsIn, certainAddress } from "../peers/member_record.ts";
import type { Readiness } from "./shutdown.ts";
import { peerFrontend, refuseForwarded } from "../forwarding/peer_frontend.ts";
import type { ServerCore } from "./server_core.ts";
import type { ServerNodes } from "./server_nodes.ts";

/** Joined nodes, and where they are kept. */
export type JoinedNodes = Pick<
  ServerIdentity,
  "state" | "book" | "authorities" | "nodeOf"
>;

/** The agents' side of one server. */
export class ServerAgents {
  readonly #port: AgentPort;
  readonly #duplicates: Duplicates;
  /** Set by `openTrust`, before agents can connect. */
  #trust: AgentTrust | undefined;
  #credentials: Credentials | undefined;
  #listener: BoundListener | undefined;
  #lapses: LapseWatch | undefined;
  /** Where nodes are linked, and were, for commands and the page. */
  readonly history: NodeHistory;

  constructor(
    private readonly core: ServerCore,
    private readonly nodes: ServerNodes,
    private readonly readiness: Readiness,
  ) {
    const { options, program: { log, timers } } = core;
    this.history = new NodeHistory({
      folder: options.agents.identity?.stateDirectory,
      ...{ worker: options.worker, log, timers },
    });
    this.#port = this.#createPort();
    this.#duplicates = this.#createDuplicates();
  }

  /**
   * Reads the trusted authorities and this server's certificate; no port is
   * opened yet.
   *
   * @param tokenAuthenticators About agents that show a token.
   * @returns What the port shows: other ports may trust the same authorities.
   * @throws {CredentialsError | StoreError}
   */
  async openTrust(
    tokenAuthenticators?: readonly Authorizer[],
  ): Promise<CredentialFiles> {
    const { options, program, authorization, state } = this.core;
    const trust = this.#trust = await openAgentTrust(
      options.agents,
      program,
      tokenAuthenticators,
      (node) => authorization.policy.grantsOf(node),
      state && { connection: state, key: options.stateKey },
    );
    this.#credentials = program.files.credentials("agent-port", trust.files);
    if (trust.identity !== undefined) {
      this.core.openTrust(trust.identity.files);
      watchOutages(program.metrics, trust.identity.state);
    }
    await this.history.load();
    return trust.files;
  }

  /** Joined nodes; behind `openTrust`. */
  get identity(): ServerIdentity | undefined {
    return this.#trust?.identity;
  }

  /** Agents with two live processes. */
  get duplicates(): ReadonlyMap<string, number> {
    return this.#duplicates.current;
  }

  /** Asks an agent to go elsewhere. @returns Whether its link can say that. */
  drainLink(link: AgentLink): boolean {
    const isAlone = this.core.peers.all.length === 0;
    return this.#port.drainLink(link, isAlone ? "here" : "elsewhere");
  }

  /** Warnings for an operator who asks whether the server is ready. */
  get notes(): readonly string[] {
    return this.identity === undefined ? [] : outageNotes(this.identity.state);
  }

  /**
   * Opens the port; behind `openTrust`.
   *
   * @returns Where it listens.
   * @throws {CredentialsError | ListenError}
   */
  async listen(): Promise<string> {
    const { options, program, limiter, metrics } = this.core;
    const { files, log } = program;
    const { agents, tls } = options;
    const { identity, named } = this.#trust!;
    const verifies = identity !== undefined || agents.caFile !== undefined;
    this.#listener = await listenSecure({
      ...agents.address,
      credentials: this.#credentials!,
      ...(named === undefined ? {} : {
        named: {
          name: named.name,
          credentials: files.credentials("agent-port-own", named.files),
        },
      }),
      clientCertificate: verifies ? "optional" : "none",
      alpn: [STREAMS_ALPN, HTTP2_ALPN, ...agents.alpnProtocols],
      ...tls,
      limiter: limiter.limiter,
    }, {
      onConnection: (stream, admitted) => this.#port.accept(stream, admitted),
      onRefused: (error) => {
        metrics.ours.refusedAgents.add();
        this.core.program.events.note("refused", error.message);
        log.event(error.message, {}, lineKey(error.message));
      },
      onProblem: (line) => log.warn(line, { code: "TUN513" }),
    });
    return this.#listener.address;
  }

  /** The server is up: says where, and follows what changes on disk. */
  async start(address: string): Promise<void> {
    const { options, program: { files, timers } } = this.core;
    const identity = this.identity;
    identity?.watch({
      onReloaded: files.follow("authorities"),
      onCredentials: () => files.check(),
      onAuthorities: (bundle) => this.#port.announceAuthorities(bundle),
      onNode: (node) => this.reconsider(node),
    });
    // A node that waited for approval while this process did not run may have
    // left without a word.
    this.#lapses = new LapseWatch(timers, Date.now, () => {
      for (const link of this.core.registry.links) {
        if (link.askedMs === undefined) link.checkLiveness();
      }
    });
    await identity?.noteAddress(address);
    if (options.agents.allowAnonymous) this.#warnOfAnonymous(address);
    await this.#meetPeers(address);
  }

  /**
   * From now on other servers know this one, and its agents learn of others.
   */
  async #meetPeers(listening: string): Promise<void> {
    const { options, peers, state, instanceId, program } = this.core;
    const { membership, serverId, kubernetes } = options;
    const ephemerals = state && await state.ephemerals("peers", {
      serverId,
      instanceId,
      timeoutMs: membership?.timeoutMs ?? PEER_TIMEOUT_MS,
      timers: program.timers,
      observer: () => countLeases(program.metrics),
      ...kubernetes?.lease,
    });
    peers.start({
      address: membership?.advertiseAddress ?? certainAddress(listening),
      ephemerals,
      authorities: () => authorityIdsIn(this.#credentials!.current.ca),
      onAnnouncement: (news) => this.#port.announcePeers(news),
    });
  }

  /** Whether a peer may link. */
  admit(candidate: LinkCandidate): LinkAuthorization {
    return authorize(this.#trust!.authorizers, candidate);
  }

  /**
   * Whom to trust may have changed, or what a policy grants: that may be what a
   * link was admitted for.
   *
   * @param node The only one whose record may have changed.
   */
  reconsider(node?: string): void {
    const { registry } = this.core;
    // A change of one node's record is no reason to look at ten thousand others.
    const agents = node === undefined ? registry.links : registry.about(node);
    const links = [...agents, ...this.nodes.links];
    reconsider(this.#trust!, links, node);
    this.nodes.reconsider(node);
  }

  /** Reads the records of nodes again, because it was asked for. */
  reload(): void {
    const reloading = this.identity?.reload();
    if (reloading !== undefined) unawaited("identity", reloading);
  }

  /** Callers that received a GOAWAY, and may still be about to call. */
  get leaving(): number {
    return this.#port.leaving;
  }

  /** Sends agents and callers to other servers; what runs goes on. */
  drain(reason: string, spreadMsMax: number): void {
    this.history.freeze();
    this.#port.drain(reason, spreadMsMax);
  }

  /** Ends every link. */
  stop(reason: string): void {
    this.#lapses?.stop();
    this.identity?.close();
    this.#duplicates.stop();
    this.core.forwarder?.stop(reason);
    this.history.freeze();
    for (const link of [...this.core.registry.links]) link.close(reason);
    this.#port.stop(reason);
    this.#listener?.close();
  }

  #warnOfAnonymous(address: string): void {
    this.core.program.log.warn(
      `agents need no certificate on ${address}: any program that can connect there ` +
        "may become an agent and get connections for any target" +
        (this.identity === undefined ? "" : " but joined nodes"),
      { code: "TUN333" },
    );
  }

  #createPort(): AgentPort {
    const { options, program, peers } = this.core;
    const { agents, serverId, messageBytesMax } = options;
    const isServer = (identity: PeerIdentity) =>
      this.identity?.isServer(identity) === true;
    const serverMethods = this.#peerFrontend(isServer);
    return new AgentPort({
      serverId,
      serverCount: () => peers.serverCount,
      peers: () => peers.announcement,
      instanceId: this.core.instanceId,
      keepaliveMs: agents.keepaliveMs,
      receiveBudget: this.core.receiveBudget,
      messageBytesMax,
      admit: (candidate) => this.#admitLink(candidate),
      timers: program.timers,
      randomness: (bytes) => crypto.getRandomValues(bytes),
      methodsFor: (caller) => ({
        ...this.readiness.methods,
        ...this.identity?.methods(caller),
        ...standingMethods({
          serverId,
          wallClock: Date.now,
          admit: (candidate) => this.admit(candidate),
          linksOf: (peer) => this.#duplicates.linksOf(peer),
          instancesOf: (peer) => this.#duplicates.instancesOf(peer),
        }, caller),
        ...isServer(caller.identity)
          ? serverMethods(caller)
          : this.nodes.methods(caller),
      }),
      isServer,
      authorities: () => this.identity?.bundle,
      observer: this.#observer(),
    });
  }

  /** Other servers send dials here. */
  #peerFrontend(isServer: (identity: PeerIdentity) => boolean) {
    const { core } = this;
    const tools = core.callerTools("server");
    return peerFrontend({
      ...tools,
      dial: core.forwarder === undefined ? refuseForwarded : tools.dial,
      hasPolicy: core.authorization.dials.hidesNodes,
      isServer,
      refused: (from, reason) => core.callerRefused(`${from}: ${reason}`),
    });
  }

  #createDuplicates(): Duplicates {
    const { options, program: { log, timers, metrics } } = this.core;
    return new Duplicates({
      policy: options.agents.duplicateIdentity ?? "warn",
      timers,
      wallClock: Date.now,
      observer: duplicateReports({
        log,
        metrics,
        wallClock: Date.now,
        count: () => this.#duplicates.count,
        nodeOf: (peer) => this.identity?.nodeOf(peer),
        keep: (record) => this.identity?.keepDuplicate(record),
      }),
    });
  }

  /** One process for each agent that may link. */
  #admitLink(candidate: LinkCandidate): LinkAuthorization {
    const next = (refusal: LinkRefusal | undefined) =>
      refusal ?? this.#duplicates.admit(candidate.peer);
    const decision = this.admit(candidate);
    return decision instanceof Promise ? decision.then(next) : next(decision);
  }

  #observer(): AgentPortObserver {
    const { metrics, program: { log }, limiter } = this.core;
    return {
      ...withPacketLines(metrics.packetObserver("agent"), log, "agent"),
      datagramCut: () =>
        log.warn(
          "Cannot pass on datagrams of 4096 bytes and more from a Go agent: it " +
            "cuts them there, so they are dropped; run tunnel agent on that node",
          { code: "TUN210" },
          "datagram cut",
        ),
      linked: (link) => this.#linked(link),
      unlinked: (link, reason) => this.#unlinked(link, reason),
      trusts: ({ peer }, authorities) => {
        const noting = this.identity
          ?.noteTrust(peer.identity, authorities);
        if (noting !== undefined) unawaited("identity", noting);
      },
      changed: (link) => {
        this.#duplicates.changed(link);
        this.nodes.announced("changed", link);
      },
      refused: (remoteAddress, reason, code) => {
        metrics.ours.refusedAgents.add();
        const line = `${remoteAddress}: ${reason}`;
        this.core.program.events.note("refused", line, { code });
        log.event(line, { code }, lineKey(line));
      },
      counted: (change) =>
        metrics.upstream.grpcConnections.with("Connect").add(change),
      ended: (end) => limiter.ended("agents", end),
      left: () => this.core.loadChanged(),
    };
  }

  /** The node with that name, or the agent that has not joined. */
  #nameOf({ peer }: AgentLink): string {
    return this.identity?.nodeOf(peer) ?? peer.agentId;
  }

  #linked(link: AgentLink): void {
    this.core.registry.add(link);
    this.core.metrics.nodes.linked(link);
    this.core.peers.linked(link.peer);
    this.#duplicates.linked(link);
    this.nodes.announced("linked", link);
    this.readiness.report();
    const { agentId, carrier, remoteAddress, software } = link.peer;
    this.history.linked(this.#nameOf(link), link);
    this.core.program.events.note(
      "linked",
      `linked from ${remoteAddress} by ${software}, over ${carrier}`,
      { node: this.#nameOf(link) },
    );
    this.core.program.log.event("agent linked", {
      agent: agentId,
      carrier,
      from: remoteAddress,
      software,
    });
  }

  #unlinked(link: AgentLink, reason: string): void {
    this.core.registry.remove(link);
    this.core.metrics.nodes.unlinked(link);
    this.core.peers.unlinked(link.peer);
    this.#duplicates.unlinked(link);
    this.nodes.unlinked(link);
    this.readiness.report();
    const { agentId, remoteAddress } = link.peer;
    this.history.unlinked(this.#nameOf(link), reason);
    this.core.program.events.note("unlinked", `link lost: ${reason}`, {
      node: this.#nameOf(link),
    });
    this.core.program.log.event(`agent gone: ${reason}`, {
      agent: agentId,
      from: remoteAddress,
    });
  }
}
