/**
 * From a target to a conduit: chooses an agent, or says why there is none; how it
 * is asked is `ongoing_dial.ts`'s business. Both frontends dial through here.
 *
 * @module
 */

import type { DialAnswer } from "../../proto/link/dial_handler.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import type { AgentLink, PendingDial } from "../../proto/link/link.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { ConduitObserver } from "../../proto/transfer/observed_conduit.ts";
import type { DialRecord } from "../../policy/dial_record.ts";
import type {
  ConnectionFacts,
  ConnectionLog,
} from "../../platform/log/connection_log.ts";
import { type Choice, dialFacts, OngoingDial } from "./ongoing_dial.ts";

import type {
  DialAuthorizer,
  RequestedDial,
} from "../policy/dial_authorizer.ts";
import {
  ambiguousTarget,
  areSeveral,
  connectedNodes,
  nodeHint,
} from "./connected_nodes.ts";
import type { NoAgent, Picked, Registry } from "./registry.ts";

/** Why a dial failed, as it is counted. */
export type DialFailureCause =
  /** The agent answered with an error: its own deadline is one, too. */
  | "answered"
  /** The agent did not answer before our deadline. */
  | "deadline"
  /** The caller gave up. */
  | "cancelled"
  /** A rule of ours forbids it: no agent was asked. */
  | "refused"
  | Extract<DialError["reason"], "no-agent" | "link-lost" | "dial-closed">;

/** What is counted about dials and what they lead to. */
export interface DialObserver {
  dialStarted(): void;
  /** Paired with `dialStarted`, after a success as after a failure. */
  dialEnded(): void;
  dialFailed(cause: DialFailureCause): void;
  connected(tookMs: number): ConduitObserver;
}

/** What `Dialer` needs from outside. */
export interface DialerOptions {
  readonly registry: Registry;
  readonly timers: Timers;
  /** How long an agent may take to answer; 0 waits for ever. */
  readonly dialTimeoutMs: number;
  readonly observer: DialObserver;
  /**
   * Absent: all callers but nodes may dial everything, and nothing is recorded.
   */
  readonly authorizer?: DialAuthorizer;
  /** Absent: connections are not logged. */
  readonly log?: ConnectionLog;
}

/** A dial as a frontend asks for it. */
export interface CallerDial extends RequestedDial {
  /** See `ONE_AGENT_FIELD`. */
  readonly oneAgent?: boolean;
  /** See `DialContext.takeEarlyData`. */
  takeEarlyData(): Uint8Array;
}

/** Dials for all frontends of a server. */
export class Dialer {
  readonly #options: DialerOptions;

  constructor(options: DialerOptions) {
    this.#options = options;
  }

  /** Starts a dial. The answer may come before this returns. */
  dial(request: CallerDial, answer: DialAnswer): PendingDial {
    const { registry, authorizer } = this.#options;
    const picked = registry.pick(request.target, request.node);
    const link = picked.kind === "noAgent" ? undefined : picked.link;
    if (authorizer === undefined && request.caller.node !== undefined) {
      throw new TypeError("Cannot dial for a node: there is no authorizer");
    }
    const decision = authorizer?.authorize(request, link?.peer);
    if (decision?.refusal !== undefined) {
      return this.#fail(
        decision.refusal,
        "refused",
        dialFacts(request, link),
        answer,
      );
    }
    const record = decision?.record;
    const error = this.#unserved(request, picked);
    if (picked.kind === "noAgent" || error !== undefined) {
      return this.#refuse(request, error!, record, answer);
    }
    const choice = { link: picked.link, record };
    const dial = new OngoingDial(
      choice,
      request,
      answer,
      this.#options,
      (isWanted) => this.#another(request, picked.link, isWanted),
    );
    dial.start();
    return dial;
  }

  /** The link that may be asked beside or after the first, if there is one. */
  #another(
    request: CallerDial,
    first: AgentLink,
    isWanted: (link: AgentLink) => boolean,
  ): Choice | undefined {
    const { registry, authorizer } = this.#options;
    const link = registry.pickSuch(
      request.target,
      request.node,
      (link) =>
        isWanted(link) &&
        // Each agent has a loopback of its own.
        (request.oneAgent !== true || link.peer.agentId === first.peer.agentId),
    );
    if (link === undefined) return undefined;
    // What the first agent may be asked for, another one may not.
    if (authorizer?.permits(request, link.peer) === false) return undefined;
    const decision = authorizer?.authorize(request, link.peer);
    if (decision?.refusal !== undefined) return undefined;
    return { link, record: decision?.record };
  }

  /** Why no agent is asked, for a caller who may know it. */
  #unserved(
    { target, node, oneAgent, caller }: CallerDial,
    picked: Picked | NoAgent,
  ): DialError | undefined {
    const { registry, authorizer } = this.#options;
    // A caller that a policy keeps from nodes does not learn their names.
    const seesNodes = authorizer?.hidesNodes !== true &&
      caller.node === undefined;
    if (picked.kind === "noAgent") {
      const hint = node === undefined || !seesNodes || picked.wasSeen
        ? ""
        : nodeHint(node, connectedNodes(registry.links));
      const text = hint === "" ? picked.message : `${picked.message}; ${hint}`;
      return new DialError("no-agent", text);
    }
    if (oneAgent !== true || node !== undefined) return undefined;
    if (!areSeveral(registry.links)) return undefined;
    const nodes = seesNodes ? connectedNodes(registry.links) : undefined;
    return new DialError("refused", ambiguousTarget(target.address, nodes));
  }

  #refuse(
    request: CallerDial,
    error: DialError,
    record: DialRecord | undefined,
    answer: DialAnswer,
  ): PendingDial {
    record?.failed(error);
    const cause = error.reason === "no-agent" ? "no-agent" : "refused";
    return this.#fail(error, cause, dialFacts(request, undefined), answer);
  }

  #fail(
    error: DialError,
    cause: DialFailureCause,
    facts: ConnectionFacts,
    answer: DialAnswer,
  ): PendingDial {
    this.#options.observer.dialFailed(cause);
    this.#options.log?.failed(error, facts);
    answer.failed(error);
    return { cancel: () => {} };
  }
}
