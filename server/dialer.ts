/**
 * From a target to a conduit: chooses an agent, asks it, waits no longer than
 * the deadline, and counts what came of it. Both frontends dial through here.
 *
 * @module
 */

import { abandon, type DialAnswer } from "../proto/link/dial_handler.ts";
import {
  type AgentLink,
  DialError,
  type DialTarget,
  type PendingDial,
} from "../proto/link/link.ts";
import type { Timer, Timers } from "../proto/sync/clock.ts";
import type { Conduit } from "../proto/transfer/conduit.ts";
import {
  type ConduitObserver,
  ObservedConduit,
} from "../proto/transfer/observed_conduit.ts";
import type { DialRecord } from "../host/policy/dial_record.ts";
import { isRefusalByRule } from "../host/policy/refusal.ts";
import type {
  ConnectionFacts,
  ConnectionLog,
} from "../host/process/connection_log.ts";
import { type Caller, nameOf } from "./policy/caller.ts";
import type { DialControl } from "./policy/dial_control.ts";
import {
  ambiguousTarget,
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
        factsOf(order, link),
        answer,
      );
    }
    const record = admission?.record;
    const error = this.#unserved(order, picked);
    if (picked.kind === "noAgent" || error !== undefined) {
      return this.#refuse(order, error!, record, answer);
    }
    const choice = { link: picked.link, record };
    const dial = new Dial(
      choice,
      order,
      answer,
      this.#options,
      (tried) => this.#another(order, tried),
    );
    dial.start();
    return dial;
  }

  /** Who may be asked when those that were asked are gone, if anybody may. */
  #another(
    order: DialOrder,
    tried: ReadonlySet<AgentLink>,
  ): Choice | undefined {
    const { registry, control } = this.#options;
    const picked = registry.pick(order.target, order.node);
    if (picked.kind === "noAgent" || tried.has(picked.link)) return undefined;
    // What the first agent may be asked for, another one may not.
    const admission = control?.admit(order, picked.link.peer);
    if (admission?.refusal !== undefined) return undefined;
    return { link: picked.link, record: admission?.record };
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
    if (oneAgent !== true || node !== undefined || !seesNodes) return undefined;
    const nodes = connectedNodes(registry.links);
    if (nodes.length < 2) return undefined;
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
    return this.#fail(error, cause, factsOf(order, undefined), answer);
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

/** Whom a dial goes to. */
interface Choice {
  readonly link: AgentLink;
  readonly record: DialRecord | undefined;
}

/**
 * How many links are tried in place of one that went before it answered: those of
 * one agent go one after the other.
 */
const RETRIES_MAX = 4;

/** One dial through one link, and through others when that is lost. */
class Dial implements PendingDial {
  #link: AgentLink;
  #record: DialRecord | undefined;
  readonly #order: DialOrder;
  readonly #answer: DialAnswer;
  readonly #options: DialerOptions;
  readonly #another: (tried: ReadonlySet<AgentLink>) => Choice | undefined;
  readonly #startedMs: number;
  readonly #tried = new Set<AgentLink>();
  /** What went with the dial, until somebody has answered. */
  #earlyData: Uint8Array | undefined;
  #pending: PendingDial | undefined;
  #deadline: Timer | undefined;
  #isOver = false;
  /** What went with the dial and behind it: it passes no conduit here. */
  #earlyOctets = 0;

  constructor(
    { link, record }: Choice,
    order: DialOrder,
    answer: DialAnswer,
    options: DialerOptions,
    another: (tried: ReadonlySet<AgentLink>) => Choice | undefined,
  ) {
    this.#link = link;
    this.#record = record;
    this.#order = order;
    this.#answer = answer;
    this.#options = options;
    this.#another = another;
    this.#startedMs = record?.startMs ?? options.timers.now();
  }

  start(): void {
    const { timers, dialTimeoutMs, observer } = this.#options;
    observer.dialStarted();
    if (dialTimeoutMs > 0) {
      this.#deadline = timers.after(dialTimeoutMs, () => this.#onDeadline());
    }
    const earlyData = this.#order.takeEarlyData();
    this.#earlyOctets = earlyData.length;
    if (earlyData.length > 0) this.#earlyData = earlyData;
    this.#ask();
  }

  #ask(): void {
    const link = this.#link;
    const earlyData = this.#earlyData;
    this.#tried.add(link);
    const pending = link.dial(this.#order.target, {
      onConnected: (conduit) => this.#onConnected(conduit),
      onFailed: (error) => this.#onFailed(error),
    }, earlyData === undefined ? {} : { earlyData });
    // It may have failed at once, and another one be asked by now.
    if (link === this.#link) this.#pending = pending;
  }

  /** A link that was lost says nothing about the target: another is asked. */
  #onFailed(error: DialError): void {
    if (this.#isOver) return;
    const next = this.#canGoAgain(error)
      ? this.#another(this.#tried)
      : undefined;
    if (next === undefined) {
      return this.#fail(this.#named(error), causeOf(error));
    }
    this.#record?.failed(this.#named(error));
    this.#link = next.link;
    this.#record = next.record;
    this.#ask();
  }

  /** What the caller said may have been heard, and is not said twice. */
  #canGoAgain({ loss }: DialError): boolean {
    if (loss === undefined || this.#tried.size > RETRIES_MAX) return false;
    if (this.#earlyOctets === 0) return true;
    const isHeldWhole = this.#earlyOctets === this.#earlyData?.length;
    return loss === "unheard" && isHeldWhole;
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#finish();
    this.#pending?.cancel();
    this.#count(new DialError("cancelled", "the caller gave up"), "cancelled");
  }

  sendEarly(octets: Uint8Array): number {
    if (this.#isOver) return 0;
    const sent = this.#pending?.sendEarly?.(octets) ?? 0;
    this.#earlyOctets += sent;
    return sent;
  }

  #onConnected(conduit: Conduit): void {
    if (this.#isOver) return abandon(conduit, "the caller gave up");
    this.#finish();
    const { timers, observer, log } = this.#options;
    const counter = observer.connected(timers.now() - this.#startedMs);
    const recorded = this.#record?.observing(counter) ?? counter;
    const observed = log?.wantsAll
      ? log.opened(this.#facts(), this.#startedMs, recorded)
      : recorded;
    if (this.#earlyOctets > 0) observed.sent(this.#earlyOctets);
    this.#answer.connected(new ObservedConduit(conduit, observed));
  }

  #facts(): ConnectionFacts {
    return factsOf(this.#order, this.#link);
  }

  /** A link knows what went wrong; the caller wants to know on which node. */
  #named(error: DialError): DialError {
    const { agentId } = this.#link.peer;
    // It names its rule, the same over either carrier.
    if (isRefusalByRule(error.message)) return error;
    if (error.reason === "endpoint" || error.reason === "timeout") {
      return /^[\x21-\x7e]{1,63}$/.test(agentId)
        ? new DialError(error.reason, `${error.message} (agent ${agentId})`)
        : error;
    }
    if (error.reason !== "link-lost") return error;
    return new DialError(
      "link-lost",
      `Cannot dial ${this.#order.target.address}: the link to ` +
        `${this.#agentName()} was lost: ${error.message}`,
    );
  }

  #agentName(): string {
    const { agentId, remoteAddress } = this.#link.peer;
    return `agent ${agentId} (${remoteAddress})`;
  }

  #onDeadline(): void {
    this.#pending?.cancel();
    this.#fail(
      new DialError(
        "timeout",
        `timed out waiting for backend dial: ${this.#agentName()} ` +
          `did not answer for ${this.#order.target.address} ` +
          `within ${this.#options.dialTimeoutMs} ms`,
      ),
      "deadline",
    );
  }

  #fail(error: DialError, cause: DialFailureCause): void {
    if (this.#isOver) return;
    this.#finish();
    this.#count(error, cause);
    this.#answer.failed(error);
  }

  #count(error: DialError, cause: DialFailureCause): void {
    this.#options.observer.dialFailed(cause);
    this.#options.log?.failed(error, this.#facts());
    this.#record?.failed(error);
  }

  #finish(): void {
    this.#isOver = true;
    this.#earlyData = undefined;
    this.#deadline?.cancel();
    this.#options.observer.dialEnded();
  }
}

/** For the log. */
function factsOf(
  { caller, node, target }: DialOrder,
  link: AgentLink | undefined,
): ConnectionFacts {
  const known = { who: nameOf(caller), from: caller.remoteAddress, target };
  const agent = link?.peer.agentId ?? node;
  return agent === undefined ? known : { ...known, node: agent };
}

/** How `error`, which came from the agent's link, is counted. */
function causeOf({ reason }: DialError): DialFailureCause {
  return reason === "link-lost" || reason === "dial-closed"
    ? reason
    : "answered";
}
