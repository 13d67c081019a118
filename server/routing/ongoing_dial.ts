/**
 * A dial under way: asks an agent, another one when its link is lost or when it
 * does not answer soon, waits no longer than the deadline, and counts what came
 * of it.
 *
 * What a caller has sent never reaches two targets: a dial that carries such
 * bytes goes to another agent only if the first certainly did not receive them.
 * Connecting twice does no harm; who comes second is hung up on.
 *
 * It refuses to know who may be asked: `another` does.
 *
 * @module
 */

import type { DialRecord } from "../../policy/dial_record.ts";
import { isRefusalByRule } from "../../policy/refusal.ts";
import type { ConnectionFacts } from "../../platform/log/connection_log.ts";
import { abandon, type DialAnswer } from "../../proto/link/dial_handler.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import type { AgentLink, PendingDial } from "../../proto/link/link.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import { ObservedConduit } from "../../proto/transfer/observed_conduit.ts";
import type { CallerDial, DialerOptions, DialFailureCause } from "./dialer.ts";
import { callerName } from "../policy/caller.ts";

/**
 * An agent that has not answered for so long may stand still: another one is
 * asked as well. Most targets answer within a round trip, or refuse.
 */
export const SECOND_OPINION_MS = 1_000;

/**
 * Whoever was silent for so long is asked for a sign of life together with a dial:
 * one that stands still is then known before the next dials come.
 */
export const SILENT_MS = 1_000;

/** The link that a dial goes to. */
export interface Choice {
  readonly link: AgentLink;
  readonly record: DialRecord | undefined;
}

/** Another link that may be asked, of those that are wanted; mostly there is none. */
export type Another = (
  isWanted: (link: AgentLink) => boolean,
) => Choice | undefined;

/** Another agent that is asked beside the first. */
interface Rival extends Choice {
  pending?: PendingDial;
}

/**
 * How many links are tried in place of one that went before it answered: those of
 * one agent go one after the other.
 */
const RETRIES_MAX = 4;

/** One dial, from the first question to an agent to its answer. */
export class OngoingDial implements PendingDial {
  #link: AgentLink;
  #record: DialRecord | undefined;
  readonly #request: CallerDial;
  readonly #answer: DialAnswer;
  readonly #options: DialerOptions;
  readonly #another: Another;
  readonly #startedMs: number;
  readonly #tried = new Set<AgentLink>();
  #rival: Rival | undefined;
  #patience: Timer | undefined;
  /** What went with the dial, until an agent has answered. */
  #earlyData: Uint8Array | undefined;
  #pending: PendingDial | undefined;
  #deadline: Timer | undefined;
  #isOver = false;
  /** What went with the dial and behind it: it passes no conduit here. */
  #earlyBytes = 0;

  constructor(
    { link, record }: Choice,
    request: CallerDial,
    answer: DialAnswer,
    options: DialerOptions,
    another: Another,
  ) {
    this.#link = link;
    this.#record = record;
    this.#request = request;
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
    const earlyData = this.#request.takeEarlyData();
    this.#earlyBytes = earlyData.length;
    if (earlyData.length > 0) this.#earlyData = earlyData;
    this.#patience = timers.after(SECOND_OPINION_MS, () => this.#doubt());
    this.#ask();
  }

