/**
 * Finds a backend for a client: the first that can be dialed, each tried once
 * at most, in the order in which the balancer has them.
 *
 * Only a backend that keeps the client waiting uses up a try. A refusal costs
 * next to nothing, and is not counted.
 *
 * The first bytes of a client are sent to one backend at most. A failed dial
 * may have delivered them all the same (a late answer, a lost link), so they
 * travel only with a dial that no other one will follow.
 *
 * @module
 */

import { type Attempt, PromisedRace } from "../../../platform/time/race.ts";
import { abandon } from "../../../proto/link/dial_handler.ts";
import type { Protocol } from "../../catalog/model/model.ts";
import type { TraceContext } from "../../../proto/peer/trace_context.ts";
import type { ConnectionId } from "../../../proto/peer/connection_id.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import type { Backend } from "../balancer/backend.ts";
import type { ProxiedPort, ProxyContext } from "../listeners/proxied_port.ts";
import { EndpointDialError } from "../endpoints/endpoint_dialer.ts";

/** The client that needs a backend. */
export interface BackendDial {
  readonly protocol: Protocol;
  /** The client's IP address. */
  readonly clientHost: string;
  /** The connection's. */
  readonly id?: ConnectionId | undefined;
  /** The span that it is for. */
  readonly trace?: TraceContext | undefined;
  /** What the client sends first; see `EndpointDial.takeEarly`. */
  readonly takeEarly?: () => Promise<Uint8Array>;
  /** See `DialLimits`. */
  readonly userTimeoutMs?: number;
  /** Gives it up. */
  readonly signal: AbortSignal;
  /** Backends that have failed this client already. */
  readonly without?: ReadonlySet<Backend>;
  /** A backend is dialed; it counts as open from here on. */
  readonly onTry?: (backend: Backend) => void;
}

/** The result. */
export type BackendFound =
  /** A connected conduit without a handler; its end is reported to `closed`. */
  | {
    readonly kind: "backend";
    readonly backend: Backend;
    readonly conduit: Conduit;
  }
  /** There is none, none could be reached, or it was given up. */
  | { readonly kind: "nobody" }
  /** This machine is short of something, whichever backend is dialed. */
  | { readonly kind: "short" };

/**
 * Backends that are dialed for one client at most: with thousands that are all
 * dead, a client who comes again and again must not keep the proxy busy.
 */
export const BACKENDS_TRIED_MAX = 128;

/** Refusals in a row, before everybody else has a turn. */
const REFUSALS_PER_TURN = 16;

/** Dials until there is one; `port` counts what happened. */
export function dialBackend(
  port: ProxiedPort,
  context: ProxyContext,
  dial: BackendDial,
): Promise<BackendFound> {
  return new BackendRace(port, context, dial).run();
}

type BackendAttempt = Attempt<Backend, Conduit>;

/** The tries of one client, past and left: it waits for one at a time. */
class BackendRace extends PromisedRace<Backend, Conduit, BackendFound> {
  /** Those that have failed it. */
  readonly #failed: Set<Backend>;
  readonly #startMs: number;
  /** Those that kept it waiting. */
  #used = 0;
  #isShort = false;

  constructor(
    private readonly port: ProxiedPort,
    private readonly context: ProxyContext,
    private readonly dial: BackendDial,
  ) {
    super(context.timers);
    this.#failed = new Set(dial.without);
    this.#startMs = context.timers.now();
  }

