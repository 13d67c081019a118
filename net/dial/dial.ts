/**
 * Connects to the targets that tunneled connections are for.
 *
 * Name, address, deadline and cancellation are handled here, and the rules
 * about targets are applied here; the rules are in `policy/`. Unix sockets must
 * be allowed path by path whatever else is allowed, because a socket such as a
 * container runtime's gives away the whole machine.
 *
 * @module
 */

import { isIpAddress } from "../../proto/peer/ip_address.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import {
  connectError,
  dialCancelled,
  dialTimeout,
  lookupTimeout,
  unknownNetwork,
} from "./dial_errors.ts";
import { connectAny, interleaveFamilies } from "./happy_eyeballs.ts";
import { DialGate, type DialRules } from "../../policy/dial_gate.ts";
import type { Resolver } from "../names/resolver.ts";
import { systemResolver } from "../names/system_resolver.ts";
import { conduitOf } from "../stream/stream_conduit.ts";
import { DatagramConduit } from "../datagram/datagram_conduit.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import type { Stream } from "../stream/stream.ts";
import { mayTakeDescriptor } from "../libc/descriptors.ts";
import type { DatagramAddress } from "../libc/socket_address.ts";
import { Errno, systemError } from "../libc/system_error.ts";
import { setUserTimeout } from "../libc/tcp_options.ts";
import {
  Connecting,
  connectToAddress,
  connectToPath,
  startConnect,
} from "../stream/socket_connect.ts";
import { orAborted, withDeadline } from "../../platform/time/deadline.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { splitAddress } from "../../policy/target_address.ts";

/** Deadline of a dial, name lookup included. */
export const TARGET_DIAL_TIMEOUT_MS = 5_000;

/** A UDP flow is given up after this silence. */
export const TARGET_UDP_IDLE_TIMEOUT_MS = 60_000;

/** How {@linkcode dialTarget} is to behave. */
export interface TargetDialOptions extends DialRules {
  readonly resolver?: Resolver;
  readonly timers?: Timers;
  /** Default: {@linkcode TARGET_DIAL_TIMEOUT_MS}. */
  readonly timeoutMs?: number;
  /** Gives the dial up. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Instead of `signal`, for callers that have one controller for each dial:
   * aborting it with a {@linkcode DialError} gives the dial up, and its
   * deadline aborts it too. That saves a controller and a listener.
   */
  readonly controller?: AbortController;
  /**
   * A TCP connection ends when its peer acknowledges nothing for this long
   * (TCP_USER_TIMEOUT of tcp(7)). Default: the kernel's.
   */
  readonly userTimeoutMs?: number;
  /** Default: {@linkcode TARGET_UDP_IDLE_TIMEOUT_MS}. */
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
  options: TargetDialOptions = {},
): Promise<Conduit> {
  const { protocol } = target;
  const gate = new DialGate(target, options);
  // A `Map`: the caller chooses the text, and an object has `constructor`, too.
  const dial = DIALS.get(protocol);
  if (dial === undefined) {
    gate.refuseNetwork();
    throw unknownNetwork(protocol);
  }
  const timers = options.timers ?? systemTimers;
  return await dial({ target, options, gate, timers });
}

/**
 * How long a dial may take, and how to give it up; see
 * {@linkcode TargetDialOptions}.
 */
export type DialLimits = Pick<
  TargetDialOptions,
  "timers" | "timeoutMs" | "signal" | "controller" | "userTimeoutMs"
>;

/**
 * Connects over TCP to an IP address that no rule covers.
 *
 * @returns The connection itself, without a promise, when it is there at once,
 *   as on this machine: then nothing can be late, and a deadline and an abort
 *   listener would be half of the dial's cost.
 * @throws {DialError} Never at once.
 */
export function dialAddress(
  to: DatagramAddress,
  options: DialLimits = {},
): Conduit | Promise<Conduit> {
  const { signal, controller } = options;
  if (controller?.signal.aborted) {
    return Promise.reject(controller.signal.reason);
  }
  if (signal?.aborted) return Promise.reject(dialCancelled("tcp", textOf(to)));
  let started: ReturnType<typeof startConnect>;
  try {
    keepDescriptors();
    started = startConnect(to);
  } catch (error) {
    return Promise.reject(connectError("tcp", textOf(to), error));
  }
  if (started !== undefined && !(started instanceof Connecting)) {
    return conduitOver(started, options);
  }
  return inTime("tcp", textOf(to), options, async (signal) => {
    try {
      const connecting = started?.wait(signal) ?? connectToAddress(to, signal);
      return conduitOver(await connecting, options);
    } catch (error) {
      throw connectError("tcp", textOf(to), error);
    }
  });
}

function conduitOver(
  stream: Stream,
  { userTimeoutMs = 0 }: DialLimits,
): Conduit {
  setUserTimeout(stream.descriptor, userTimeoutMs);
  return conduitOf(stream);
}

function textOf({ hostname, port }: DatagramAddress): string {
  return hostPort(hostname, port);
}

/**
 * Runs `dial` within its limits; when its signal aborts, it must fail with the
 * signal's reason.
 */
