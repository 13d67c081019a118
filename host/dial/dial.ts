/**
 * Connects to the targets that tunneled connections are for.
 *
 * Name, address, deadline and cancellation are dealt with here, and where the
 * rules about targets are asked; what they say is for `policy/`. Unix sockets
 * must be allowed path by path whatever else is allowed, because a socket such
 * as a container runtime's gives away the whole machine.
 *
 * @module
 */

import { parseIpAddress } from "../../proto/link/ip_address.ts";
import { DialError, type DialTarget } from "../../proto/link/link.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import {
  connectError,
  dialCancelled,
  dialTimeout,
  lookupTimeout,
} from "./dial_errors.ts";
import { connectAny, interleaveFamilies } from "./happy_eyeballs.ts";
import { DialGate, type DialRules } from "../policy/dial_gate.ts";
import { type Resolver, systemResolver } from "./resolver.ts";
import { conduitOf } from "../sockets/conduit_of_socket.ts";
import { DatagramConduit } from "../sockets/datagrams/datagram_conduit.ts";
import { hostPort } from "../sockets/deno_socket.ts";
import type { OctetSocket } from "../sockets/octet_socket.ts";
import { connectToAddress, connectToPath } from "../sockets/socket_connect.ts";
import { systemTimers } from "../process/system_timers.ts";
import { splitAddress } from "./target_address.ts";

/** Deadline of a dial, name lookup included. */
export const DIAL_TIMEOUT_MS = 5_000;

/** A UDP flow in which nothing was said for so long is given up. */
export const UDP_IDLE_TIMEOUT_MS = 60_000;

/** How {@linkcode dialTarget} is to behave. */
export interface DialOptions extends DialRules {
  readonly resolver?: Resolver;
  readonly timers?: Timers;
  /** Default: {@linkcode DIAL_TIMEOUT_MS}. */
  readonly timeoutMs?: number;
  /** Gives the dial up. */
  readonly signal?: AbortSignal;
  /**
   * Instead of `signal`, for who has one controller for each dial: aborting it
   * with a {@linkcode DialError} gives the dial up, and its deadline aborts it
   * too. One controller less, and nobody who has to listen.
   */
  readonly controller?: AbortController;
  /** Default: {@linkcode UDP_IDLE_TIMEOUT_MS}. */
  readonly udpIdleTimeoutMs?: number;
  /** A UDP flow is one of thousands; see `DatagramConduitOptions.isSession`. */
  readonly udpIsSession?: boolean;
}

/**
 * Connects to `target`.
 *
 * @throws {DialError} With Go's words; reason `endpoint`, `timeout` or
 *   `cancelled`.
 */
export async function dialTarget(
  target: DialTarget,
  options: DialOptions = {},
): Promise<Conduit> {
  const { protocol, address } = target;
  const dial = DIALS[protocol];
  if (dial === undefined) {
    throw new DialError(
      "endpoint",
      `dial ${protocol}: unknown network ${protocol}`,
    );
  }
  const timers = options.timers ?? systemTimers;
  if (protocol === "udp" && isAddress(target)) {
    return await dialAtOnce(target, options, timers);
  }
  const controller = options.controller ?? new AbortController();
  const attempt: Attempt = {
    target,
    options,
    gate: new DialGate(target, options),
    timers,
    signal: controller.signal,
  };
  const { signal } = options;
  const cancel = () => controller.abort(dialCancelled(protocol, address));
  if (signal?.aborted) cancel();
  signal?.addEventListener("abort", cancel);
  const timer = timers.after(
    options.timeoutMs ?? DIAL_TIMEOUT_MS,
    () => controller.abort(dialTimeout(protocol, address)),
  );
  try {
    return await dial(attempt);
  } finally {
    timer.cancel();
    signal?.removeEventListener("abort", cancel);
  }
}

/** Whether no name has to be looked up. */
function isAddress(target: DialTarget): boolean {
  return parseIpAddress(splitAddress(target).host) !== undefined;
}

const NEVER = new AbortController().signal;

/**
 * Where datagrams go is not waited for, so nothing can be late: a deadline and a
 * controller would be half of what a session costs while it is opened.
 */
