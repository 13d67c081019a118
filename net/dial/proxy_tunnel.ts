/**
 * Asks an HTTP proxy for a tunnel (CONNECT, RFC 9110 §9.3.6).
 *
 * @module
 */

import { readAnswerHead, type ResponseHead } from "../http1/head.ts";
import { Socket } from "../stream/socket.ts";
import type { Stream } from "../stream/stream.ts";
import type { ProxyServer } from "./proxy_environment.ts";

/**
 * Opens a tunnel to `target` over `stream`, which then speaks with `target`.
 *
 * @throws With the proxy's refusal in words, or the signal's reason; `stream` is
 *   closed then.
 */
export async function openTunnel(
  stream: Stream,
  target: string,
  proxy: ProxyServer,
  signal: AbortSignal,
): Promise<void> {
  await askProxy(stream, signal, async (socket) => {
    await socket.writeAll(requestOf(target, proxy));
    await readAnswer(socket);
  });
}

/**
 * Asks a proxy for a tunnel over `stream`, whatever the proxy's protocol.
 *
 * @throws What `ask` throws, or the signal's reason; `stream` is closed then.
 */
export async function askProxy(
  stream: Stream,
  signal: AbortSignal,
  ask: (socket: Socket) => Promise<void>,
): Promise<void> {
  const socket = new Socket(stream);
  const onAbort = () => socket.close();
  signal.addEventListener("abort", onAbort);
  try {
    signal.throwIfAborted();
    await ask(socket);
  } catch (error) {
    socket.close();
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

async function readAnswer(socket: Socket): Promise<void> {
  const head = await readAnswerHead(socket, "it");
  if (head === undefined) throw new Error("it closed the connection");
  if (head.status >= 300) throw new Error(refusal(head));
  // A server speaks TLS second, so none can follow the answer.
  if (socket.bytes.length > 0) throw new Error("it sent bytes of its own");
}

function requestOf(target: string, proxy: ProxyServer): Uint8Array {
  const lines = [`CONNECT ${target} HTTP/1.1`, `Host: ${target}`];
  if (proxy.user !== "") {
    const pair = new TextEncoder().encode(`${proxy.user}:${proxy.password}`);
    lines.push(`Proxy-Authorization: Basic ${pair.toBase64()}`);
  }
  return new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\n`);
}

function refusal({ status, phrase }: ResponseHead): string {
  if (status === 407) {
    return "it wants a user and password (407): put them into HTTPS_PROXY";
  }
  return `it refused with ${status} ${phrase}`.trimEnd();
}
