/**
 * A dial under way: takes one way, another one when that is lost or when it does
 * not answer soon, waits no longer than the deadline, and counts what came of it.
 *
 * What a caller has sent never reaches two targets: a dial that carries such
 * bytes goes to another agent only if the first certainly did not receive them.
 * Connecting twice does no harm; who comes second is hung up on.
 *
 * So where another agent could be asked, such bytes go with the dial only if the
 * first has just shown that it lives: it answered a PING within its last round
 * trip. Otherwise a PING goes with the dial, the bytes stay with the caller, and
 * they follow with the PING's answer; an agent near by gets them with its answer to
 * the dial. One that stands still, or is cut off, has heard nothing then. One that
 * does so later costs the dials of that round trip: they fail soon.
 *
 * A caller that knows other servers (`DialWishes.hasOthers`) has the same choice:
 * where a way stands still and nothing was sent over it, the dial is refused, and
 * the caller asks the next server.
 *
 * It refuses to know who may be asked: `another` does.
 *
 * @module
 */

import type { DialRecord } from "../../policy/dial_record.ts";
import { INTERNAL_ERROR } from "../../platform/errors/internal_errors.ts";
import type { LiveDial } from "../../platform/conduits/live_conduits.ts";
import type { ConnectionFacts } from "../../platform/log/connection_log.ts";
import { abandon, type DialAnswer } from "../../proto/link/dial_handler.ts";
import type { ConnectionId } from "../../proto/peer/connection_id.ts";
import { watchFrozen } from "../../net/dial/frozen_watch.ts";
import { DialError, lacksDescriptors } from "../../proto/peer/dial_error.ts";
import { EARLY_BYTES_MAX, type PendingDial } from "../../proto/link/link.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import type {
  DialerOptions,
  DialFailureCause,
  DialPath,
  IdentifiedDial,
} from "./dialer.ts";
import { isTracing } from "../../platform/tracing/tracing.ts";
import { sampledTraceId } from "../../proto/peer/trace_context.ts";
import { askWay, type DialWay } from "./dial_way.ts";
import { STILL_MS } from "./registry.ts";
import { callerName } from "../policy/caller.ts";

/**
 * An agent that has not answered for so long may stand still: another one is
 * asked as well. Most targets answer within a round trip, or refuse.
 */
export const SECOND_OPINION_MS = 1_000;

/** The way that a dial takes. */
export interface Choice {
  readonly way: DialWay;
  readonly record: DialRecord | undefined;
}

/**
 * `instead`: the one before was lost. `beside`: it is silent, and another agent
 * is wanted.
 */
export type AnotherPlace = "instead" | "beside";

/** Another way, of those that were not tried; mostly there is none. */
type Another = (
  tried: readonly DialWay[],
  place: AnotherPlace,
) => Choice | undefined;

/** Another agent that is asked beside the first. */
interface Rival extends Choice {
  pending?: PendingDial;
}

/**
 * How many ways are tried in place of one that was lost before it answered: the
 * links of one agent go one after the other, and so do servers that know of no
 * such agent.
 */
const RETRIES_MAX = 4;

/** One dial, from the first question to an agent to its answer. */
export class OngoingDial implements PendingDial, LiveDial {
  #way: DialWay;
  #record: DialRecord | undefined;
  readonly #request: IdentifiedDial;
  readonly #answer: DialAnswer;
  readonly #options: DialerOptions;
  readonly #another: Another;
  readonly #hasChoice: () => boolean;
  readonly #startedMs: number;
  readonly #tried: DialWay[] = [];
  #rival: Rival | undefined;
  #patience: Timer | undefined;
  /** What went with the dial, until an agent has answered. */
  #earlyData: Uint8Array | undefined;
  /** What the caller has sent stays with it, until the agent is known to live. */
  #isHeld = false;
  #pending: PendingDial | undefined;
  #deadline: Timer | undefined;
  #isOver = false;
  /** What went with the dial and behind it: it passes no conduit here. */
  #earlyBytes = 0;

