/**
 * From a target to a conduit: chooses an agent, or another server that has one,
 * or says why there is neither; `ongoing_dial.ts` asks it. All frontends dial
 * through here.
 *
 * An agent that is linked here comes first, by whatever strategy it was found:
 * knowledge of other servers' agents is second-hand, and they cost one hop
 * more. Only a local agent that is silent or draining comes after them.
 *
 * @module
 */

import type { DialReports } from "../../platform/conduits/dial_reports.ts";
import { type DialAnswer, failedDial } from "../../proto/link/dial_handler.ts";
import type { DialWishes } from "../../proto/link/dial_wishes.ts";
import type { TraceContext } from "../../proto/peer/trace_context.ts";
import type { ConnectionId } from "../../proto/peer/connection_id.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import type {
  AgentLink,
  LinkPeer,
  PendingDial,
} from "../../proto/link/link.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { DialRecord } from "../../policy/dial_record.ts";
import {
  dialSpan,
  isTracing,
  type Span,
  startChild,
} from "../../platform/tracing/tracing.ts";
import { newConnectionId } from "../../platform/process/connection_ids.ts";
import { type DialWay, LinkWay } from "./dial_way.ts";
import {
  type AnotherPlace,
  type Choice,
  dialFacts,
  OngoingDial,
  pathOf,
} from "./ongoing_dial.ts";
import { NO_PEERS, type Peer, type Peers, peersHint } from "../peers/peers.ts";
import {
  ambiguousTarget,
  connectedNodes,
  hostIsNode,
  meantNode,
  nodeHint,
} from "./meant_node.ts";
import type {
  DialAuthorizer,
  RequestedDial,
} from "../policy/dial_authorizer.ts";
import {
  isStill,
  type NoAgent,
  type Picked,
  type Registry,
} from "./registry.ts";

/** Sends dials to other servers. */
export interface Forwarder {
  /** @param hasOthers Another server is asked where this one's agent is still. */
  wayTo(peer: Peer, request: IdentifiedDial, hasOthers: boolean): DialWay;
}

/**
 * Limit on other servers that are asked for one dial. When their agents are not
 * known, each wrong one costs a round trip.
 */
export const PEERS_ASKED_MAX = 4;

/** What `Dialer` needs from outside. */
export interface DialerOptions {
  readonly registry: Registry;
  readonly timers: Timers;
  /** How long an agent may take to answer; 0: no limit. */
  readonly dialTimeoutMs: number;
  /**
   * Absent: all callers but nodes may dial everything, and nothing is recorded.
   */
  readonly authorizer?: DialAuthorizer;
  /** Absent: this server is alone. */
  readonly peers?: Peers;
  /** Absent: callers are told which server to call instead. */
  readonly forwarder?: Forwarder | undefined;
  /**
   * The reports of dials. When a dial comes with the id of a connection that is
   * still listed, it gets a new id.
   */
  readonly reports: DialReports;
}

/** A dial as a frontend asks for it. */
export interface CallerDial extends RequestedDial, Omit<DialWishes, "node"> {
  /** The caller's span, or ours below it. */
  readonly trace?: TraceContext | undefined;
  /** See `DialContext.takeEarlyData`. */
  takeEarlyData(): Uint8Array;
}

/** One that this server knows by an id. */
export interface IdentifiedDial extends CallerDial {
  readonly id: ConnectionId;
  /** It ends with the answer. */
  readonly span?: Span | undefined;
}

/** Callers with several servers ask the next one after these words. */
const ENDING = "No agent available: the server is stopping";

/** Dials for all frontends of a server. */
export class Dialer {
  constructor(private readonly options: DialerOptions) {}

  /** Each dial is for another server: this one is about to end. */
  isEnding = false;

