/**
 * Finds a backend for a client: the first that can be dialed, each tried once
 * at most, in the order in which the balancer has them.
 *
 * A try is used up by a backend that keeps the client waiting. One that refuses
 * costs next to nothing, so the next one is dialed as if it had not been asked.
 *
 * The first bytes of a client are sent to one backend at most. A dial that failed may
 * have brought it there all the same (an answer that came too late, a link that
 * was lost behind it), so it travels with a dial only where no other one is to
 * follow, and none does.
 *
 * @module
 */

import type { Protocol } from "../../catalog/model/model.ts";
import type { TraceContext } from "../../../proto/peer/trace_context.ts";
import type { ConnectionId } from "../../../proto/peer/connection_id.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import type { Backend } from "../balancer/backend.ts";
import type { ProxiedPort, ProxyContext } from "../listeners/proxied_port.ts";
import { EndpointDialError } from "../endpoints/endpoint_dialer.ts";

/** Who wants a backend. */
export interface BackendDial {
  readonly protocol: Protocol;
  /** The client's IP address. */
  readonly clientHost: string;
  /** The connection's. */
  readonly id?: ConnectionId;
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

/** What came of it. */
export type BackendFound =
  /** A conduit that nobody has attached to; its end is reported to `closed`. */
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
export async function dialBackend(
  port: ProxiedPort,
  context: ProxyContext,
  dial: BackendDial,
): Promise<BackendFound> {
  const tries = new Tries(port, context, dial.without);
  let isShort = false;
  let isEarlyTaken = false;
  const takeEarly = async () => {
    const early = await dial.takeEarly!();
    isEarlyTaken ||= early.length > 0;
    return early;
  };
  while (tries.areLeft && !isEarlyTaken && !dial.signal.aborted) {
    const backend = port.balancer.pick(dial.clientHost, tries.backends);
    if (backend === undefined) break;
    if (tries.backends.size > 0) port.counts.retries++;
    const mayTakeEarly = tries.isLastBackend && dial.takeEarly !== undefined;
    const trying = tryOne(port, context, {
      backend,
      timeoutMs: tries.timeoutMs,
      dial,
      takeEarly: mayTakeEarly ? takeEarly : undefined,
    });
    const answer = trying instanceof Promise ? await trying : trying;
    if (!(answer instanceof EndpointDialError)) {
      return { kind: "backend", backend, conduit: answer };
    }
    isShort = answer.fault === "here";
    tries.failed(backend, answer);
    if (tries.backends.size % REFUSALS_PER_TURN === 0) await turn(context);
  }
  if (tries.backends.size === 0) port.lastError = "no endpoint is ready";
  return { kind: isShort ? "short" : "nobody" };
}

function turn({ timers }: ProxyContext): Promise<void> {
  return new Promise((resolve) => timers.after(0, resolve));
}

/** What one client has been through, and what is left for it. */
class Tries {
  /** Those that have failed it. */
  readonly backends: Set<Backend>;
  readonly #startMs: number;
  /** Those that kept it waiting. */
  #used = 0;

  constructor(
    private readonly port: ProxiedPort,
    private readonly context: ProxyContext,
    without?: ReadonlySet<Backend>,
  ) {
    this.backends = new Set(without);
    this.#startMs = context.timers.now();
  }

  get areLeft(): boolean {
    const { timers } = this.context;
    return this.#used < this.#triesMax &&
      this.backends.size < BACKENDS_TRIED_MAX &&
      // Refusals that come from afar take time, too.
      (this.backends.size === this.#used ||
        timers.now() - this.#startMs < this.#allTriesMs);
  }

  /** Whether nobody could be dialed if the next one failed. */
  get isLastBackend(): boolean {
    const { usableCount } = this.port.balancer;
    return this.backends.size + 1 >= Math.min(usableCount, BACKENDS_TRIED_MAX);
  }

  /** Who is the last hope is given as much time as anybody ever is. */
  get timeoutMs(): number {
    const { dialTimeoutMs } = this.port.policy;
    if (dialTimeoutMs !== undefined) return dialTimeoutMs;
    const { dialTimeoutsMs } = this.context;
    return this.isLastBackend
      ? dialTimeoutsMs.at(-1)!
      : dialTimeoutsMs[this.#used]!;
  }

  failed(backend: Backend, { fault, isTimeout }: EndpointDialError): void {
    this.backends.add(backend);
    // What this machine lacks, it lacks for all of them.
    if (isTimeout || fault !== "target") this.#used++;
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

interface Try {
  readonly backend: Backend;
  readonly timeoutMs: number;
  readonly dial: BackendDial;
  readonly takeEarly: (() => Promise<Uint8Array>) | undefined;
}

/** Whom a try reached; at once where that is known at once. */
function tryOne(
  port: ProxiedPort,
  context: ProxyContext,
  { backend, timeoutMs, dial, takeEarly }: Try,
): Conduit | EndpointDialError | Promise<Conduit | EndpointDialError> {
  const { protocol, userTimeoutMs = 0, id, trace, signal } = dial;
  // Counted from here on, or a burst would all go to one backend.
  backend.opened();
  dial.onTry?.(backend);
  const conduit = context.dialer.dial(backend.target, {
    protocol,
    timeoutMs,
    userTimeoutMs,
    agentOnFailure: port.policy.agentOnFailure ?? false,
    takeEarly,
    signal,
    ...(id === undefined ? {} : { id }),
    ...(trace === undefined ? {} : { trace }),
  });
  if (!(conduit instanceof Promise)) {
    return reached(backend, protocol, conduit);
  }
  return conduit.then(
    (late) => reached(backend, protocol, late),
    (error) => failed(port, context, backend, error),
  );
}

function reached(
  backend: Backend,
  protocol: Protocol,
  conduit: Conduit,
): Conduit {
  // That a UDP socket was opened says nothing about who is there.
  if (protocol === "tcp") backend.succeeded();
  return conduit;
}

function failed(
  port: ProxiedPort,
  { log }: ProxyContext,
  backend: Backend,
  error: unknown,
): EndpointDialError {
  backend.closed();
  if (!(error instanceof EndpointDialError)) throw error;
  port.lastError = error.message;
  if (log.wantsDetails) {
    log.detail(`${port.key}: cannot reach ${backend.key}: ${error.message}`);
  }
  // A machine that is short of something says nothing about a backend.
  if (error.fault === "target") blame(port, backend, error.message, log);
  return error;
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
