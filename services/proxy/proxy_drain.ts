/**
 * The end of a service proxy, in order. Asked to end, it is not ready any more,
 * and goes on serving clients that come as long as something runs: another process
 * may take its ports over meanwhile. When one has, only what runs goes on.
 *
 * ```
 * running ──begin──► draining ──idle, or time is over──► closed
 *    │                  │ handedOver                       ▲
 *    └──handedOver──► leaving ─────────────────────────────┘
 * ```
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { SuccessorWait } from "../../net/handover/successor_wait.ts";
import type { Tools } from "../../platform/program/tools.ts";
import type { Timer } from "../../proto/sync/clock.ts";

/**
 * When the time is over nobody new is accepted, and who has just come has so
 * long: a request that began a moment ago is not cut off because another
 * connection would not end.
 */
export const LAST_MS = 500;

/** What runs. */
export interface ProxyLoad {
  readonly connections: number;
  /** Of UDP: waited for only when another process reads the datagrams. */
  readonly sessions: number;
}

/** What has to be done at each step. */
export interface ProxyDrainSteps {
  readonly load: ProxyLoad;
  /** Another process has the ports: open none any more. */
  retire(): void;
  /**
   * Ends everything; settles when it is gone.
   *
   * @param lastMs How long what runs may still go on; nobody new comes.
   */
  close(reason: string, lastMs: number): Promise<void>;
}

/** Idempotent. */
export class ProxyDrain {
  readonly #finished = Promise.withResolvers<void>();
  #state: "running" | "draining" | "leaving" | "closed" = "running";
  #deadline: Timer | undefined;
  #deadlineMs = Infinity;
  #look: Timer | undefined;
  readonly #successor: SuccessorWait;

  constructor(
    private readonly steps: ProxyDrainSteps,
    private readonly tools: Tools,
  ) {
    this.#successor = new SuccessorWait(
      tools.timers,
      () => this.loadChanged(),
    );
  }

  /** Settles when everything is closed. */
  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  /** It was asked to end, or another process serves. */
  get isDraining(): boolean {
    return this.#state !== "running";
  }

  /**
   * @param why Who asked, such as `SIGTERM`.
   * @param timeoutMs How long what runs may go on; 0 ends it at once.
   */
  begin(why: string, timeoutMs: number): void {
    if (this.#state !== "running") return;
    this.#state = "draining";
    this.tools.log.info(
      `${why}: draining, ${textOf(this.steps.load)}, at most ` +
        `${timeoutMs / 1000} s; who comes is served`,
    );
    this.#wait(timeoutMs);
  }

  /** It does not end before, unless its time is over. @param ms From now on. */
  awaitSuccessor(ms: number): void {
    this.#successor.set(ms);
    this.loadChanged();
  }

  /** To be called whenever the load has changed. */
  loadChanged(): void {
    if (this.#state !== "draining" && this.#state !== "leaving") return;
    // Whatever ends in this turn of the event loop may be followed by more.
    this.#look ??= this.tools.timers.after(0, () => {
      this.#look = undefined;
      this.#lookNow();
    });
  }

  /** @param pid The process that accepts from now on. */
  handedOver(pid: number, timeoutMs: number): void {
    if (this.#state !== "running" && this.#state !== "draining") return;
    this.#state = "leaving";
    this.#successor.set(0);
    this.steps.retire();
    this.tools.log.info(
      `handed over to process ${pid}: ${textOf(this.steps.load)} may go on, ` +
        `at most ${timeoutMs / 1000} s`,
    );
    this.#wait(timeoutMs);
  }

  /** Ends without waiting any longer. */
  now(reason: string): void {
    this.#close(reason, 0);
  }

  #close(reason: string, lastMs: number): void {
    // Who came last has less time than was said.
    if (this.#state === "closed") {
      return unawaited("proxy", this.steps.close(reason, lastMs));
    }
    this.#state = "closed";
    this.#deadline?.cancel();
    this.#look?.cancel();
    this.#successor.set(0);
    const { connections, sessions } = this.steps.load;
    const cut = connections + sessions === 0
      ? ""
      : `; ${textOf({ connections, sessions })} cut off`;
    this.steps.close(reason, lastMs).then(() => {
      this.tools.log.info(`ended: ${reason}${cut}`);
      this.#finished.resolve();
    }, this.#finished.reject);
  }

  #wait(timeoutMs: number): void {
    if (timeoutMs === 0) return this.now("the proxy is stopping");
    this.#deadlineMs = Math.min(
      this.#deadlineMs,
      this.tools.timers.now() + timeoutMs,
    );
    this.#deadline ??= this.tools.timers.after(
      timeoutMs,
      () => this.#close(`the drain took ${timeoutMs / 1000} s`, LAST_MS),
    );
    this.#lookNow();
  }

  #lookNow(): void {
    const { connections, sessions } = this.steps.load;
    const isOver = connections === 0 && !this.#successor.isOn &&
      (this.#state === "draining" || sessions === 0);
    if (!isOver) return;
    // Who is in the kernel's queue comes when the ports are closed.
    this.#close(
      sessions === 0 ? "nothing runs any more" : "no connection is open",
      this.#deadlineMs - this.tools.timers.now(),
    );
  }
}

function textOf({ connections, sessions }: ProxyLoad): string {
  const text = `${connections} ${
    connections === 1 ? "connection" : "connections"
  }`;
  if (sessions === 0) return text;
  const more = `${sessions} UDP ${sessions === 1 ? "session" : "sessions"}`;
  return connections === 0 ? more : `${text} and ${more}`;
}
