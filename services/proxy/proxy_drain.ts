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
import { Drain } from "../../net/program/drain.ts";
import type { Tools } from "../../platform/program/tools.ts";

/**
 * When its time is over no new client is accepted, and one that has just come
 * gets this long: a request that began a moment ago must not be cut off because
 * another connection did not end.
 */
export const LAST_MS = 500;

/** What runs. */
export interface ProxyLoad {
  readonly connections: number;
  /**
   * Open UDP sessions: waited for only when another process reads the
   * datagrams.
   */
  readonly sessions: number;
}

/** The actions of each step. */
export interface ProxyDrainSteps {
  readonly load: ProxyLoad;
  /** Another process has the ports: open none any more. */
  retire(): void;
  /**
   * Ends everything; settles when that is done.
   *
   * @param lastMs How long running connections may still go on; no new client
   *   comes.
   */
  close(reason: string, lastMs: number): Promise<void>;
}

/** See the module description. */
export class ProxyDrain extends Drain<"draining" | "leaving"> {
  #deadlineMs = Infinity;
  /** See {@linkcode ProxyDrainSteps.close}. */
  #lastMs = 0;

  constructor(
    private readonly steps: ProxyDrainSteps,
    private readonly tools: Tools,
  ) {
    super(tools.timers);
  }

  /**
   * @param why Who asked, such as `SIGTERM`.
   * @param timeoutMs How long what runs may go on; 0 ends it at once.
   */
  begin(why: string, timeoutMs: number): void {
    if (!this.isRunning) return;
    this.phase = "draining";
    this.tools.log.info(
      `${why}: draining, ${textOf(this.steps.load)}, at most ` +
        `${timeoutMs / 1000} s; new callers are served`,
    );
    this.#wait(timeoutMs);
  }

  /**
   * A connection that ends in this turn of the event loop may be followed by
   * another.
   */
  override loadChanged(): void {
    const isWaiting = this.phase === "draining" || this.phase === "leaving";
    if (isWaiting && !this.isStepping) this.stepAfter(0, () => this.#look());
  }

  /** @param pid The process that accepts from now on. */
  handedOver(pid: number, timeoutMs: number): void {
    if (!this.isRunning && this.phase !== "draining") return;
    this.phase = "leaving";
    this.forgetSuccessor();
    this.steps.retire();
    this.tools.log.info(
      `handed over to process ${pid}: ${textOf(this.steps.load)} may go on, ` +
        `at most ${timeoutMs / 1000} s`,
    );
    this.#wait(timeoutMs);
  }

  override now(reason: string): void {
    this.#end(reason, 0);
  }

  #end(reason: string, lastMs: number): void {
    // The last client has less time than that.
    if (this.phase === "closed") {
      return unawaited("proxy", this.steps.close(reason, lastMs));
    }
    this.#lastMs = lastMs;
    super.now(reason);
  }

  protected override async close(reason: string): Promise<void> {
    const { connections, sessions } = this.steps.load;
    const cut = connections + sessions === 0
      ? ""
      : `; ${textOf({ connections, sessions })} cut off`;
    await this.steps.close(reason, this.#lastMs);
    this.tools.log.info(`ended: ${reason}${cut}`);
  }

  #wait(timeoutMs: number): void {
    if (timeoutMs === 0) return this.now("the proxy is stopping");
    const endMs = this.timers.now() + timeoutMs;
    this.#deadlineMs = Math.min(this.#deadlineMs, endMs);
    this.limit(
      timeoutMs,
      () => this.#end(`the drain took ${timeoutMs / 1000} s`, LAST_MS),
    );
    this.#look();
  }

  #look(): void {
    const { connections, sessions } = this.steps.load;
    const isOver = connections === 0 && !this.awaitsSuccessor &&
      (this.phase === "draining" || sessions === 0);
    if (!isOver) return;
    // A client in the kernel's queue is accepted when the ports are closed.
    this.#end(
      sessions === 0 ? "nothing runs any more" : "no connection is open",
      this.#deadlineMs - this.timers.now(),
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
