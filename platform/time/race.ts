/**
 * Races candidates: asks one, and when it is doubted, another beside it. The
 * first answer counts. The others are given up, and their late results are
 * released.
 *
 * The caller's bytes reach only one candidate. Connecting twice does no harm,
 * so candidates first connect, and the bytes follow; once bytes have left for
 * one candidate ({@linkcode Race.sayTo}), it runs alone. Another one is asked
 * only if the first has certainly not passed the bytes on. If it stops
 * answering afterwards, the race is lost, because the bytes may have been
 * delivered.
 *
 * It knows neither the candidates nor the meaning of an answer.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** Looks in a row at which one that was told something gives no sign of life. */
export const FROZEN_LOOKS = 3;
export const FROZEN_LOOK_MS = 500;

/** A look that is so late does not count: this machine is busy. */
const LATE_MS = 100;

/**
 * When a silent candidate is doubted again; `watch`: never, but it is checked
 * whether it has stopped; `enough`: neither.
 */
export type NextDoubt = number | "watch" | "enough";

/** One that is asked, until it has answered. */
export class Attempt<Asked, Won> {
  /** The question; set by {@linkcode Race.ask}. */
  pending: { cancel(): void } | undefined;
  /** The next doubt; absent: it is over, or doubted no more. */
  patience: Timer | undefined;

  constructor(private readonly race: Race<Asked, Won>, readonly asked: Asked) {}

  onConnected(won: Won): void {
    this.race.answered(this, won);
  }

  onFailed(error: unknown): void {
    this.race.failed(this, error);
  }
}

/** See the module description. */
export abstract class Race<Asked, Won> {
  /** Those that are asked, in the order in which they were. */
  protected readonly running: Attempt<Asked, Won>[] = [];
  /** The caller's bytes have left for this one. */
  protected hearer: Attempt<Asked, Won> | undefined;
  protected isOver = false;

  /** @param patienceMs How long one is silent until it is doubted. */
  constructor(
    protected readonly timers: Timers,
    private readonly patienceMs: number = Infinity,
  ) {}

  /**
   * Sets `attempt.pending`; tells `attempt` the answer, which may be before this
   * returns.
   */
  protected abstract ask(attempt: Attempt<Asked, Won>): void;

  /** The race is over, and `attempt` has won it. */
  protected abstract won(attempt: Attempt<Asked, Won>, won: Won): void;

  /**
   * The candidate has failed: another one is asked, or the race is lost.
   *
   * @param hasHeard The caller's bytes had left for it.
   */
  protected abstract lost(
    attempt: Attempt<Asked, Won>,
    error: unknown,
    hasHeard: boolean,
  ): void;

  /** It came too late. */
  protected abstract discard(won: Won): void;

  /** It is not waited for any more. @param isWon Another one was quicker. */
  protected givenUp(_attempt: Attempt<Asked, Won>, _isWon: boolean): void {}

  /** It has not answered for long. @param times How often it was doubted before. */
  protected doubt(_attempt: Attempt<Asked, Won>, _times: number): NextDoubt {
    return "enough";
  }

  /** Asks it for a sign of life. */
  protected suspect(_attempt: Attempt<Asked, Won>): void {}

  /** It was asked for one, gives none, and that matters. */
  protected isSilent(_attempt: Attempt<Asked, Won>): boolean {
    return false;
  }

  /** The candidate that has the bytes does not answer. */
  protected frozen(_attempt: Attempt<Asked, Won>): void {}

  protected enter(asked: Asked, patienceMs = this.patienceMs): void {
    const attempt = new Attempt(this, asked);
    this.running.push(attempt);
    if (patienceMs < Infinity) this.#wait(attempt, patienceMs, 0);
    this.ask(attempt);
  }

