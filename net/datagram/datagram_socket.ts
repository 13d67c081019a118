/**
 * A UDP socket that costs little per datagram.
 *
 * `Deno.listenDatagram` reads into one buffer of ours, but is there only under
 * `--unstable-net`, which our launchers give and a program that embeds us may
 * not. Where the C library can be asked, a socket is read and written many
 * datagrams at once, and serves without the platform's.
 *
 * @module
 */

import {
  connectedSockets,
  DenoDatagramSocket,
  platformListen,
} from "./deno_datagram_socket.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import { type LibC, openLibc } from "../libc/libc.ts";
import { PolledDatagramSocket } from "./polled_datagram_socket.ts";
import { keyOfAddress } from "../bind/socket_key.ts";
import { socketStore, type WaitingSocket } from "../bind/socket_store.ts";
import { sharedPoller } from "../poll/poller.ts";
import { type DatagramAddress, isWildcard } from "../libc/socket_address.ts";

export type { DatagramAddress } from "../libc/socket_address.ts";

/** What the owner of a socket hears. */
export interface DatagramEvents {
  /**
   * @param bytes A view that is valid only during the call.
   * @param local The address of this machine that it came to, for answers; only
   *   of sockets for all addresses (`isServer`).
   */
  onDatagram(
    bytes: Uint8Array,
    hostname: string,
    port: number,
    local?: string,
  ): void;
  /** The socket can no longer receive. */
  onError(error: Error): void;
}

/** How a socket is to be, unless it is for whoever comes. */
export interface DatagramSocketWish {
  /**
   * The only one that it is for: others are not heard, and any error ends it,
   * a refusal (ICMP) too, which is told when it comes. Only where the C library
   * can be asked, so whoever owns the socket compares senders all the same.
   */
  readonly peer?: DatagramAddress;
  /**
   * Whoever comes is to be answered from the address that was asked, also where
   * the socket has all of the machine's. Only where the C library can be asked.
   */
  readonly isServer?: boolean;
  /** What the kernel is asked to hold, each way. */
  readonly kernelBytes?: number;
}

/** An open socket. */
export interface DatagramSocket {
  /** As bound. */
  readonly address: DatagramAddress;
  /** Whether each datagram comes with the address that was asked. */
  readonly tellsLocal?: boolean;
  /** Sets who hears the events; called once. */
  listen(events: DatagramEvents): void;
  /**
   * Sends one datagram, which is copied. One that cannot be sent is lost, as UDP
   * loses them anywhere else.
   */
  send(bytes: Uint8Array, to: DatagramAddress): void;
  /** Nothing is heard any more. @param closed Called when the port is free. */
  close(closed?: () => void): void;
  /**
   * The same, and leaves the socket open for who binds its address next.
   *
   * @returns What it is in the store by; `undefined`: it is closed. Absent: that
   *   cannot be.
   */
  leave?(): string | undefined;
}

/** Who sent a datagram and to which address; for answers. */
export function senderOf(
  hostname: string,
  port: number,
  local: string | undefined,
): DatagramAddress {
  return local === undefined ? { hostname, port } : { hostname, port, local };
}

/**
 * What tells senders apart: one who asks two addresses of this machine is two,
 * since each answer has to leave from the one that was asked.
 */
export function senderKey(
  hostname: string,
  port: number,
  local: string | undefined,
): string {
  const remote = hostPort(hostname, port);
  return local === undefined ? remote : `${remote} ${local}`;
}

/**
 * So many sockets for one peer each are the platform's: it answers faster, and
 * takes 15 KiB for each. Those beyond are waited for together.
 */
export const PLATFORM_SESSIONS_MAX = 256;

/**
 * Binds a socket.
 *
 * @param at Port 0: any free one.
 * @throws A system error, such as one with code `EADDRINUSE`.
 */
export function openDatagramSocket(
  at: DatagramAddress,
  wish: DatagramSocketWish = {},
): Promise<DatagramSocket> {
  const { peer, kernelBytes } = wish;
  if (peer === undefined) {
    const wanted = { ...at, hostname: at.hostname || "0.0.0.0" };
    const waiting = socketStore()?.take(keyOfAddress("udp", wanted));
    if (waiting !== undefined) return openWaiting(openLibc()!, waiting);
  }
  const isForAll = wish.isServer && isWildcard(at.hostname);
  if (isForAll && sharedPoller() !== undefined) {
    return bindPolled(openLibc()!, at);
  }
  const isOneOfMany = peer !== undefined && sharedPoller() !== undefined &&
    connectedSockets() >= PLATFORM_SESSIONS_MAX;
  if (isOneOfMany) return openPolled(openLibc()!, peer, kernelBytes);
  const listen = platformListen();
  if (listen !== undefined) return DenoDatagramSocket.open(at, listen, wish);
  const poller = sharedPoller();
  if (poller === undefined) return Promise.reject(noDatagrams());
  return peer === undefined
    ? bindPolled(openLibc()!, at)
    : openPolled(openLibc()!, peer, kernelBytes);
}

/** Whether {@linkcode openDatagramSocket} can open any. */
export function hasDatagrams(): boolean {
  return platformListen() !== undefined || sharedPoller() !== undefined;
}

function noDatagrams(): Error {
  return Object.assign(
    new Error("UDP needs --unstable-net or --allow-ffi"),
    { code: "ENOTSUP" },
  );
}

// deno-lint-ignore require-await -- what it throws is to be a rejection
async function bindPolled(
  library: LibC,
  at: DatagramAddress,
): Promise<DatagramSocket> {
  return PolledDatagramSocket.bind(library, at);
}

// deno-lint-ignore require-await -- what it throws is to be a rejection
async function openWaiting(
  library: LibC,
  waiting: WaitingSocket,
): Promise<DatagramSocket> {
  return PolledDatagramSocket.listenWith(library, waiting);
}

// deno-lint-ignore require-await -- what it throws is to be a rejection
async function openPolled(
  library: LibC,
  peer: DatagramAddress,
  kernelBytes: number | undefined,
): Promise<DatagramSocket> {
  return PolledDatagramSocket.open(library, peer, kernelBytes);
}
