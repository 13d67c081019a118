/**
 * From a target to a conduit: chooses an agent, or says why there is none; how it
 * is asked is `ongoing_dial.ts`'s business. Both frontends dial through here.
 *
 * @module
 */

import type { DialAnswer } from "../../proto/link/dial_handler.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import type { AgentLink, PendingDial } from "../../proto/link/link.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { ConduitObserver } from "../../proto/transfer/observed_conduit.ts";
import type { DialRecord } from "../../policy/dial_record.ts";
import type {
  ConnectionFacts,
  ConnectionLog,
} from "../../platform/log/connection_log.ts";
import { type Choice, dialFacts, OngoingDial } from "./ongoing_dial.ts";
import type { Caller } from "../policy/caller.ts";
import type { DialControl } from "../policy/dial_control.ts";
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
  /** Whoever asked gave up. */
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
   * Absent: everybody but nodes may dial everything, and nobody writes it down.
   */
  readonly control?: DialControl;
  /** Absent: nothing is said about connections. */
  readonly log?: ConnectionLog;
}

/** A dial as a frontend asks for it. */
export interface DialOrder {
  readonly target: DialTarget;
  /** The `host` identifier of the only agent wanted, if any. */
  readonly node: string | undefined;
  /** See `ONE_AGENT_FIELD`. */
  readonly oneAgent?: boolean;
  readonly caller: Caller;
  /** See `DialContext.takeEarlyData`. */
  takeEarlyData(): Uint8Array;
}

/** See the module description. */
export class Dialer {
  readonly #options: DialerOptions;

  constructor(options: DialerOptions) {
    this.#options = options;
  }

  /** Starts a dial. The answer may come before this returns. */
  dial(order: DialOrder, answer: DialAnswer): PendingDial {
    const { registry, control } = this.#options;
    const picked = registry.pick(order.target, order.node);
    const link = picked.kind === "noAgent" ? undefined : picked.link;
    if (control === undefined && order.caller.node !== undefined) {
      throw new TypeError("Cannot dial for a node: nobody would judge it");
    }
    const admission = control?.admit(order, link?.peer);
    if (admission?.refusal !== undefined) {
      return this.#fail(
        admission.refusal,
        "refused",
        dialFacts(order, link),
        answer,
      );
    }
    const record = admission?.record;
    const error = this.#unserved(order, picked);
    if (picked.kind === "noAgent" || error !== undefined) {
      return this.#refuse(order, error!, record, answer);
    }
    const choice = { link: picked.link, record };
    const dial = new OngoingDial(
      choice,
      order,
      answer,
      this.#options,
      (isWanted) => this.#another(order, picked.link, isWanted),
    );
    dial.start();
    return dial;
  }

  /** Who may be asked beside or behind the first, if anybody may. */
  #another(
    order: DialOrder,
    first: AgentLink,
    isWanted: (link: AgentLink) => boolean,
  ): Choice | undefined {
    const { registry, control } = this.#options;
    const link = registry.pickSuch(
      order.target,
      order.node,
      (link) =>
        isWanted(link) &&
        // Each agent has a loopback of its own.
        (order.oneAgent !== true || link.peer.agentId === first.peer.agentId),
    );
    if (link === undefined) return undefined;
    // What the first agent may be asked for, another one may not.
    if (control?.permits(order, link.peer) === false) return undefined;
    const admission = control?.admit(order, link.peer);
    if (admission?.refusal !== undefined) return undefined;
    return { link, record: admission?.record };
  }

  /** Why no agent is asked, for a caller who may know it. */
  #unserved(
    { target, node, oneAgent, caller }: DialOrder,
    picked: Picked | NoAgent,
  ): DialError | undefined {
    const { registry, control } = this.#options;
    // Whom a policy keeps from nodes is not told what they are called.
    const seesNodes = control?.hidesNodes !== true && caller.node === undefined;
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
    order: DialOrder,
    error: DialError,
    record: DialRecord | undefined,
    answer: DialAnswer,
  ): PendingDial {
    record?.failed(error);
    const cause = error.reason === "no-agent" ? "no-agent" : "refused";
    return this.#fail(error, cause, dialFacts(order, undefined), answer);
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