  #ask(): void {
    const link = this.#link;
    const earlyData = this.#earlyData;
    this.#tried.add(link);
    const pending = link.dial(this.#request.target, {
      onConnected: (conduit) => this.#onConnected(conduit),
      onFailed: (error) => this.#onFailed(error),
    }, earlyData === undefined ? {} : { earlyData });
    const silentMs = this.#options.timers.now() - link.lastHeardMs;
    if (silentMs >= SILENT_MS) this.#askForLife();
    // It may have failed at once, and another one be asked by now.
    if (link === this.#link) this.#pending = pending;
  }

  #askForLife(): void {
    if (this.#link.askedMs === undefined) this.#link.checkLiveness();
  }

  /** The agent, its link or its target may stand still. */
  #doubt(): void {
    this.#askForLife();
    this.#askAnother();
  }

  /** That a link was lost means nothing for the target: another is asked. */
  #onFailed(error: DialError): void {
    if (this.#isOver) return;
    if (error.loss !== undefined && this.#rival !== undefined) {
      this.#record?.failed(this.#named(error));
      return this.#follow(this.#rival);
    }
    const next = this.#canGoAgain(error)
      ? this.#another((link) => !this.#tried.has(link))
      : undefined;
    if (next === undefined) {
      return this.#fail(this.#named(error), causeOf(error));
    }
    this.#record?.failed(this.#named(error));
    this.#link = next.link;
    this.#record = next.record;
    this.#ask();
  }

  /**
   * The agent may stand still, or its target be slow. The answer of another one
   * counts if it connects: that it cannot may be its own problem.
   */
  #askAnother(): void {
    const { target } = this.#request;
    if (!this.#mayAskTwo) return;
    const asked = new Set([...this.#tried].map(({ peer }) => peer.agentId));
    const choice = this.#another(({ peer, isDraining }) =>
      !asked.has(peer.agentId) && !isDraining
    );
    if (choice === undefined) return;
    const rival: Rival = this.#rival = { ...choice };
    this.#tried.add(rival.link);
    const pending = rival.link.dial(target, {
      onConnected: (conduit) => this.#rivalConnected(rival, conduit),
      onFailed: (error) => {
        // It may be the one that is asked by now.
        if (this.#rival !== rival) return this.#onFailed(error);
        this.#rival = undefined;
        rival.record?.failed(error);
      },
    });
    rival.pending = pending;
    if (this.#link === rival.link) this.#pending = pending;
  }

  /** Nothing was sent, and a connection alone sends nothing either. */
  get #mayAskTwo(): boolean {
    return this.#earlyBytes === 0 && this.#request.target.protocol === "tcp";
  }

  #rivalConnected(rival: Rival, conduit: Conduit): void {
    if (this.#rival === rival) {
      this.#pending?.cancel();
      this.#record?.failed(
        new DialError("cancelled", "another agent was quicker"),
      );
      this.#follow(rival);
    }
    this.#onConnected(conduit);
  }

  /** From now on it is the one that is asked. */
  #follow({ link, record, pending }: Rival): void {
    this.#rival = undefined;
    this.#link = link;
    this.#record = record;
    this.#pending = pending;
  }

  /** What the caller sent may have been received, and is not sent twice. */
  #canGoAgain({ loss }: DialError): boolean {
    if (loss === undefined || this.#tried.size > RETRIES_MAX) return false;
    if (this.#earlyBytes === 0) return true;
    const isHeldWhole = this.#earlyBytes === this.#earlyData?.length;
    return loss === "unprocessed" && isHeldWhole;
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#finish();
    this.#pending?.cancel();
    this.#count(new DialError("cancelled", "the caller gave up"), "cancelled");
  }

  sendEarly(bytes: Uint8Array): number {
    // With two that are asked it waits for the one that answers.
    if (this.#isOver || this.#rival !== undefined) return 0;
    const sent = this.#pending?.sendEarly?.(bytes) ?? 0;
    this.#earlyBytes += sent;
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
    if (this.#earlyBytes > 0) observed.sent(this.#earlyBytes);
    this.#answer.connected(new ObservedConduit(conduit, observed));
  }

  #facts(): ConnectionFacts {
    return dialFacts(this.#request, this.#link);
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
      `Cannot dial ${this.#request.target.address}: the link to ` +
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
          `did not answer for ${this.#request.target.address} ` +
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
    this.#patience?.cancel();
    this.#rival?.pending?.cancel();
    this.#rival?.record?.failed(
      new DialError("cancelled", "the dial was over before"),
    );
    this.#rival = undefined;
    this.#deadline?.cancel();
    this.#options.observer.dialEnded();
  }
}

/** For the log. */
export function dialFacts(
  { caller, node, target }: CallerDial,
  link: AgentLink | undefined,
): ConnectionFacts {
  const known = { who: callerName(caller), from: caller.remoteAddress, target };
  const agent = link?.peer.agentId ?? node;
  return agent === undefined ? known : { ...known, node: agent };
}

/** How `error`, which came from the agent's link, is counted. */
function causeOf({ reason }: DialError): DialFailureCause {
  return reason === "link-lost" || reason === "dial-closed"
    ? reason
    : "answered";
}