  /** Starts a dial. The answer may come before this returns. */
  dial(asked: CallerDial, answer: DialAnswer): PendingDial {
    const request = { ...asked, id: this.#idOf(asked) };
    if (!isTracing) return this.#dial(request, answer);
    const { id, target, node, trace } = request;
    const facts = { id, target, node };
    const span = dialSpan("serve dial", facts, trace);
    const inner = span?.context ?? trace;
    return this.#dial({ ...request, span, trace: inner }, answer);
  }

  #dial(request: IdentifiedDial, answer: DialAnswer): PendingDial {
    const { registry, authorizer } = this.options;
    const { trace } = request;
    if (
      request.maybeNode === true &&
      meantNode(request, this.options) !== undefined
    ) {
      // No dial was made or denied: the next dial names the node.
      const error = hostIsNode(request.target.address);
      request.span?.end(error.message);
      return failedDial(answer, error);
    }
    const choosing = startChild("choose agent", trace);
    const picked = registry.pick(request.target, request.node);
    const link = picked.kind === "noAgent" ? undefined : picked.link;
    if (authorizer === undefined && request.caller.node !== undefined) {
      throw new TypeError("Cannot dial for a node: there is no authorizer");
    }
    const way = this.#wayOf(request, link, []);
    const agent = agentOf(way);
    choosing?.end();
    const authorizing = startChild("authorize", trace);
    const decision = authorizer?.authorize(request, agent, way?.forwardedTo);
    authorizing?.end(decision?.refusal?.message);
    if (decision?.refusal !== undefined) {
      return this.#fail(decision.refusal, request, way, answer);
    }
    const record = decision?.record;
    const error = this.#unserved(request, picked, way);
    if (way === undefined || error !== undefined) {
      return this.#fail(error!, request, undefined, answer, record);
    }
    const dial = new OngoingDial(
      { way, record },
      request,
      answer,
      this.options,
      (tried, place) => this.#another(request, tried, place),
      () => this.#hasChoice(request, way),
    );
    dial.start();
    return dial;
  }

