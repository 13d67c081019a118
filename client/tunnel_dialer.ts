/**
 * Makes conduits over a route: straight, through gRPC, or through CONNECT.
 *
 * @module
 */

import { dialTarget } from "../net/dial/dial.ts";
import { orAborted, withDeadline } from "../platform/time/deadline.ts";
import { systemTimers } from "../platform/time/system_timers.ts";
import { newConnectionId } from "../platform/process/connection_ids.ts";
import { DialError } from "../proto/peer/dial_error.ts";
import { abandon } from "../proto/link/dial_handler.ts";
import type { Timers } from "../proto/sync/clock.ts";
import type { Conduit } from "../proto/transfer/conduit.ts";
import type { Upstream } from "../net/channel/upstream.ts";
import {
  frontendUpstream,
  nodeUpstream,
  openFrontendStream,
} from "./frontend_stream.ts";
import { toTunnelDialError, TunnelDialError } from "./dial_error.ts";
import {
  canGoAgain,
  type DialStarter,
  saysNothing,
  type TunnelDial,
} from "./dial_starter.ts";
import { FailoverDialer, type NamedServer } from "./failover_dialer.ts";
import { GrpcDialer } from "./grpc_dialer.ts";
import {
  describeFrontend,
  describeRoute,
  type FrontendAddress,
  type FrontendProtocol,
  type TunnelRoute,
} from "./tunnel_route.ts";
import { EARLY_BYTES_MAX } from "../proto/link/link.ts";
import { messageOf } from "../platform/errors/error_code.ts";
import { dialSpan } from "../platform/tracing/tracing.ts";
import { readConnectionId } from "../proto/peer/connection_id.ts";
import { hostPort } from "../proto/peer/host_port.ts";
import { quoted } from "../proto/peer/quoted.ts";
import { conduitOf } from "../net/stream/stream_conduit.ts";
import { wishesOf } from "../proto/link/dial_wishes.ts";
import { dialConnect } from "../net/http1/connect_client.ts";

export type { TunnelDial };

/** How long a dial may take (upstream's backstop). */
export const TUNNEL_DIAL_TIMEOUT_MS = 30_000;

/** A server's own limit on a dial, unless it has another one. */
const SERVER_LIMIT_MS = 10_000;

/** Makes conduits until it is closed. */
export interface TunnelDialer {
  /**
   * Connects.
   *
   * @returns A connected conduit without a handler. Early data is delivered
   *   before later writes.
   * @throws {TunnelDialError}
   * @throws {RangeError} If there is too much early data.
   */
  dial(dial: TunnelDial): Promise<Conduit>;
  /** Ends the shared parts of dials; open conduits go on. */
  close(): void;
}

/** A dialer for `route`. Connects to the server when it is first needed. */
export function openDialer(
  route: TunnelRoute,
  timers: Timers = systemTimers,
): TunnelDialer {
  return dialerOf(createStarter(route, timers), describeRoute(route), timers);
}

/** One of several servers, and the way to it alone. */
export interface NamedUpstream {
  /** `HOST:PORT`, for people. */
  readonly name: string;
  readonly upstream: Upstream;
}

/**
 * A dialer whose every dial is a call of the first of these servers that can serve
 * it.
 *
 * @param servers At least one.
 * @param name Of the route, for errors.
 */
export function openUpstreamDialer(
  servers: readonly NamedUpstream[],
  name: string,
): TunnelDialer {
  const timers = systemTimers;
  const starters = servers.map(({ name, upstream }) => ({
    name,
    starter: new GrpcDialer(upstream, timers),
  }));
  return dialerOf(firstOf(starters, timers), name, timers);
}

function dialerOf(
  starter: DialStarter,
  name: string,
  timers: Timers,
): TunnelDialer {
  return {
    async dial(dial) {
      check(dial);
      return await dialWithin(starter, name, dial, timers);
    },
    close: () => starter.close(),
  };
}

function createStarter(route: TunnelRoute, timers: Timers): DialStarter {
  if (route.kind === "direct") return DIRECT;
  const servers = route.kind === "node"
    ? route.addresses.map((address): NamedServer => ({
      name: hostPort(address.host, address.port),
      starter: new GrpcDialer(
        nodeUpstream({ ...route, addresses: [address] }),
        timers,
      ),
    }))
    : [route.address, ...route.others ?? []].map((address): NamedServer => ({
      name: describeFrontend(address),
      starter: frontendStarter(address, route.protocol, timers),
    }));
  return firstOf(servers, timers);
}

function firstOf(servers: readonly NamedServer[], timers: Timers): DialStarter {
  return servers.length === 1
    ? servers[0]!.starter
    : new FailoverDialer(servers, timers);
}

function frontendStarter(
  address: FrontendAddress,
  protocol: FrontendProtocol,
  timers: Timers,
): DialStarter {
  return protocol === "grpc"
    ? new GrpcDialer(frontendUpstream(address, timers), timers)
    : new ConnectDialer(address, timers);
}

const DIRECT: DialStarter = {
  async start({ target, earlyData }, signal) {
    const allowUnix = target.protocol === "unix" ? [target.address] : [];
    const conduit = await dialTarget(target, { signal, allowUnix });
    // A fresh socket's buffer takes what may be early data.
    if (earlyData !== undefined) conduit.write(earlyData);
    return conduit;
  },
  close() {},
};

/**
 * Characters that would be sent unescaped, in a request line or header fields.
 */
