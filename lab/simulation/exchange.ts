/**
 * One dial and what comes of it: the caller, the target, the answer, what was
 * done to them; and whether all of that fits together (promises 1 and 3).
 *
 * @module
 */

import type { DialError } from "../../proto/peer/dial_error.ts";
import type { Conduit, ConduitEnd } from "../../proto/transfer/conduit.ts";
import { Pattern } from "./pattern.ts";
import type { DialPlan, TalkPlan } from "./plan.ts";
import type { Simulator } from "./simulator.ts";
import { Talker } from "./talker.ts";

/** A stall that may cost a conduit of the packets carrier its life. */
const LONG_STALL_MS = 5_000;

/** A link as far as it may be an excuse. */
export interface Excuse {
  readonly number: number;
  readonly isPackets: boolean;
  /** What was done to it, if anything that may lose conduits. */
  readonly trouble: string | undefined;
}

/** What may have ended it otherwise than planned, besides its own ends. */
export interface Circumstances {
  /** Memory was made short. */
  readonly mayReset: boolean;
  /** Somebody does not read for so long that a dial may miss its deadline. */
  readonly mayHoldDials: boolean;
}

/** See the module description. */
export class Exchange {
  readonly #isGrantedEarly: boolean;
  caller: Talker | undefined;
  /**
   * By the link over which it was dialed. Several may be: what means nothing to a
   * target is asked again, of another agent, as long as nothing was said.
   */
  readonly #targets = new Map<Excuse, Talker>();
  /** Over which it was asked for, in this order. */
  readonly #asked: Excuse[] = [];
  /** The one that has connected the caller. */
  #chosen: Excuse | undefined;
  startedMs = -1;
  answeredMs = -1;
  failure: DialError | undefined;
  /** Why the server's dial failed that CONNECT's 200 was ahead of. */
  failureBehindGrant: DialError | undefined;
  wasAborted = false;
  /** No agent was linked when one was chosen. */
  hadNoAgent = false;
  /** What was done to the sockets of either end. */
  callerCut: "reset" | "lost" | undefined;
  targetCut: "reset" | "lost" | undefined;
  /** Held up, so that deadlines may have passed. */
  wasHeld = false;

  /** @param grantsEarly CONNECT's 200 comes before the dial is answered. */
  constructor(
    private readonly sim: Simulator,
    readonly plan: DialPlan,
    grantsEarly: boolean,
  ) {
    this.#isGrantedEarly = grantsEarly && plan.way === "connect";
  }

  get name(): string {
    return `conduit ${this.plan.number}`;
  }

  /** The longest time for which one of its ends does not read. */
  get longestStallMs(): number {
    const { caller, target } = this.plan;
    return Math.max(
      ...[caller, target].map(({ stallAt, stallMs }) =>
        stallAt < 0 ? 0 : stallMs
      ),
    );
  }

  /** The address that is dialed; it says which exchange this is. */
  get address(): string {
    return `c${this.plan.number}.test:80`;
  }

  /** The bytes that leave with the question. */
  get earlyData(): Uint8Array {
    return this.#pattern(0).piece(0, this.plan.earlyBytes);
  }

  /** The link that was chosen; until then the one that was asked last. */
  get link(): Excuse | undefined {
    return this.#chosen ?? this.#asked.at(-1);
  }