  protected begin(): void {
    const { port, dial } = this;
    const backend = this.#mayTry && !dial.signal.aborted
      ? port.balancer.pick(dial.clientHost, this.#failed)
      : undefined;
    if (backend === undefined) return this.#nobody();
    if (this.#failed.size > 0) port.counts.retries++;
    // Counted from here on, or a burst would all go to one backend.
    backend.opened();
    dial.onTry?.(backend);
    this.enter(backend);
  }

  #nobody(): void {
    if (this.#failed.size === 0) this.port.lastError = "no endpoint is ready";
    this.succeed({ kind: this.#isShort ? "short" : "nobody" });
  }

  protected ask(attempt: BackendAttempt): void {
    const { protocol, userTimeoutMs = 0, id, trace, signal, takeEarly } =
      this.dial;
    const mayTakeEarly = takeEarly !== undefined && this.#isLastBackend;
    const conduit = this.context.dialer.dial(attempt.asked.target, {
      protocol,
      timeoutMs: this.#timeoutMs,
      userTimeoutMs,
      agentOnFailure: this.port.policy.agentOnFailure ?? false,
      takeEarly: mayTakeEarly
        ? () => this.#takeEarly(attempt, takeEarly)
        : undefined,
      ...{ signal, id, trace },
    });
    // A backend on this machine answers at once.
    if (conduit instanceof Promise) this.follow(attempt, conduit);
    else attempt.onConnected(conduit);
  }

  async #takeEarly(
    attempt: BackendAttempt,
    takeEarly: () => Promise<Uint8Array>,
  ): Promise<Uint8Array> {
    const early = await takeEarly();
    if (early.length > 0) this.sayTo(attempt);
    return early;
  }

  protected won({ asked: backend }: BackendAttempt, conduit: Conduit): void {
    // That a UDP socket was opened says nothing about who is there.
    if (this.dial.protocol === "tcp") backend.succeeded();
    this.succeed({ kind: "backend", backend, conduit });
  }

  protected lost(
    { asked: backend }: BackendAttempt,
    error: unknown,
    hasHeard: boolean,
  ): void {
    const { port, context: { log, timers } } = this;
    backend.closed();
    if (!(error instanceof EndpointDialError)) throw error;
    const { fault, isTimeout, message } = error;
    port.lastError = message;
    if (log.wantsDetails) {
      log.detail(`${port.key}: cannot reach ${backend.key}: ${message}`);
    }
    // A machine that is short of something says nothing about a backend.
    if (fault === "target") blame(port, backend, message, log);
    this.#isShort = fault === "here";
    this.#failed.add(backend);
    // What this machine lacks, it lacks for all of them.
    if (isTimeout || fault !== "target") this.#used++;
    if (hasHeard) this.#nobody();
    else if (this.#failed.size % REFUSALS_PER_TURN !== 0) this.begin();
    else timers.after(0, () => this.begin());
  }

  /** The conduit has no owner yet that could report its end. */
  protected discard(conduit: Conduit): void {
    abandon(conduit, "the client is gone");
  }

  get #mayTry(): boolean {
    return this.#used < this.#triesMax &&
      this.#failed.size < BACKENDS_TRIED_MAX &&
      // Refusals that come from afar take time, too.
      (this.#failed.size === this.#used ||
        this.timers.now() - this.#startMs < this.#allTriesMs);
  }

  /** Whether no other one could be dialed if the next one failed. */
  get #isLastBackend(): boolean {
    const { usableCount } = this.port.balancer;
    return this.#failed.size + 1 >= Math.min(usableCount, BACKENDS_TRIED_MAX);
  }

  /** The last backend that is left is waited for as long as any ever is. */
  get #timeoutMs(): number {
    const { dialTimeoutMs } = this.port.policy;
    if (dialTimeoutMs !== undefined) return dialTimeoutMs;
    const { dialTimeoutsMs } = this.context;
    return this.#isLastBackend
      ? dialTimeoutsMs.at(-1)!
      : dialTimeoutsMs[this.#used]!;
  }

  get #triesMax(): number {
    return this.context.dialTimeoutsMs.length;
  }

  get #allTriesMs(): number {
    const { dialTimeoutMs } = this.port.policy;
    return dialTimeoutMs === undefined
      ? this.context.dialTimeoutsMs.reduce((sum, each) => sum + each, 0)
      : dialTimeoutMs * this.#triesMax;
  }
}

/** `backend` did not do what a backend is for. */
export function blame(
  port: ProxiedPort,
  backend: Backend,
  problem: string,
  log: ProxyContext["log"],
): void {
  port.lastError = problem;
  if (!port.balancer.failed(backend, problem)) return;
  port.counts.ejections++;
  log.event(`${port.key}: ${backend.key} is left out for a while: ${problem}`);
}
