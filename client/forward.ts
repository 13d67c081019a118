/**
 * A local port whose every caller gets a connection through the tunnel.
 *
 * @module
 */

import {
  reportInternalError,
  unawaited,
} from "../platform/errors/internal_errors.ts";
import { listenTcp } from "../net/listen/listeners.ts";
import { conduitOf } from "../net/stream/stream_conduit.ts";
import { EARLY_WAIT_MS, firstBytes } from "../net/stream/first_bytes.ts";
import { Socket } from "../net/stream/socket.ts";
import type { Stream } from "../net/stream/stream.ts";
import { systemTimers } from "../platform/time/system_timers.ts";
import type { Timers } from "../proto/sync/clock.ts";
import { transfer } from "../proto/transfer/transfer.ts";
import { TunnelDialError } from "./dial_error.ts";
import type { TunnelDial, TunnelDialer } from "./tunnel_dialer.ts";
import { listenError } from "../net/bind/listen_error.ts";
import {
  type DatagramFlow,
  listenDatagrams,
} from "../net/datagram/datagram_listener.ts";
import { hostPort } from "../proto/peer/host_port.ts";
import { EARLY_BYTES_MAX } from "../proto/link/link.ts";

/** What to forward. */
export interface ForwardOptions {
  /** An IP address or name; empty means every address of the machine. */
  readonly hostname: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** `host:port`, IPv6 in brackets. */
  readonly address: string;
  /** What callers speak, and what the target is spoken to in. */
  readonly protocol: "tcp" | "udp";
  /** The `host` identifier of the only node wanted. */
  readonly node?: string | undefined;
  /** Without a node: only if there is no more than one, see `TunnelDial`. */
  readonly oneAgent?: boolean;
  /** Limit on each dial, in milliseconds. */
  readonly timeoutMs?: number;
  /** `false`: what a caller says first waits for its connection. */
  readonly earlyData?: boolean;
  /** What makes the connections; stays open when the port is closed. */
  readonly dialer: TunnelDialer;
  /** A caller whose dial failed; its connection was reset. */
  readonly onRefused: (error: TunnelDialError, caller: string) => void;
  /** Trouble with the port, one line per burst; it stays open. */
  readonly onProblem: (line: string) => void;
  /** For tests; the system's unless given. */
  readonly timers?: Timers;
}

/** A port that is forwarded. */
export interface Forward {
  /** `ip:port`, as bound. */
  readonly listening: string;
  /**
   * Accepts no new callers. Connected ones go on, except over UDP, which has no
   * end to wait for.
   *
   * @returns When the last of them is done.
   */
  close(): Promise<void>;
}

/**
 * Opens the port.
 *
 * @throws {ListenError}
 */
export async function forward(options: ForwardOptions): Promise<Forward> {
  return options.protocol === "udp"
    ? await forwardDatagrams(options)
    : new ConnectionForward(options);
}

class ConnectionForward implements Forward {
  readonly listening: string;
  readonly #listener: { close(): void };
  readonly #drained = Promise.withResolvers<void>();
  #callers = 0;
  #isClosed = false;

  constructor(private readonly options: ForwardOptions) {
    const { hostname: host, port, onProblem } = options;
    const listener = listenTcp({ hostname: host, port }, {
      onConnection: (conn) =>
        unawaited("socket", this.#accept(conn), () => conn.close()),
      onProblem,
    });
    this.#listener = listener;
    this.listening = listener.address;
  }

  close(): Promise<void> {
    if (!this.#isClosed) this.#listener.close();
    this.#isClosed = true;
    this.#settle();
    return this.#drained.promise;
  }

  async #accept(accepted: Stream): Promise<void> {
    this.#callers++;
    await this.#serve(accepted).finally(() => {
      this.#callers--;
      this.#settle();
    });
  }

  #settle(): void {
    if (this.#isClosed && this.#callers === 0) this.#drained.resolve();
  }

  async #serve(accepted: Stream): Promise<void> {
    const { timers = systemTimers, earlyData = true } = this.options;
    const socket = new Socket(accepted);
    let early = new Uint8Array();
    try {
      if (earlyData) early = await firstBytes(socket, EARLY_WAIT_MS, timers);
    } catch {
      // A caller that left before its first byte needs no report.
      return accepted.close();
    }
    try {
      const far = await this.options.dialer.dial(
        dialOf(this.options, early.length === 0 ? undefined : early),
      );
      socket.drop(early.length);
      await transfer(conduitOf(socket.handOver()), far);
    } catch (error) {
      accepted.reset();
      refused(error, accepted.remoteAddress, this.options);
    }
  }
}

function refused(
  error: unknown,
  caller: string,
  { onRefused }: ForwardOptions,
): void {
  if (error instanceof TunnelDialError) onRefused(error, caller);
  else reportInternalError("dial", error);
}

/** The dial for a caller that has sent `early`. */
function dialOf(
  { protocol, address, node, oneAgent, timeoutMs }: ForwardOptions,
  early: Uint8Array | undefined,
): TunnelDial {
  const target = { protocol, address };
  return { target, node, oneAgent, timeoutMs, earlyData: early };
}

// A local UDP port whose every caller gets a flow through the tunnel.

/** A UDP caller counts as gone after this silence. */
export const FORWARDED_UDP_IDLE_TIMEOUT_MS = 60_000;

/**
 * How long the datagrams of a caller are dropped after its dial failed: UDP
 * cannot tell a caller to stop.
 */
export const FORWARDED_REFUSED_PAUSE_MS = 1_000;

/**
 * Opens the port. What a caller says first travels with the dial.
 *
 * @throws {ListenError}
 */
async function forwardDatagrams(
  options: ForwardOptions,
): Promise<Forward> {
  const { hostname, port } = options;
  const timers = options.timers ?? systemTimers;
  const listener = await listenDatagrams({
    hostname,
    port,
    timers,
    idleTimeoutMs: FORWARDED_UDP_IDLE_TIMEOUT_MS,
    onProblem: options.onProblem,
    async onFlow(flow, caller) {
      try {
        await serve(flow, options);
      } catch (error) {
        timers.after(FORWARDED_REFUSED_PAUSE_MS, () => flow.reset("refused"));
        refused(error, caller, options);
      }
    },
  }).catch((error) => {
    throw listenError(hostPort(hostname, port), error);
  });
  return {
    listening: listener.address,
    close() {
      listener.close();
      return Promise.resolve();
    },
  };
}

async function serve(
  flow: DatagramFlow,
  options: ForwardOptions,
): Promise<void> {
  const early = flow.takeFirst(EARLY_BYTES_MAX);
  const far = await options.dialer.dial(dialOf(options, early));
  await transfer(flow, far);
}