  /** Who is, or may be, at the other end of the caller. */
  get target(): Talker | undefined {
    return this.#chosen === undefined
      ? [...this.#targets.values()].at(-1)
      : this.#targets.get(this.#chosen);
  }

  /** Answered, or given up; and all ends are closed. */
  get isOver(): boolean {
    if (this.startedMs < 0) return false;
    if (this.answeredMs < 0 && !this.wasAborted) return false;
    return isClosed(this.caller) && [...this.#targets.values()].every(isClosed);
  }

  /** For people who look why it is not over. */
  get state(): string {
    const answer = this.answeredMs < 0 ? "unanswered" : "answered";
    return `${this.name} (${answer}; caller ${stateOf(this.caller)}, ` +
      `target ${stateOf(this.target)})`;
  }

  /** The server asks over `link`. */
  askedOver(link: Excuse): void {
    this.#asked.push(link);
  }

  /** The dial over `link` is the caller's. */
  chosen(link: Excuse): void {
    if (this.#chosen !== undefined) this.#fail("is connected to two");
    this.#chosen = link;
    for (const [one, target] of this.#targets) {
      if (one !== link) this.#isSpare(target);
    }
    if (this.target !== undefined) this.caller?.faces(this.target);
  }

  /** The target has somebody on the phone. @param link It was dialed by its agent. */
  answerAt(conduit: Conduit, link: Excuse): void {
    if (this.#targets.has(link)) this.#fail("dialed twice");
    const target = this.#talker("target", this.plan.target, 1, 0);
    this.#targets.set(link, target);
    // What leaves early is heard before the caller has an answer.
    const early = { sent: this.plan.earlyBytes, hasEnded: false };
    if (this.target === target) target.faces(this.caller ?? early);
    else this.#isSpare(target);
    target.start(conduit);
  }

  /** It was too late, and is hung up on: nothing may be said to it (promise 1). */
  #isSpare(target: Talker): void {
    if (target.received > 0) this.#fail("was said to two");
    target.faces({ sent: 0, hasEnded: false });
  }

  /** @param earlyBytes What has left ahead of the answer, or is sent for the caller. */
  connected(conduit: Conduit, earlyBytes = this.plan.earlyBytes): void {
    this.#answered("connected");
    const { caller } = this.plan;
    this.caller = this.#talker("caller", caller, 0, earlyBytes);
    if (this.target !== undefined) this.caller.faces(this.target);
    else if (!this.#isGrantedEarly) {
      this.sim.fail(`${this.name} is connected to nobody`);
    }
    this.caller.start(conduit);
  }

  failed(error: DialError): void {
    this.#answered(`failed ${error.reason}`);
    this.failure = error;
  }

  /** The server's dial has failed; the caller may have been granted it. */
  dialFailed(error: DialError): void {
    if (this.#isGrantedEarly) this.failureBehindGrant = error;
  }

  aborted(): void {
    this.sim.note(`${this.name} is given up`);
    this.wasAborted = true;
  }

  #answered(how: string): void {
    this.sim.note(`${this.name} ${how}`);
    if (this.answeredMs >= 0) this.sim.fail(`${this.name} has two answers`);
    if (this.wasAborted) {
      this.sim.fail(`${this.name} answered although given up`);
    }
    this.answeredMs = this.sim.now();
  }

  #talker(
    who: string,
    plan: TalkPlan,
    direction: 0 | 1,
    sentBytes: number,
  ): Talker {
    return new Talker({
      sim: this.sim,
      name: `${who} ${this.plan.number}`,
      plan,
      outgoing: this.#pattern(direction),
      incoming: this.#pattern(1 - direction),
      sentBytes,
    });
  }

  #pattern(direction: number): Pattern {
    return new Pattern(2 * this.plan.number + direction);
  }

  // --- The check -------------------------------------------------------------

  /** Says what does not fit; to be called once it is over. */
  check(circumstances: Circumstances): void {
    const failure = this.failure ?? this.failureBehindGrant;
    if (failure !== undefined) this.#checkFailure(failure, circumstances);
    this.#checkEnd("caller", circumstances);
    this.#checkEnd("target", circumstances);
    this.#checkTargets();
    if (this.#isUndisturbed(circumstances)) this.#checkUndisturbed();
  }

  #checkFailure(
    error: DialError,
    { mayReset, mayHoldDials }: Circumstances,
  ): void {
    const { answer } = this.plan;
    const { reason } = error;
    // One that was asked beside a link in trouble may be too late as well.
    const isExcused = this.#asked.some(({ trouble }) => trouble) ||
      this.wasHeld ||
      this.callerCut !== undefined ||
      // What is said early waits in a stream of the dial's own, but not in the
      // packets carrier; and a reset may catch up with CONNECT's 200, or come
      // before it, and then only its words tell what was reset.
      (mayReset &&
        (reason === "link-lost" || /ENHANCE_YOUR_CALM$/.test(error.message)) &&
        (this.plan.way !== "direct" || this.link?.isPackets !== true)) ||
      // It stood behind somebody else's bytes (SPEC.md, 4.4).
      (mayHoldDials && this.link?.isPackets === true) ||
      // A reset may catch up with the 200 that was to go before it.
      (this.plan.way === "connect" && this.#targetGaveUp) ||
      (this.#isGrantedEarly && reason === "link-lost") ||
      (this.hadNoAgent && /no agent/i.test(error.message));
    if (isExcused) return;
    const isFitting = answer === "refuse"
      ? reason === "endpoint" || reason === "timeout"
      : answer === "hang" && (reason === "timeout" || reason === "endpoint");
    // The agent may be slower than somebody's deadline.
    const isLate = reason === "timeout" && this.plan.answerMs > 0;
    if (!isFitting && !isLate) {
      this.#fail(
        `a dial to be answered with ${answer} failed: ${reason}, ` +
          error.message,
      );
    }
  }

  #checkEnd(who: "caller" | "target", { mayReset }: Circumstances): void {
    const [one, other] = who === "caller"
      ? [this.caller, this.target]
      : [this.target, this.caller];
    const end = one?.end;
    if (one === undefined || end === undefined || end.kind === "clean") return;
    const ownCut = who === "caller" ? this.callerCut : this.targetCut;
    const otherCut = who === "caller" ? this.targetCut : this.callerCut;
    const isSocket = who === "target" || this.plan.way === "connect";
    // A target that connects when the dial has failed is told so.
    const wasReset = one.hasReset || other?.hasReset || this.wasAborted ||
      this.failure !== undefined || this.#wasGrantedInVain ||
      this.callerCut === "reset" || this.targetCut === "reset" || mayReset ||
      this.#mayHaveStalled;
    // A call does not outlive its connection, whatever broke that.
    const wasLost = this.#mayBeLost || ownCut === "lost" ||
      otherCut === "lost" ||
      (this.plan.way === "grpc" && this.callerCut !== undefined);
    // A socket cannot tell its peer that the route behind it broke.
    const isFitting = end.kind === "lost"
      ? wasLost
      : wasReset || (wasLost && isSocket) ||
        // What is under way to a socket that broke is answered by its kernel.
        (wasLost && otherCut === "lost");
    if (!isFitting) {
      this.#fail(`${who} ended ${describe(end)}, without a cause`);
    }
  }

  /** Promise 1: whatever a caller says, one target only has heard it. */
  #checkTargets(): void {
    const heard = [...this.#targets.values()]
      .filter(({ received }) => received > 0);
    if (heard.length > 1) this.#fail("was said to two");
  }

  #isUndisturbed({ mayReset }: Circumstances): boolean {
    const { caller, target } = this;
    return caller !== undefined && target !== undefined && !mayReset &&
      !caller.hasReset && !target.hasReset && !this.#mayBeLost &&
      !this.#wasGrantedInVain &&
      this.callerCut === undefined && this.targetCut === undefined &&
      !this.#mayHaveStalled;
  }

