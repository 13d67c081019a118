/**
 * A dial under way: it takes one way, and another when the first is lost or
 * does not answer soon. It waits no longer than the deadline, and reports its
 * outcome.
 *
 * What a caller has sent goes to one agent only (`platform/time/race.ts`).
 * Where another agent could be asked, it goes with the dial only if the first
 * has just shown that it lives: it answered a PING within its last round trip.
 * Otherwise a PING goes with the dial, behind as much as fills a packet, the
 * bytes stay with the caller, and they follow with the PING's answer; an agent
 * near by gets them with its answer to the dial. One that stands still, is cut
 * off, or is behind a path that swallows long packets has heard nothing then.
 * One that does so later costs the dials of that round trip: they fail soon.
 *
 * A caller that knows other servers (`DialWishes.hasOthers`) has the same
 * choice: where a way stands still and nothing was sent over it, the dial is
 * refused, and the caller asks the next server.
 *
 * It refuses to know who may be asked: `another` does.
 *
 * @module
 */

import type { DialRecord } from "../../policy/dial_record.ts";
import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { INTERNAL_ERROR } from "../../platform/errors/internal_errors.ts";
import type {
  BegunDial,
  DialFailureCause,
  DialPath,
} from "../../platform/conduits/dial_reports.ts";
import type { ConnectionFacts } from "../../platform/log/connection_log.ts";
import { abandon, type DialAnswer } from "../../proto/link/dial_handler.ts";
import type { ConnectionId } from "../../proto/peer/connection_id.ts";
import {
  type Attempt,
  type NextDoubt,
  Race,
} from "../../platform/time/race.ts";
import { DialError, lacksDescriptors } from "../../proto/peer/dial_error.ts";
import { EARLY_BYTES_MAX, type PendingDial } from "../../proto/link/link.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import type { DialerOptions, IdentifiedDial } from "./dialer.ts";
import type { Span } from "../../platform/tracing/tracing.ts";
import { type DialWay, waySpan } from "./dial_way.ts";
import { isStill, STILL_MS } from "./registry.ts";
import { callerName } from "../policy/caller.ts";
import { countedAs } from "./caller_loads.ts";

/**
 * An agent that has not answered after this time may have stopped: another one
 * is asked as well. Most targets answer within a round trip, or refuse.
 */
export const SECOND_OPINION_MS = 1_000;

/** The way that a dial takes. */
export interface Choice {
  readonly way: DialWay;
  readonly record: DialRecord | undefined;
  /** Once it is asked. */
  pending?: PendingDial;
  /** Until it has answered. */
  span?: Span | undefined;
}

/**
 * `instead`: the one before was lost. `beside`: it is silent, and another agent
 * is wanted.
 */
export type AnotherPlace = "instead" | "beside";

/** Finds a way that was not tried yet; usually there is none. */
type Another = (
  tried: readonly DialWay[],
  place: AnotherPlace,
) => Choice | undefined;

/**
 * How many ways replace lost ones before an answer: the links of one agent are
 * tried in turn, and so are servers that do not know such an agent.
 */
const RETRIES_MAX = 4;

type WayAttempt = Attempt<Choice, Conduit>;

