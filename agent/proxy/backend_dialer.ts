/**
 * Finds a backend for a client: the first that can be dialed, each tried once
 * at most, in the order in which the balancer has them.
 *
 * What a client says first is sent to one backend at most. A dial that failed may
 * have brought it there all the same (an answer that came too late, a link that
 * was lost behind it), so it travels with a dial only where no other one is to
 * follow, and none does.
 *
 * @module
 */

import type { Protocol } from "../../catalog/model.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import type { Backend } from "./balancer/backend.ts";
import type { ProxiedPort, ProxyContext } from "./proxied_port.ts";
import { ReachError } from "./reach.ts";

/** Who wants a backend. */
export interface BackendDial {
  readonly protocol: Protocol;
  /** The client's IP address. */
  readonly clientHost: string;
  /** What the client says first; see `ReachDial.takeEarly`. */
  readonly takeEarly?: () => Promise<Uint8Array>;
  /** Gives it up. */
  readonly signal: AbortSignal;
  /** A backend is dialed; it counts as open from here on. */
  readonly onTry?: (backend: Backend) => void;
}

/** What came of it. */
export type BackendFound =
  /** A conduit that nobody has attached to; `closed` is to be told its end. */
  | {
    readonly kind: "backend";
    readonly backend: Backend;
    readonly conduit: Conduit;
  }
  /** There is none, none could be reached, or it was given up. */
  | { readonly kind: "nobody" }
  /** This machine is short of something, whoever is dialed. */
  | { readonly kind: "short" };

/** Dials until there is one; `port` is told what happened. */
export async function dialBackend(
  port: ProxiedPort,
  context: ProxyContext,
  dial: BackendDial,
): Promise<BackendFound> {
  const triesMax = context.dialTimeoutsMs.length;
  let tried = NOBODY;
  let isShort = false;
  let isHeard = false;
  const takeEarly = async () => {
    const early = await dial.takeEarly!();
    isHeard ||= early.length > 0;
    return early;
  };
  while (tried.size < triesMax && !isHeard && !dial.signal.aborted) {
    const backend = port.balancer.pick(dial.clientHost, tried);
    if (backend === undefined) break;
    if (tried.size > 0) port.counts.retries++;
    const isLast = tried.size + 1 >=
      Math.min(triesMax, port.balancer.usableCount);
    const trying = tryOne(port, context, {
      backend,
      timeoutMs: timeoutOf(port, context, tried.size, isLast),
      dial,
      takeEarly: isLast && dial.takeEarly !== undefined ? takeEarly : undefined,
    });
    const answer = trying instanceof Promise ? await trying : trying;
    if (!(answer instanceof ReachError)) {
      return { kind: "backend", backend, conduit: answer };
    }
    isShort = answer.fault === "here";
    tried = new Set(tried).add(backend);
  }
  if (tried.size === 0) port.lastError = "no endpoint is ready";
  return { kind: isShort ? "short" : "nobody" };
}

const NOBODY: ReadonlySet<Backend> = new Set();

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
): Conduit | ReachError | Promise<Conduit | ReachError> {
  const { protocol, signal } = dial;
  // Counted from here on, or a burst would all go to one backend.
  backend.opened();
  dial.onTry?.(backend);
  const conduit = context.reach.dial(backend.target, {
    protocol,
    timeoutMs,
    agentOnFailure: port.policy.agentOnFailure ?? false,
    takeEarly,
    signal,
  });
  if (!(conduit instanceof Promise)) {
    return reached(port, backend, protocol, conduit);
  }
  return conduit.then(
    (late) => reached(port, backend, protocol, late),
    (error) => failed(port, context, backend, error),
  );
}

function reached(
  port: ProxiedPort,
  backend: Backend,
  protocol: Protocol,
  conduit: Conduit,
): Conduit {
  // That a UDP socket was opened says nothing about who is there.
  if (protocol === "tcp") port.balancer.succeeded(backend);
  return conduit;
}

function failed(
  port: ProxiedPort,
  { log }: ProxyContext,
  backend: Backend,
  error: unknown,
): ReachError {
  backend.closed();
  if (!(error instanceof ReachError)) throw error;
  port.lastError = error.message;
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

/** Who is the last hope is given as much time as anybody ever is. */
function timeoutOf(
  { policy }: ProxiedPort,
  { dialTimeoutsMs }: ProxyContext,
  triesBefore: number,
  isLast: boolean,
): number {
  if (policy.dialTimeoutMs !== undefined) return policy.dialTimeoutMs;
  return dialTimeoutsMs[isLast ? dialTimeoutsMs.length - 1 : triesBefore]!;
}