function check({ target, node, id, earlyData }: TunnelDial): void {
  if (id !== undefined && readConnectionId(id) === undefined) {
    throw new RangeError(
      `Cannot use ${quoted(id)} as a connection's id: wanted 16 lower-case ` +
        "hexadecimal digits, the first 8 not all zero",
    );
  }
  const early = earlyData?.length ?? 0;
  if (early > EARLY_BYTES_MAX) {
    throw new RangeError(
      `Cannot send ${early} bytes of early data: ${EARLY_BYTES_MAX} are allowed`,
    );
  }
  for (const [what, text] of [["", target.address], ["node ", node ?? ""]]) {
    if (/^[\x21-\x7e]*$/.test(text!) || target.protocol === "unix") continue;
    throw new TunnelDialError(
      "endpoint",
      `Cannot dial ${what}${JSON.stringify(text)}: wanted visible ASCII only`,
    );
  }
}

/** Adds what all routes share: the deadline, cancelling, and the errors. */
async function dialWithin(
  starter: DialStarter,
  route: string,
  dial: TunnelDial,
  timers: Timers,
): Promise<Conduit> {
  const { timeoutMs = TUNNEL_DIAL_TIMEOUT_MS } = dial;
  const { signal, target, node, id = newConnectionId() } = dial;
  const facts = { id, target, node };
  const span = dialSpan("tunnel dial", facts, dial.trace, "client");
  const trace = span?.context ?? dial.trace;
  const late = () => {
    const words = `no answer within ${timeoutMs / 1000} s (${route})`;
    if (!starter.isUnheard?.(timeoutMs) && isHeard?.() !== false) {
      return new TunnelDialError("timeout", words);
    }
    const message = `the server says nothing: ${words}; run ` +
      "`tunnel doctor server` on its machine";
    const silence = new DialError("timeout", message, { code: "TUN421" });
    return toTunnelDialError(silence);
  };
  const givenUp = () => new TunnelDialError("context", "the caller gave up");
  // Early enough for an answer: is it the server that is silent, or its target?
  let isHeard: (() => boolean) | undefined;
  const asking = timers.after(timeoutMs / 2, () => {
    isHeard = starter.suspect?.("for words");
  });
  try {
    const conduit = await withDeadline(
      { timers, timeoutMs, late, signal, givenUp },
      (signal) =>
        orAborted(
          starter.start({ ...dial, id, trace }, signal),
          signal,
          // It may still succeed, and its result would have no owner.
          (conduit) => abandon(conduit, "the caller gave up"),
        ),
    );
    span?.end();
    return conduit;
  } catch (error) {
    const told = inClientWords(error, route);
    if (told instanceof TunnelDialError) told.connectionId = id;
    span?.end(messageOf(told));
    throw told;
  } finally {
    asking.cancel();
  }
}

function inClientWords(error: unknown, route: string): unknown {
  if (error instanceof DialError) return toTunnelDialError(error);
  if (error instanceof TunnelDialError || !(error instanceof Error)) {
    return error;
  }
  // Errors in our own code are passed on unchanged.
  if (error instanceof TypeError || error instanceof RangeError) return error;
  return new TunnelDialError(
    "streamsetup",
    `Cannot reach the server (${route}): ${error.message}`,
    error,
  );
}

// Dials through a server's HTTP CONNECT frontend, a connection each.

class ConnectDialer implements DialStarter {
  constructor(
    private readonly address: FrontendAddress,
    private readonly timers: Timers,
  ) {}

  async start(
    dial: TunnelDial,
    signal: AbortSignal,
    onSending?: () => void,
  ): Promise<Conduit> {
    const { target, id, trace, earlyData } = dial;
    if (target.protocol !== "tcp") {
      throw new DialError(
        "endpoint",
        `Cannot dial ${target.protocol} through CONNECT, which carries tcp ` +
          "only: give --proxy-mode=grpc and a server whose frontend speaks it",
      );
    }
    // A connected socket proves nothing about the server, but a handshake does:
    // bytes that may be sent only once then wait for an answer.
    const isLater = onSending !== undefined && this.address.kind === "unix";
    const until = { timers: this.timers, signal };
    const ask = async () => {
      const stream = await openFrontendStream(this.address, "http1", until);
      if (signal.aborted) {
        stream.close();
        signal.throwIfAborted();
      }
      if (!isLater) onSending?.();
      const { promise, resolve, reject } = Promise.withResolvers<Conduit>();
      const outcome = { onConnected: resolve, onFailed: reject };
      const socket = conduitOf(stream);
      const pending = dialConnect(socket, target.address, outcome, {
        ...wishesOf(dial),
        id,
        trace,
        earlyData: isLater ? undefined : earlyData,
      });
      signal.addEventListener("abort", () => pending.cancel());
      return await promise;
    };
    const conduit = await ask().catch((error) => {
      // The server made room, or handed its socket over.
      if (!canGoAgain(error, !saysNothing(dial))) throw error;
      return ask();
    });
    if (!isLater) return conduit;
    try {
      onSending();
    } catch (error) {
      abandon(conduit, "another server was quicker");
      throw error;
    }
    // A fresh socket takes all of it.
    if (earlyData !== undefined) conduit.write(earlyData);
    return conduit;
  }

  /**
   * It cannot be asked. But after its own limit a server reports an agent or a
   * target that is silent (504); before, it may be either of them.
   */
  isUnheard(waitedMs: number): boolean {
    return waitedMs > SERVER_LIMIT_MS;
  }

  close(): void {}
}