/** One dial, from the first question to an agent to its answer. */
export class OngoingDial extends Race<Choice, Conduit>
  implements PendingDial, BegunDial {
  readonly #tried: DialWay[] = [];
  /** When it was asked for, by the clock. */
  readonly askedMs: number;
  /** See `LiveDial`. */
  place?: number;
  /** What went with the dial, until an agent has answered. */
  #earlyData: Uint8Array | undefined;
  /** What the caller has sent stays with it, until the agent is known to live. */
  #isHeld = false;
  #deadline: Timer | undefined;
  /**
   * The bytes that went with the dial and after it: they pass no conduit here.
   */
  #earlyBytes = 0;

  /** @param choice The way whose answer counts; others are asked beside it. */
  constructor(
    private choice: Choice,
    private readonly request: IdentifiedDial,
    private readonly answer: DialAnswer,
    private readonly options: DialerOptions,
    private readonly another: Another,
    private readonly hasChoice: () => boolean,
  ) {
    super(options.timers, SECOND_OPINION_MS);
    this.askedMs = choice.record?.startMs ?? options.timers.now();
  }

  /** The connection's. */
  get id(): ConnectionId {
    return this.request.id;
  }

  /** The request, and the agent that is asked. */
  get facts(): ConnectionFacts {
    return dialFacts(this.request, this.#way);
  }

  get countedAs(): string | undefined {
    return countedAs(this.request.caller);
  }

  /** See `ReportedDial`. */
  get path(): DialPath {
    return pathOf(this.request, this.#way);
  }

  get agentId(): string | undefined {
    return this.#way.agentId;
  }

  get span(): Span | undefined {
    return this.request.span;
  }

  get record(): DialRecord | undefined {
    return this.choice.record;
  }

  get earlyBytes(): number {
    return this.#earlyBytes;
  }

  get #way(): DialWay {
    return this.choice.way;
  }

  /** Ended by its user or an operator. */
  kill(reason: string): void {
    const error = new DialError("refused", reason, { code: "TUN509" });
    this.#fail(error, "refused");
  }

  start(): void {
    const { timers, dialTimeoutMs, reports } = this.options;
    reports.began(this);
    if (dialTimeoutMs > 0) {
      this.#deadline = timers.after(dialTimeoutMs, () => this.#onDeadline());
    }
    try {
      if (this.#isLeftToOthers()) return;
      this.#isHeld = this.#isInDoubt;
      if (!this.#isHeld) this.#takeEarlyData();
      this.enter(this.choice);
    } catch (error) {
      // An internal error: its entry in the list, its count and its timer end
      // here.
      if (!this.isOver) this.finish();
      throw error;
    }
  }

  /** Another agent may be the one that will receive the caller's bytes. */
  get #isInDoubt(): boolean {
    return !this.#way.leadsTo.isProven && this.hasChoice();
  }

  #takeEarlyData(): Uint8Array {
    const earlyData = this.request.takeEarlyData();
    this.#earlyBytes = earlyData.length;
    if (earlyData.length > 0) this.#earlyData = earlyData;
    return earlyData;
  }

  protected ask(attempt: WayAttempt): void {
    const { asked } = attempt;
    const { way } = asked;
    const earlyData = this.#earlyData;
    const { id } = this.request;
    asked.span = waySpan(way, this.request.trace);
    const trace = asked.span?.context ?? this.request.trace;
    this.#tried.push(way);
    if (earlyData !== undefined) this.sayTo(attempt);
    asked.pending = attempt.pending = way.dial(
      attempt,
      { id, trace, earlyData },
    );
    if (asked !== this.choice || this.hasChoice()) {
      way.leadsTo.whenAlive(() => this.#release(attempt));
    }
  }

  /** What the caller has sent may follow its dial, if that is the only one. */
  #release(attempt: WayAttempt): void {
    if (!this.#isHeld || this.hearer !== undefined) return;
    if (this.running.length > 1 || !this.isRunning(attempt)) return;
    this.#isHeld = false;
    const earlyData = this.#takeEarlyData();
    if (earlyData.length > 0) this.sayTo(attempt);
    this.choice.pending?.sendEarly?.(earlyData);
  }

  /** The agent, its link or its target may have stopped. */
  protected override doubt(attempt: WayAttempt, times: number): NextDoubt {
    if (attempt.asked !== this.choice) return this.#doubtRival(attempt);
    if (times === 0) this.suspect(attempt);
    if (this.hearer !== undefined) return "watch";
    if (times === 0 || this.running.length === 1) this.#askAnother();
    // At the second look it is known whether the links themselves are silent.
    return this.isOver || this.#isLeftToOthers() || times > 0
      ? "enough"
      : STILL_MS;
  }

  /**
   * The last that was asked beside the first may be as silent: the second link
   * of one agent, or a server whose links are cut as well.
   */
  #doubtRival(attempt: WayAttempt): NextDoubt {
    const { way } = attempt.asked;
    this.suspect(attempt);
    const isSilent = this.#isStill(way) || way.forwardedTo !== undefined;
    if (isSilent && this.running.at(-1) === attempt) this.#askAnother();
    return STILL_MS;
  }

  protected override suspect({ asked }: WayAttempt): void {
    const { leadsTo } = asked.way;
    if (leadsTo.askedMs === undefined) leadsTo.checkLiveness();
  }

  /**
   * Refuses the dial if no asked agent answers, nothing was sent, and the
   * caller may ask another server.
   *
   * @returns Whether it did.
   */
  #isLeftToOthers(): boolean {
    if (this.request.hasOthers !== true || this.hearer !== undefined) {
      return false;
    }
    if (!this.#isStill(this.#way)) return false;
    if (!this.running.every(({ asked }) => this.#isStill(asked.way))) {
      return false;
    }
    const problem = `No agent available: ${this.#way.name} gives no sign of ` +
      "life, and nothing was sent to it";
    this.#fail(new DialError("no-agent", problem), "no-agent");
    return true;
  }

  #isStill({ leadsTo }: DialWay): boolean {
    return isStill(leadsTo, this.timers.now());
  }

  /** Only if another agent could serve the dial. */
  protected override isSilent({ asked }: WayAttempt): boolean {
    return asked.way.leadsTo.askedMs !== undefined && this.hasChoice();
  }

  protected override frozen(): void {
    const silence = new DialError(
      "link-lost",
      "it gives no sign of life; the first bytes may have reached the " +
        "target, so no other one is asked",
    );
    this.#fail(this.#way.named(silence), "link-lost");
  }

  /** What means nothing for the target, such as a lost link: another is asked. */
  protected lost(
    { asked }: WayAttempt,
    error: DialError,
    hasHeard: boolean,
  ): void {
    asked.span?.end(error.message);
    if (asked !== this.choice) {
      asked.record?.failed(error);
      // It said nothing about the target: the next one may.
      if (error.loss !== undefined) this.#askAnother();
      return;
    }
    const saysNothing = error.loss !== undefined || lacksDescriptors(error);
    const rival = saysNothing ? this.running[0]?.asked : undefined;
    const next = rival ?? this.#next(error, hasHeard);
    if (next === undefined) {
      return this.#fail(this.#way.named(error), causeOf(error));
    }
    asked.record?.failed(this.#way.named(error));
    this.choice = next;
    if (rival === undefined) this.enter(next);
  }

  /** Whom to ask in place of the one that failed. */
  #next(error: DialError, hasHeard: boolean): Choice | undefined {
    if (this.#tried.length > RETRIES_MAX) return undefined;
    // Its other links lead to the same machine.
    if (lacksDescriptors(error) && this.#isUnsent) {
      return this.another(this.#tried, "beside");
    }
    // What the caller sent may have been received, and is not sent twice.
    const canGoAgain = error.loss !== undefined &&
      (!hasHeard || error.loss === "unprocessed" && this.#isUnsent);
    return canGoAgain ? this.another(this.#tried, "instead") : undefined;
  }

  /**
   * The agent may have stopped, or its target may be slow. Another agent's
   * answer counts if it connects; its failure may be its own problem. Nothing
   * was sent, and a connection alone sends nothing either.
   */
  #askAnother(): void {
    const isStream = this.request.target.protocol === "tcp";
    if (!isStream || this.hearer !== undefined) return;
    if (this.#tried.length > RETRIES_MAX) return;
    const choice = this.another(this.#tried, "beside");
    if (choice !== undefined) this.enter(choice, STILL_MS);
  }

  /** All that the caller has sent is here, if the one asked passed none on. */
  get #isUnsent(): boolean {
    return this.#earlyBytes === (this.#earlyData?.length ?? 0);
  }

  cancel(): void {
    if (this.isOver) return;
    this.finish();
    const error = new DialError("cancelled", GAVE_UP);
    this.options.reports.failed(error, this, "cancelled");
  }

  sendEarly(bytes: Uint8Array): number {
    const [attempt] = this.running;
    // Of two agents it waits for the one that answers.
    if (attempt === undefined || this.#isHeld) return 0;
    if (this.running.length > 1) return 0;
    if (this.#isInDoubt) {
      this.#isHeld = true;
      this.#way.leadsTo.whenAlive(() => this.#release(attempt));
      return 0;
    }
    const isKept = this.#way.forwardedTo !== undefined;
    if (isKept && !this.#canKeep(bytes)) return 0;
    const sent = this.choice.pending?.sendEarly?.(bytes) ?? 0;
    if (sent === 0) return 0;
    this.#earlyBytes += sent;
    this.sayTo(attempt);
    if (isKept) this.#keep(bytes.subarray(0, sent));
    return sent;
  }

  /**
   * Knowledge of another server's agents may be out of date, and its refusal
   * costs a caller nothing: early bytes are kept for the next way.
   */
  #canKeep({ length }: Uint8Array): boolean {
    return this.request.target.protocol === "tcp" &&
      this.#earlyBytes + length <= EARLY_BYTES_MAX;
  }

  #keep(bytes: Uint8Array): void {
    const kept = this.#earlyData === undefined ? [] : [this.#earlyData];
    this.#earlyData = joinedBytes([...kept, bytes]);
  }

  protected won({ asked }: WayAttempt, conduit: Conduit): void {
    asked.span?.end();
    this.choice = asked;
    const { timers, reports } = this.options;
    const live = reports.connected(conduit, this, timers.now(), {
      carrier: asked.way.leadsTo,
    });
    try {
      this.answer.connected(live);
    } catch (error) {
      // The loser is reset by its maker, and has no reader.
      if (!live.isAttached) abandon(live, INTERNAL_ERROR);
      throw error;
    }
  }

  protected discard(conduit: Conduit): void {
    abandon(conduit, GAVE_UP);
  }

  protected override givenUp({ asked }: WayAttempt, isWon: boolean): void {
    asked.span?.end("it is not wanted any more");
    // When all ways fail, the one that counts gives the reason.
    if (!isWon && asked === this.choice) return;
    const why = isWon
      ? "another agent was quicker"
      : "the dial was over before";
    asked.record?.failed(new DialError("cancelled", why));
  }

  #onDeadline(): void {
    this.#fail(
      new DialError(
        "timeout",
        `timed out waiting for backend dial: ${this.#way.name} ` +
          `did not answer for ${this.request.target.address} ` +
          `within ${this.options.dialTimeoutMs} ms`,
        { code: "TUN507" },
      ),
      "deadline",
    );
  }

  #fail(error: DialError, cause: DialFailureCause): void {
    if (this.isOver) return;
    this.finish();
    this.options.reports.failed(error, this, cause);
    this.answer.failed(error);
  }

  protected override finish(winner?: WayAttempt): void {
    super.finish(winner);
    this.#earlyData = undefined;
    this.#deadline?.cancel();
    this.options.reports.over(this);
  }
}

const GAVE_UP = "the caller gave up";

/** For the log. @param way Absent: there was no way. */
export function dialFacts(
  { id, caller, node, target }: IdentifiedDial,
  way: DialWay | undefined,
): ConnectionFacts {
  const agent = way?.agentId ?? node;
  const counted = countedAs(caller);
  return {
    id,
    who: callerName(caller),
    from: caller.remoteAddress,
    target,
    node: agent,
    forwardedTo: way?.forwardedTo,
    countedAs: counted,
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