function inTime(
  protocol: string,
  address: string,
  { timers, timeoutMs, signal, controller }: DialLimits,
  dial: (signal: AbortSignal) => Promise<Conduit>,
): Promise<Conduit> {
  return withDeadline({
    timers: timers ?? systemTimers,
    timeoutMs: timeoutMs ?? TARGET_DIAL_TIMEOUT_MS,
    late: () => dialTimeout(protocol, address),
    signal,
    givenUp: () => dialCancelled(protocol, address),
    controller,
  }, dial);
}

/** The target, and the rules for it. */
interface Dial {
  readonly target: DialTarget;
  readonly options: TargetDialOptions;
  readonly gate: DialGate;
  readonly timers: Timers;
}

/** A dial that may take time. */
interface Attempt extends Dial {
  /** Its reason is the {@linkcode DialError} to fail with. */
  readonly signal: AbortSignal;
}

type DialFunction = (dial: Dial) => Conduit | Promise<Conduit>;

const DIALS: ReadonlyMap<string, DialFunction> = new Map<string, DialFunction>([
  ["tcp", (dial) => {
    const { host, port } = splitAddress(dial.target);
    if (!isIpAddress(host)) {
      return limited(dial, (attempt) => dialName(attempt, host, port));
    }
    dial.gate.admit([host]);
    return dialAddress({ hostname: host, port }, dial.options);
  }],
  ["udp", (dial) => {
    const { host } = splitAddress(dial.target);
    return isIpAddress(host) ? dialAtOnce(dial) : limited(dial, dialUdp);
  }],
  ["unix", (dial) => limited(dial, dialUnix)],
]);

function limited(
  dial: Dial,
  attempt: (attempt: Attempt) => Promise<Conduit>,
): Promise<Conduit> {
  const { protocol, address } = dial.target;
  return inTime(
    protocol,
    address,
    dial.options,
    (signal) => attempt({ ...dial, signal }),
  );
}

const NEVER = new AbortController().signal;

/**
 * The first datagram is not awaited, so nothing can be late: a deadline and a
 * controller would be half of the cost of opening a session.
 */
async function dialAtOnce(dial: Dial): Promise<Conduit> {
  const { target, options } = dial;
  const signal = options.controller?.signal ?? options.signal ?? NEVER;
  try {
    return await dialUdp({ ...dial, signal });
  } catch (error) {
    if (!options.signal?.aborted) throw error;
    throw dialCancelled(target.protocol, target.address);
  }
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
    : await connectAny<Stream>({
      addresses,
      timers: attempt.timers,
      signal: attempt.signal,
      connect: (hostname, signal) => connectTcp(hostname, port, signal),
      discard: (late) => late.close(),
    });
  return conduitOver(conn, attempt.options);
}

function connectTcp(
  hostname: string,
  port: number,
  signal: AbortSignal,
): Promise<Stream> {
  const to = { hostname, port };
  return opened("tcp", textOf(to), () => connectToAddress(to, signal));
}

/** What `open` gives, or its error as a {@linkcode DialError}. */
async function opened<Result>(
  protocol: string,
  address: string,
  open: () => Promise<Result>,
): Promise<Result> {
  try {
    keepDescriptors();
    return await open();
  } catch (error) {
    throw connectError(protocol, address, error);
  }
}

/**
 * Targets leave descriptors for links and health, as callers do.
 *
 * @throws A system error with the code `EMFILE`.
 */
function keepDescriptors(): void {
  if (!mayTakeDescriptor("caller")) throw systemError(Errno.EMFILE);
}

async function dialUdp(attempt: Attempt): Promise<Conduit> {
  const { host, port } = splitAddress(attempt.target);
  attempt.gate.beforeLookup();
  const [address] = attempt.gate.admit(await resolve(attempt, host));
  const { udpIdleTimeoutMs, udpIsSession = false } = attempt.options;
  const conduit = await opened(
    "udp",
    hostPort(address!, port),
    () =>
      DatagramConduit.open({
        address: address!,
        port,
        timers: attempt.timers,
        idleTimeoutMs: udpIdleTimeoutMs ?? TARGET_UDP_IDLE_TIMEOUT_MS,
        isSession: udpIsSession,
      }),
  );
  if (!attempt.signal.aborted) return conduit;
  conduit.discard();
  throw attempt.signal.reason;
}

function dialUnix({ target, gate, signal }: Attempt): Promise<Conduit> {
  const { address } = target;
  return opened("unix", address, async () => {
    const path = await orAborted(
      gate.admitPath(address, Deno.realPath),
      signal,
    );
    return conduitOf(await connectToPath(path, signal));
  });
}

/** Addresses of `host`; an empty host is this machine, as in Go. */
async function resolve(
  attempt: Attempt,
  host: string,
): Promise<readonly string[]> {
  const { signal, target } = attempt;
  if (signal.aborted) throw signal.reason;
  if (host === "") return ["127.0.0.1", "::1"];
  if (isIpAddress(host)) return [host];
  try {
    const looking = (attempt.options.resolver ?? systemResolver).lookup(host);
    return await orAborted(looking, signal);
  } catch (error) {
    if (error instanceof DialError && error.reason === "timeout") {
      throw lookupTimeout(target.protocol, host);
    }
    throw connectError(target.protocol, target.address, error);
  }
}