async function dialAtOnce(
  target: DialTarget,
  options: DialOptions,
  timers: Timers,
): Promise<Conduit> {
  const gate = new DialGate(target, options);
  const signal = options.controller?.signal ?? options.signal ?? NEVER;
  try {
    return await dialUdp({ target, options, gate, timers, signal });
  } catch (error) {
    if (!options.signal?.aborted) throw error;
    throw dialCancelled(target.protocol, target.address);
  }
}

interface Attempt {
  readonly target: DialTarget;
  readonly options: DialOptions;
  readonly gate: DialGate;
  readonly timers: Timers;
  /** Its reason is the {@linkcode DialError} to fail with. */
  readonly signal: AbortSignal;
}

const DIALS: Readonly<Record<string, (attempt: Attempt) => Promise<Conduit>>> =
  { tcp: dialTcp, udp: dialUdp, unix: dialUnix };

function dialTcp(attempt: Attempt): Promise<Conduit> {
  const { host, port } = splitAddress(attempt.target);
  if (parseIpAddress(host) === undefined) return dialName(attempt, host, port);
  attempt.gate.admit([host]);
  return dialAddress(host, port, attempt.signal);
}

async function dialAddress(
  hostname: string,
  port: number,
  signal: AbortSignal,
): Promise<Conduit> {
  return conduitOf(await connectTcp(hostname, port, signal));
}

async function dialName(
  attempt: Attempt,
  host: string,
  port: number,
): Promise<Conduit> {
  attempt.gate.beforeLookup();
  const found = await resolve(attempt, host);
  const addresses = interleaveFamilies(attempt.gate.admit(found));
  const [only, ...others] = addresses;
  const conn = others.length === 0
    ? await connectTcp(only!, port, attempt.signal)
    : await connectAny<OctetSocket>({
      addresses,
      timers: attempt.timers,
      signal: attempt.signal,
      connect: (hostname, signal) => connectTcp(hostname, port, signal),
      discard: (late) => late.close(),
    });
  return conduitOf(conn);
}

/**
 * Connects to one address.
 *
 * @throws {DialError}
 */
export async function connectTcp(
  hostname: string,
  port: number,
  signal: AbortSignal,
): Promise<OctetSocket> {
  try {
    return await connectToAddress({ hostname, port }, signal);
  } catch (error) {
    throw connectError("tcp", hostPort(hostname, port), error);
  }
}

async function dialUdp(attempt: Attempt): Promise<Conduit> {
  const { host, port } = splitAddress(attempt.target);
  attempt.gate.beforeLookup();
  const [address] = attempt.gate.admit(await resolve(attempt, host));
  const conduit = await DatagramConduit.open({
    address: address!,
    port,
    timers: attempt.timers,
    idleTimeoutMs: attempt.options.udpIdleTimeoutMs ?? UDP_IDLE_TIMEOUT_MS,
    isSession: attempt.options.udpIsSession ?? false,
  }).catch((error) => {
    throw connectError("udp", hostPort(address!, port), error);
  });
  if (!attempt.signal.aborted) return conduit;
  conduit.discard();
  throw attempt.signal.reason;
}

async function dialUnix(attempt: Attempt): Promise<Conduit> {
  const { address } = attempt.target;
  const path = await orAborted(
    attempt.gate.admitPath(address, Deno.realPath),
    attempt.signal,
    () => {},
  ).catch((error) => {
    throw connectError("unix", address, error);
  });
  try {
    return conduitOf(await connectToPath(path, attempt.signal));
  } catch (error) {
    throw connectError("unix", address, error);
  }
}

/** Addresses of `host`; an empty host is this machine, as in Go. */
async function resolve(
  attempt: Attempt,
  host: string,
): Promise<readonly string[]> {
  const { signal, target } = attempt;
  if (signal.aborted) throw signal.reason;
  if (host === "") return ["127.0.0.1", "::1"];
  if (parseIpAddress(host) !== undefined) return [host];
  try {
    const looking = (attempt.options.resolver ?? systemResolver).lookup(host);
    return await orAborted(looking, signal, () => {});
  } catch (error) {
    if (error instanceof DialError && error.reason === "timeout") {
      throw lookupTimeout(target.protocol, host);
    }
    throw connectError(target.protocol, target.address, error);
  }
}

/** `promise`, or the signal's reason; what comes too late is discarded. */
function orAborted<Value>(
  promise: Promise<Value>,
  signal: AbortSignal,
  discard: (value: Value) => void,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort);
    promise.then((value) => {
      if (signal.aborted) discard(value);
      else resolve(value);
    }, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