  /**
   * The caller's bytes leave for `attempt`, which runs alone from then on.
   *
   * @returns The candidates that ran beside it.
   */
  protected sayTo(
    attempt: Attempt<Asked, Won>,
  ): readonly Attempt<Asked, Won>[] {
    this.hearer = attempt;
    const others = this.running.filter((other) => other !== attempt);
    for (const other of others) this.#giveUp(other, false);
    if (this.patienceMs < Infinity && attempt.patience === undefined) {
      this.#watch(attempt, 1);
    }
    return others;
  }

  /** Whether it was asked, has not answered, and is still waited for. */
  protected isRunning(attempt: Attempt<Asked, Won>): boolean {
    return this.running.includes(attempt);
  }

  /**
   * Gives up all running candidates. @param winner The one that has answered.
   */
  protected finish(winner?: Attempt<Asked, Won>): void {
    this.isOver = true;
    if (winner !== undefined) this.#leave(winner);
    while (this.running.length > 0) {
      this.#giveUp(this.running[0]!, winner !== undefined);
    }
  }

  /** For {@linkcode Attempt}. */
  answered(attempt: Attempt<Asked, Won>, won: Won): void {
    if (!this.isRunning(attempt)) return this.discard(won);
    this.finish(attempt);
    this.won(attempt, won);
  }

  /** For {@linkcode Attempt}. */
  failed(attempt: Attempt<Asked, Won>, error: unknown): void {
    if (!this.isRunning(attempt)) return;
    this.#leave(attempt);
    const hasHeard = this.hearer === attempt;
    if (hasHeard) this.hearer = undefined;
    this.lost(attempt, error, hasHeard);
  }

  #leave(attempt: Attempt<Asked, Won>): void {
    attempt.patience?.cancel();
    this.running.splice(this.running.indexOf(attempt), 1);
  }

  #giveUp(attempt: Attempt<Asked, Won>, isWon: boolean): void {
    this.#leave(attempt);
    attempt.pending?.cancel();
    this.givenUp(attempt, isWon);
  }

  #wait(attempt: Attempt<Asked, Won>, ms: number, times: number): void {
    attempt.patience = this.timers.after(ms, () => {
      attempt.patience = undefined;
      const next = this.doubt(attempt, times);
      if (!this.isRunning(attempt) || next === "enough") return;
      if (next === "watch") this.#watch(attempt, 1);
      else this.#wait(attempt, next, times + 1);
    });
  }

  #watch(attempt: Attempt<Asked, Won>, looks: number): void {
    const dueMs = this.timers.now() + FROZEN_LOOK_MS;
    attempt.patience = this.timers.after(FROZEN_LOOK_MS, () => {
      if (this.timers.now() > dueMs + LATE_MS) this.#watch(attempt, 1);
      else if (this.hearer !== attempt || !this.isSilent(attempt)) {
        this.suspect(attempt);
        this.#watch(attempt, 1);
      } else if (looks < FROZEN_LOOKS) this.#watch(attempt, looks + 1);
      else this.frozen(attempt);
    });
  }
}

/** A race whose answers, and whose outcome, are promised. */
export abstract class PromisedRace<Asked, Won, Result = Won>
  extends Race<Asked, Won> {
  readonly #result = Promise.withResolvers<Result>();

  /** Asks the first. */
  protected abstract begin(): void;

  /** @param signal Loses the race, with its reason. */
  async run(signal?: AbortSignal): Promise<Result> {
    signal?.throwIfAborted();
    const giveUp = () => this.lose(signal!.reason);
    signal?.addEventListener("abort", giveUp);
    try {
      this.begin();
      return await this.#result.promise;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  }

  protected follow(attempt: Attempt<Asked, Won>, answer: Promise<Won>): void {
    answer.then(
      (won) => attempt.onConnected(won),
      (error) => attempt.onFailed(error),
    )
      // The caller must report an internal error.
      .catch((slip) => this.lose(slip));
  }

  protected succeed(result: Result): void {
    this.#result.resolve(result);
  }

  protected lose(error: unknown): void {
    if (!this.isOver) this.finish();
    this.#result.reject(error);
  }
}