  constructor(
    { way, record }: Choice,
    request: IdentifiedDial,
    answer: DialAnswer,
    options: DialerOptions,
    another: Another,
    hasChoice: () => boolean,
  ) {
    this.#way = way;
    this.#record = record;
    this.#request = request;
    this.#answer = answer;
    this.#options = options;
    this.#another = another;
    this.#hasChoice = hasChoice;
    this.#startedMs = record?.startMs ?? options.timers.now();
  }

  /** The connection's. */
  get id(): ConnectionId {
    return this.#request.id;
  }

  /** See `LiveDial`. */
  place?: number;

  /** When it was asked for, by the clock. */
  get askedMs(): number {
    return this.#startedMs;
  }

  /** Who asks for what, and who is asked. */
  get facts(): ConnectionFacts {
    return dialFacts(this.#request, this.#way);
  }

  /** Somebody who may ends it. */
  kill(reason: string): void {
    this.#pending?.cancel();
    const error = new DialError("refused", reason, undefined, "TUN509");
    this.#fail(error, "refused");
  }

  start(): void {
    const { timers, dialTimeoutMs, observer, reports } = this.#options;
    observer.dialStarted();
    reports.began(this);
    if (dialTimeoutMs > 0) {
      this.#deadline = timers.after(dialTimeoutMs, () => this.#onDeadline());
    }
    this.#patience = timers.after(SECOND_OPINION_MS, () => this.#doubt());
    try {
      if (this.#isLeftToOthers()) return;
      this.#isHeld = this.#isInDoubt;
      if (!this.#isHeld) this.#takeEarlyData();
      this.#ask();
    } catch (error) {
      // A slip: what is listed, counted and timed ends here.
      if (!this.#isOver) this.#finish();
      throw error;
    }
  }

  /** Another agent may be the one that is to hear what the caller sends. */
  get #isInDoubt(): boolean {
    return !this.#way.isProven && this.#hasChoice();
  }

  #takeEarlyData(): Uint8Array {
    const earlyData = this.#request.takeEarlyData();
    this.#earlyBytes = earlyData.length;
    if (earlyData.length > 0) this.#earlyData = earlyData;
    return earlyData;
  }

  #ask(): void {
    const way = this.#way;
    const earlyData = this.#earlyData;
    const { id, trace } = this.#request;
    this.#tried.push(way);
    const pending = askWay(way, {
      onConnected: (conduit) => this.#onConnected(conduit),
      onFailed: (error) => this.#onFailed(error),
    }, earlyData === undefined ? { id, trace } : { id, trace, earlyData });
    // It may have failed at once, and another one be asked by now.
    if (way === this.#way) this.#pending = pending;
    if (this.#hasChoice()) way.whenAlive(() => this.#release(way));
  }

  /** What the caller has sent may follow its dial, if that is the only one. */
  #release(way: DialWay): void {
    if (!this.#isHeld || this.#isOver || this.#earlyBytes > 0) return;
    if (way !== this.#way || this.#rival !== undefined) return;
    this.#isHeld = false;
    this.#pending?.sendEarly?.(this.#takeEarlyData());
  }

  /** The agent, its link or its target may stand still. */
  #doubt(): void {
    this.#way.checkLiveness();
    if (this.#earlyBytes > 0) return this.#watch();
    this.#askAnother();
    if (this.#isOver || this.#isLeftToOthers()) return;
    // By then it is known whether the links themselves stand still.
    this.#patience = this.#options.timers.after(STILL_MS, () => {
      if (this.#earlyBytes > 0) return this.#watch();
      if (this.#rival === undefined) this.#askAnother();
      if (!this.#isOver) this.#isLeftToOthers();
    });
  }

  /**
   * Refuses it where all that is asked stands still, nothing was sent, and the
   * caller may ask another server.
   *
   * @returns Whether that was so.
   */
  #isLeftToOthers(): boolean {
    if (this.#request.hasOthers !== true || this.#earlyBytes > 0) return false;
    const latestMs = this.#options.timers.now() - STILL_MS;
    const isStill = ({ askedMs = Infinity }: DialWay) => askedMs <= latestMs;
    const rival = this.#rival?.way ?? this.#way;
    if (!isStill(this.#way) || !isStill(rival)) return false;
    const { name } = this.#way;
    this.#pending?.cancel();
    const problem = `No agent available: ${name} gives no sign of life, and ` +
      "nothing was sent to it";
    this.#fail(new DialError("no-agent", problem), "no-agent");
    return true;
  }

  /** What the caller sent may have been heard, so that nobody else may hear it. */
  #watch(): void {
    this.#patience = watchFrozen(this.#options.timers, {
      // Where another agent could serve the next one.
      isSilent: () => this.#way.askedMs !== undefined && this.#hasChoice(),
      heard: () => this.#doubt(),
      frozen: () => {
        this.#pending?.cancel();
        const silence = new DialError(
          "link-lost",
          "it gives no sign of life; what was said first may have reached the " +
            "target, so no other one is asked",
        );
        this.#fail(this.#way.named(silence), "link-lost");
      },
    });
  }

  /** What means nothing for the target, such as a lost link: another is asked. */
  #onFailed(error: DialError): void {
    if (this.#isOver) return;
    const saysNothing = error.loss !== undefined || lacksDescriptors(error);
    if (saysNothing && this.#rival !== undefined) {
      this.#record?.failed(this.#way.named(error));
      return this.#follow(this.#rival);
    }
    const next = this.#next(error);
    if (next === undefined) {
      return this.#fail(this.#way.named(error), causeOf(error));
    }
    this.#record?.failed(this.#way.named(error));
    this.#way = next.way;
    this.#record = next.record;
    this.#ask();
  }

  /** Whom to ask in place of the one that failed. */
  #next(error: DialError): Choice | undefined {
    if (this.#tried.length > RETRIES_MAX) return undefined;
    // Its other links lead to the same machine.
    if (lacksDescriptors(error) && this.#isUnsent) {
      return this.#another(this.#tried, "beside");
    }
    if (!this.#canGoAgain(error)) return undefined;
    return this.#another(this.#tried, "instead");
  }

  /**
   * The agent may stand still, or its target be slow. The answer of another one
   * counts if it connects: that it cannot may be its own problem.
   */
  #askAnother(): void {
    if (!this.#mayAskTwo || this.#tried.length > RETRIES_MAX) return;
    const choice = this.#another(this.#tried, "beside");
    if (choice === undefined) return;
    const rival: Rival = this.#rival = { ...choice };
    this.#tried.push(rival.way);
    const { id, trace } = this.#request;
    const pending = askWay(rival.way, {
      onConnected: (conduit) => this.#rivalConnected(rival, conduit),
      onFailed: (error) => this.#rivalFailed(rival, error),
    }, { id, trace });
    rival.pending = pending;
    rival.way.checkLiveness();
    if (this.#way === rival.way) this.#pending = pending;
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

  #rivalFailed(rival: Rival, error: DialError): void {
    // It may be the one that is asked by now.
    if (this.#rival !== rival) return this.#onFailed(error);
    this.#rival = undefined;
    rival.record?.failed(error);
    // It said nothing about the target: the next one may.
    if (error.loss !== undefined) this.#askAnother();
  }

  /** From now on it is the one that is asked. */
  #follow({ way, record, pending }: Rival): void {
    this.#rival = undefined;
    this.#way = way;
    this.#record = record;
    this.#pending = pending;
  }

  /** What the caller sent may have been received, and is not sent twice. */
  #canGoAgain({ loss }: DialError): boolean {
    if (loss === undefined) return false;
    return this.#earlyBytes === 0 || loss === "unprocessed" && this.#isUnsent;
  }

  /** All that the caller has sent is here, if the one asked passed none on. */
  get #isUnsent(): boolean {
    return this.#earlyBytes === (this.#earlyData?.length ?? 0);
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#finish();
    this.#pending?.cancel();
    this.#count(new DialError("cancelled", "the caller gave up"), "cancelled");
  }

  sendEarly(bytes: Uint8Array): number {
    // With two that are asked it waits for the one that answers.
    if (this.#isOver || this.#isHeld || this.#rival !== undefined) return 0;
    if (this.#isInDoubt) {
      this.#isHeld = true;
      const way = this.#way;
      way.whenAlive(() => this.#release(way));
      return 0;
    }
    const isKept = this.#way.forwardedTo !== undefined;
    if (isKept && !this.#canKeep(bytes)) return 0;
    const sent = this.#pending?.sendEarly?.(bytes) ?? 0;
    this.#earlyBytes += sent;
    if (isKept && sent > 0) this.#keep(bytes.subarray(0, sent));
    return sent;
  }

  /**
   * What another server has may be out of date, and its refusal costs a caller
   * nothing: what is sent early there is kept for the next one.
   */
  #canKeep({ length }: Uint8Array): boolean {
    return this.#request.target.protocol === "tcp" &&
      this.#earlyBytes + length <= EARLY_BYTES_MAX;
  }

  #keep(bytes: Uint8Array): void {
    const kept = this.#earlyData ?? new Uint8Array(0);
    const joined = new Uint8Array(kept.length + bytes.length);
    joined.set(kept);
    joined.set(bytes, kept.length);
    this.#earlyData = joined;
  }

  #onConnected(conduit: Conduit): void {
    if (this.#isOver) return abandon(conduit, "the caller gave up");
    this.#finish();
    const { timers, observer, reports } = this.#options;
    const openedMs = timers.now();
    const counter = observer.connected(
      openedMs - this.#startedMs,
      this.#path,
      this.#way.agentId,
      isTracing ? sampledTraceId(this.#request.trace) : undefined,
    );
    const live = reports.connected(conduit, this, {
      counter,
      audit: this.#record,
      openedMs,
      carrier: this.#way.leadsTo,
    });
    if (this.#earlyBytes > 0) live.sentEarly(this.#earlyBytes);
    try {
      this.#answer.connected(live);
    } catch (error) {
      // Whoever made it resets it, which nobody would hear of.
      if (!live.isAttached) abandon(live, INTERNAL_ERROR);
      throw error;
    }
  }

  get #path(): DialPath {
    return pathOf(this.#request, this.#way);
  }

  #onDeadline(): void {
    this.#pending?.cancel();
    this.#fail(
      new DialError(
        "timeout",
        `timed out waiting for backend dial: ${this.#way.name} ` +
          `did not answer for ${this.#request.target.address} ` +
          `within ${this.#options.dialTimeoutMs} ms`,
        undefined,
        "TUN507",
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
    const { observer, reports } = this.#options;
    observer.dialFailed(cause, this.#path, this.#way.agentId);
    reports.failed(error, this, this.#record);
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
    this.#options.reports.over(this);
    this.#options.observer.dialEnded();
  }
}

/** For the log. @param way Absent: there was none. */
export function dialFacts(
  { id, caller, node, target }: IdentifiedDial,
  way: DialWay | undefined,
): ConnectionFacts {
  const agent = way?.agentId ?? node;
  return {
    id,
    who: callerName(caller),
    from: caller.remoteAddress,
    target,
    ...(agent === undefined ? {} : { node: agent }),
    ...(way?.forwardedTo === undefined ? {} : { forwardedTo: way.forwardedTo }),
  };
}

/** How a dial passes servers. @param way Absent: there was none. */
export function pathOf(
  { caller }: Pick<IdentifiedDial, "caller">,
  way: DialWay | undefined,
): DialPath {
  if (caller.forwardedBy !== undefined) return "from_peer";
  return way?.forwardedTo === undefined ? "direct" : "to_peer";
}

/** How `error`, which is a way's, is counted. */
function causeOf({ reason }: DialError): DialFailureCause {
  return reason === "link-lost" || reason === "dial-closed" ||
      reason === "no-agent"
    ? reason
    : "answered";
}