  #checkUndisturbed(): void {
    for (
      const [who, one] of [["caller", this.caller!], [
        "target",
        this.target!,
      ]] as const
    ) {
      if (one.end?.kind !== "clean") {
        this.#fail(
          `${who} ended ${describe(one.end)} although nobody did anything`,
        );
      }
      if (one.sent !== one.plan.bytes) {
        this.#fail(`${who} sent ${one.sent} of ${one.plan.bytes}`);
      }
    }
  }

  /** A dial that fails behind the 200 can only be told by a reset. */
  get #wasGrantedInVain(): boolean {
    return this.failureBehindGrant !== undefined;
  }

  get #targetGaveUp(): boolean {
    return this.targetCut !== undefined || this.target?.hasReset === true;
  }

  get #mayBeLost(): boolean {
    return this.link?.trouble !== undefined;
  }

  /** One that does not read for long is reset in the packets carrier. */
  get #mayHaveStalled(): boolean {
    return this.link?.isPackets === true &&
      this.longestStallMs >= LONG_STALL_MS;
  }

  #fail(what: string): void {
    this.sim.fail(`${this.name}: ${what}`);
  }
}

function isClosed(talker: Talker | undefined): boolean {
  return talker === undefined || talker.end !== undefined;
}

function stateOf(talker: Talker | undefined): string {
  if (talker === undefined) return "absent";
  const { sent, plan, received, hasEnded, peerEnded, end } = talker;
  return `sent ${sent}/${plan.bytes} read ${received}` +
    `${hasEnded ? " ended" : ""}${peerEnded ? " peer ended" : ""}` +
    `${talker.isReading ? "" : " not reading"}${end ? " closed" : ""}`;
}

function describe(end: ConduitEnd | undefined): string {
  if (end === undefined) return "never";
  return end.kind === "clean" ? "clean" : `${end.kind} (${end.reason})`;
}