  /** A caller may choose any id, even that of another caller. */
  #idOf({ id }: CallerDial): ConnectionId {
    return id === undefined || this.options.reports.has(id)
      ? newConnectionId()
      : id;
  }

  /** Whether another agent, or server, could be asked for it. */
  #hasChoice(request: CallerDial, way: DialWay): boolean {
    const { registry, forwarder } = this.options;
    if (request.hasOthers === true) return true;
    if (registry.hasChoice(request.target, request.node)) return true;
    const isOther = (peer: Peer) => peer.serverId !== way.forwardedTo;
    return forwarder !== undefined && this.#peersWith(request).some(isOther);
  }

  /** The way that may be taken beside or after others, if there is one. */
  #another(
    request: IdentifiedDial,
    tried: readonly DialWay[],
    place: AnotherPlace,
  ): Choice | undefined {
    const { registry, authorizer } = this.options;
    const [first] = tried;
    const link = registry.pickSuch(
      request.target,
      request.node,
      (link) =>
        isUntried(link, (one) => registry.isHealthy(one), tried, place) &&
        // Each agent has its own loopback.
        (request.oneAgent !== true || link.peer.agentId === first!.agentId),
    );
    // The agent of a link that lives is slow by itself, and might be the very
    // one that other servers have.
    const isSlow = place === "beside" &&
      tried.some((way) =>
        way instanceof LinkWay && registry.isHealthy(way.leadsTo)
      );
    const way: DialWay | undefined = isSlow
      ? link && new LinkWay(link, request.target)
      : this.#wayOf(request, link, tried);
    if (way === undefined) return undefined;
    const agent = agentOf(way);
    // A target that is allowed on the first agent may be forbidden on another.
    // No caller asked for that agent by name, so a refusal is neither logged
    // nor counted.
    const decision = authorizer?.explain(request, agent);
    if (decision?.isAllowed === false) return undefined;
    const record = decision &&
      authorizer?.record(decision, request, agent, way.forwardedTo);
    return { way, record };
  }

  /** @param link The best that there is here. */
  #wayOf(
    request: IdentifiedDial,
    link: AgentLink | undefined,
    tried: readonly DialWay[],
  ): DialWay | undefined {
    const { forwarder, registry } = this.options;
    const mayBeHere = link !== undefined && (
      forwarder === undefined || request.oneAgent === true ||
      registry.isHealthy(link)
    );
    const way = mayBeHere ? undefined : this.#wayToPeer(request, tried);
    return way ?? (link && new LinkWay(link, request.target));
  }

  #wayToPeer(
    request: IdentifiedDial,
    tried: readonly DialWay[],
  ): DialWay | undefined {
    const { forwarder, timers } = this.options;
    if (forwarder === undefined) return undefined;
    // Each server has agents of its own, and so has this one.
    const isForOne = request.oneAgent === true && request.node === undefined;
    if (isForOne && tried.length > 0) return undefined;
    const peers = this.#peersWith(request);
    if (isForOne && peers.length > 1) return undefined;
    // Those that are known to have the agent stand first, and share the load.
    const known = peers.filter(({ agentsAreKnown }) => agentsAreKnown);
    const untried = (some: readonly Peer[]) =>
      some.slice(0, PEERS_ASKED_MAX).filter(({ serverId }) =>
        tried.every(({ forwardedTo }) => forwardedTo !== serverId)
      );
    const hasOthers = request.hasOthers === true || untried(peers).length > 1;
    const waysTo = (some: readonly Peer[]) =>
      untried(some).map((peer) => forwarder.wayTo(peer, request, hasOthers));
    const lively = (ways: readonly DialWay[]) =>
      ways.filter(({ leadsTo }) => !isStill(leadsTo, timers.now()));
    const all = waysTo(peers);
    const [best] = lively(waysTo(known))
      .sort((one, other) => one.leadsTo.load - other.leadsTo.load);
    return best ?? lively(all)[0] ?? all[0];
  }

  /**
   * A dial that another server forwarded is not forwarded again: it could go in
   * a circle.
   */
  #peersWith({ target, node, caller }: CallerDial): readonly Peer[] {
    const { peers = NO_PEERS } = this.options;
    return caller.forwardedBy === undefined ? peers.find(target, node) : [];
  }

  /** Why no agent is asked, for a caller that may know. */
  #unserved(
    request: CallerDial,
    picked: Picked | NoAgent,
    way: DialWay | undefined,
  ): DialError | undefined {
    if (this.isEnding) return new DialError("no-agent", ENDING);
    const { registry, authorizer, forwarder } = this.options;
    const { target, node, oneAgent, caller } = request;
    // A caller that a policy keeps from nodes does not learn their names.
    const seesNodes = authorizer?.hidesNodes !== true &&
      caller.node === undefined;
    if (way === undefined && picked.kind === "noAgent") {
      const peers = this.#peersWith(request);
      if (forwarder !== undefined && peers.length > 0) {
        // One of several, and only for want of a node's name.
        return new DialError(
          "refused",
          ambiguousTarget(target.address),
          { code: "TUN508" },
        );
      }
      if (peers.length > 0 && seesNodes) {
        return new DialError("no-agent", peersHint(picked.wanted, peers));
      }
      const hint = node === undefined || !seesNodes || picked.wasSeen
        ? ""
        : nodeHint(node, connectedNodes(registry.links));
      const text = hint === "" ? picked.message : `${picked.message}; ${hint}`;
      return new DialError("no-agent", text);
    }
    if (oneAgent !== true || node !== undefined) return undefined;
    if (registry.agents < 2) return undefined;
    const nodes = seesNodes ? connectedNodes(registry.links) : undefined;
    return new DialError(
      "refused",
      ambiguousTarget(target.address, nodes),
      { code: "TUN508" },
    );
  }

  #fail(
    error: DialError,
    request: IdentifiedDial,
    way: DialWay | undefined,
    answer: DialAnswer,
    record?: DialRecord,
  ): PendingDial {
    const cause = error.reason === "no-agent" ? "no-agent" : "refused";
    this.options.reports.failed(error, {
      facts: dialFacts(request, way),
      path: pathOf(request, way),
      agentId: way?.agentId,
      span: request.span,
      record,
    }, cause);
    return failedDial(answer, error);
  }
}

function agentOf(way: DialWay | undefined): LinkPeer | undefined {
  return way instanceof LinkWay ? way.leadsTo.peer : undefined;
}

/**
 * Beside a silent agent another agent is wanted, one that does not drain. If
 * only its link gives no sign of life, another link of the same agent is
 * enough.
 */
function isUntried(
  link: AgentLink,
  isHealthy: (link: AgentLink) => boolean,
  tried: readonly DialWay[],
  place: AnotherPlace,
): boolean {
  if (tried.some(({ leadsTo }) => leadsTo === link)) return false;
  if (place === "instead") return true;
  const lives = (way: DialWay) =>
    !(way instanceof LinkWay) || isHealthy(way.leadsTo);
  return !link.isDraining &&
    tried.every((way) => way.agentId !== link.peer.agentId || !lives(way));
}
