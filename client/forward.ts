/**
 * A local port whose every caller gets a connection through the tunnel.
 *
 * @module
 */

import {
  type DatagramListener,
  listenDatagrams,
} from "../host/sockets/datagram_listener.ts";
import { denoSocket } from "../host/sockets/deno_socket.ts";
import { firstOctets } from "../host/sockets/first_octets.ts";
import { SocketConduit } from "../host/sockets/socket_conduit.ts";
import { systemTimers } from "../host/system_timers.ts";
import { transfer } from "../proto/transfer/transfer.ts";
import { TunnelDialError } from "./dial_error.ts";
import type { RoadDialer } from "./road_dialer.ts";

/**
 * How long a caller may take to speak first. What it says by then travels with
 * the dial and saves a round trip; a target that speaks first waits so long.
 */
export const EARLY_WAIT_MS = 3;

/** A UDP caller that is silent for so long is gone. */
export const UDP_IDLE_TIMEOUT_MS = 60_000;

/** Between two attempts to accept when the process has no descriptors left. */
const ACCEPT_PAUSE_MS = 100;

/** What to forward. */
export interface ForwardOptions {
  /** An IP address or name. */
  readonly hostname: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** `host:port`, IPv6 in brackets. */
  readonly address: string;
  readonly protocol: "tcp" | "udp";
  /** The `host` identifier of the only node wanted. */
  readonly node?: string;
  /** Limit on each dial, in milliseconds. */
  readonly timeoutMs?: number;
  readonly dialer: RoadDialer;
  /** A caller whose dial failed; its connection was reset. */
  readonly onRefused: (error: TunnelDialError, caller: string) => void;
}

/** A port that is forwarded. */
export interface Forward {
  /** `ip:port`, as bound. */
  readonly listening: string;
  /** No new callers. Those that are connected go on. */
  close(): void;
}

/**
 * Opens the port.
 *
 * @throws A system error, such as `Deno.errors.AddrInUse`.
 */
export async function forward(options: ForwardOptions): Promise<Forward> {
  return options.protocol === "udp"
    ? asForward(await forwardDatagrams(options))
    : forwardConnections(options);
}

function forwardConnections(options: ForwardOptions): Forward {
  const { hostname, port } = options;
  const listener = Deno.listen({ hostname, port });
  void acceptAll(listener, options);
  const { addr } = listener;
  const host = addr.hostname.includes(":")
    ? `[${addr.hostname}]`
    : addr.hostname;
  return {
    listening: `${host}:${addr.port}`,
    close: () => listener.close(),
  };
}

async function acceptAll(
  listener: Deno.TcpListener,
  options: ForwardOptions,
): Promise<void> {
  for (;;) {
    let conn: Deno.TcpConn;
    try {
      conn = await listener.accept();
    } catch (error) {
      // `close` was called.
      if (error instanceof Deno.errors.BadResource) return;
      if (error instanceof Deno.errors.Interrupted) return;
      // A caller that went before it was accepted, or no descriptor left: the
      // next one may do better, but not at once.
      await new Promise<void>((resolve) =>
        systemTimers.after(ACCEPT_PAUSE_MS, resolve)
      );
      continue;
    }
    void serveConnection(conn, options);
  }
}

async function serveConnection(
  conn: Deno.TcpConn,
  options: ForwardOptions,
): Promise<void> {
  const accepted = denoSocket(conn);
  try {
    const { early, socket } = await firstOctets(
      accepted,
      EARLY_WAIT_MS,
      systemTimers,
    );
    const far = await options.dialer.dial({
      target: { protocol: "tcp", address: options.address },
      ...dialDetails(options),
      ...(early.length === 0 ? {} : { earlyData: early }),
    });
    await transfer(new SocketConduit(socket), far);
  } catch (error) {
    accepted.reset();
    reportRefusal(error, accepted.remoteAddress, options);
  }
}

function forwardDatagrams(options: ForwardOptions): Promise<DatagramListener> {
  return listenDatagrams({
    hostname: options.hostname,
    port: options.port,
    timers: systemTimers,
    idleTimeoutMs: UDP_IDLE_TIMEOUT_MS,
    async onFlow(flow, caller) {
      try {
        const far = await options.dialer.dial({
          target: { protocol: "udp", address: options.address },
          ...dialDetails(options),
        });
        await transfer(flow, far);
      } catch (error) {
        flow.reset("refused");
        reportRefusal(error, caller, options);
      }
    },
  });
}

function dialDetails(
  { node, timeoutMs }: ForwardOptions,
): { node?: string; timeoutMs?: number } {
  return {
    ...(node === undefined ? {} : { node }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}

function reportRefusal(
  error: unknown,
  caller: string,
  options: ForwardOptions,
): void {
  if (error instanceof TunnelDialError) options.onRefused(error, caller);
  // A caller that was gone before it said anything is nobody's business;
  // anything else is a bug and must not be swallowed.
  else if (error instanceof TypeError) throw error;
}

function asForward({ address, close }: DatagramListener): Forward {
  return { listening: address, close };
}
