/**
 * Connects sockets of whichever kind this machine allows: those of the C
 * library, else the platform's; and how links of ours are tuned.
 *
 * @module
 */

import { openLibc } from "../libc/libc.ts";
import type { DatagramAddress } from "../libc/socket_address.ts";
import { tuneLinkSocket } from "../libc/platform_sockets.ts";
import { tuneDescriptor } from "../libc/tcp_options.ts";
import { denoStream } from "./platform_stream.ts";
import {
  Connecting,
  connectPolledTcp,
  connectPolledUnix,
  startPolledTcp,
} from "./polled_connect.ts";
import type { Stream } from "./stream.ts";
import { hostOf, portOf } from "../../proto/peer/host_port.ts";

/** Deno opens none on Windows. */
export const HAS_UNIX_SOCKETS = Deno.build.os !== "windows";

/** @throws Where there are none: the platform's words are about its insides. */
export function wantUnixSockets(): void {
  if (HAS_UNIX_SOCKETS) return;
  throw new Error("there are no unix sockets on Windows");
}

/**
 * Begins to connect to an IP address.
 *
 * @returns A connection that is there at once, as on this machine, or how to
 *   wait for it, which has to begin in the same turn; `undefined` where the two
 *   cannot be told apart: `connectToAddress` is for all.
 * @throws A system error with its `code`.
 */
export function startConnect(
  address: DatagramAddress,
): Stream | Connecting | undefined {
  return startPolledTcp(address);
}

export { Connecting };

/**
 * Connects to a host, which had better be an address.
 *
 * @param signal Gives it up; its reason is what this rejects with.
 * @param segmentBytesMax Neither end sends larger segments, where the socket is
 *   the C library's.
 * @throws A system error with its `code`.
 */
export async function connectToAddress(
  address: DatagramAddress,
  signal: AbortSignal,
  segmentBytesMax?: number,
): Promise<Stream> {
  const polled = connectPolledTcp(
    address,
    signal,
    undefined,
    segmentBytesMax,
  );
  if (polled !== undefined) return await polled;
  // The platform refuses port 0 by throwing; the kernel's answer is this.
  if (address.port === 0) {
    throw Object.assign(new Error("connection refused"), {
      code: "ECONNREFUSED",
    });
  }
  return denoStream(await Deno.connect({ ...address, signal }));
}

/** The same with a path. */
export async function connectToPath(
  path: string,
  signal: AbortSignal,
): Promise<Stream> {
  wantUnixSockets();
  return await connectPolledUnix(path, signal) ??
    denoStream(await connectUnix(path, signal));
}

/** The platform's call takes no signal; a late connection is closed. */
function connectUnix(path: string, signal: AbortSignal): Promise<Deno.Conn> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort);
    Deno.connect({ transport: "unix", path }).then((conn) => {
      signal.removeEventListener("abort", onAbort);
      if (signal.aborted) conn.close();
      else resolve(conn);
    }, reject);
  });
}

/** @param stream Of TCP. */
export function tuneLink(stream: Stream): void {
  const { descriptor, localAddress, remoteAddress } = stream;
  if (descriptor !== undefined) tuneDescriptor(openLibc()!, descriptor);
  else tuneLinkSocket(endOf(localAddress), endOf(remoteAddress));
}

function endOf(address: string): DatagramAddress {
  return { hostname: hostOf(address), port: portOf(address) };
}
