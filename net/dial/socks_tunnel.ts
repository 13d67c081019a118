/**
 * Asks a SOCKS proxy for a tunnel (RFC 1928, and RFC 1929 for a password). The
 * proxy looks the name up.
 *
 * @module
 */

import type { Socket } from "../stream/socket.ts";
import type { Stream } from "../stream/stream.ts";
import type { ProxyServer } from "./proxy_environment.ts";
import { askProxy } from "./proxy_tunnel.ts";

/** The destination of the tunnel. */
export interface SocksTarget {
  readonly host: string;
  readonly port: number;
}

const VERSION = 5;
const NO_AUTHENTICATION = 0;
const PASSWORD = 2;
const CONNECT = 1;
const DOMAIN = 3;
/**
 * Length of an address by its type: IPv4, a name (its first byte is the
 * length), IPv6.
 */
const ADDRESS_BYTES: ReadonlyMap<number, number> = new Map([[1, 4], [4, 16]]);
/** Names, users and passwords have a length of one byte. */
const TEXT_BYTES_MAX = 255;

/** RFC 1928 §6. */
const REFUSALS: readonly string[] = [
  "",
  "general failure",
  "its rules forbid it",
  "network unreachable",
  "host unreachable",
  "connection refused",
  "TTL expired",
  "command not supported",
  "address type not supported",
];

/**
 * Opens a tunnel over `stream`, which then speaks with the target.
 *
 * @throws With the proxy's refusal in words, or the signal's reason; `stream` is
 *   closed then.
 */
export async function openSocksTunnel(
  stream: Stream,
  { host, port }: SocksTarget,
  { user, password }: ProxyServer,
  signal: AbortSignal,
): Promise<void> {
  await askProxy(stream, signal, async (socket) => {
    const method = user === "" ? NO_AUTHENTICATION : PASSWORD;
    await socket.writeAll(Uint8Array.of(VERSION, 1, method));
    const [, chosen] = await readExactly(socket, 2);
    if (chosen !== method) throw new Error(wrongMethod(method));
    if (method === PASSWORD) {
      await socket.writeAll(Uint8Array.of(1, ...text(user), ...text(password)));
      const [, status] = await readExactly(socket, 2);
      if (status !== 0) throw new Error("it refused the user and password");
    }
    const name = [DOMAIN, ...text(host), port >> 8, port & 0xff];
    await socket.writeAll(Uint8Array.of(VERSION, CONNECT, 0, ...name));
    await readAnswer(socket);
  });
}

async function readAnswer(socket: Socket): Promise<void> {
  const [version, status = 1, , type = 0] = await readExactly(socket, 4);
  if (version !== VERSION) throw new Error("it does not speak SOCKS 5");
  if (status !== 0) {
    throw new Error(`it refused: ${REFUSALS[status] ?? `code ${status}`}`);
  }
  // The address it connected from, which is not needed.
  const length = ADDRESS_BYTES.get(type) ??
    (await readExactly(socket, 1))[0]!;
  await readExactly(socket, length + 2);
}

function wrongMethod(method: number): string {
  return method === PASSWORD
    ? "it takes no user and password"
    : "it wants a user and password: put them into its address";
}

function text(value: string): number[] {
  const bytes = new TextEncoder().encode(value);
  if (bytes.length > TEXT_BYTES_MAX) {
    throw new Error(`it takes no text of more than ${TEXT_BYTES_MAX} bytes`);
  }
  return [bytes.length, ...bytes];
}

/** Not a byte more: later bytes are the target's. */
async function readExactly(
  socket: Socket,
  length: number,
): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length;) {
    const count = await socket.read(bytes.subarray(at));
    if (count === null) throw new Error("it closed the connection");
    at += count;
  }
  return bytes;
}
