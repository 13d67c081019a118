/**
 * Asks an HTTP proxy for a tunnel (CONNECT, RFC 9110 §9.3.6).
 *
 * @module
 */

import type { Socket } from "node:net";
import { Buffer } from "node:buffer";
import { type ResponseHead, ResponseReader } from "../http1/head.ts";
import type { Proxy } from "./proxy_environment.ts";

/**
 * Opens a tunnel to `target` over `raw`, which then speaks with `target`.
 *
 * @throws With the proxy's refusal in words, or the signal's reason.
 */
export function openTunnel(
  raw: Socket,
  target: string,
  proxy: Proxy,
  signal: AbortSignal,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const reader = new ResponseReader("it");
  // A paused socket could lose the end, so bytes are only ever listened to;
  // a server speaks TLS second, so none can follow the answer.
  const onData = (chunk: Buffer) => {
    try {
      const answer = reader.pushFinal(chunk);
      if (answer === undefined) return;
      const { head, rest } = answer;
      if (head.status >= 300) return fail(refusal(head));
      if (rest.length > 0) return fail("it sent bytes of its own");
      resolve();
    } catch (error) {
      // Whoever calls says of whom; the platform would end the process with it.
      reject(error);
    }
  };
  const fail = (problem: string) => reject(new Error(problem));
  const onError = (error: Error) => reject(error);
  const onEnd = () => fail("it closed the connection");
  const onAbort = () => reject(signal.reason);
  raw.on("data", onData);
  raw.on("error", onError);
  raw.on("end", onEnd);
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  else raw.write(request(target, proxy));
  return promise.finally(() => {
    raw.off("data", onData);
    raw.off("error", onError);
    raw.off("end", onEnd);
    signal.removeEventListener("abort", onAbort);
  });
}

function request(target: string, proxy: Proxy): string {
  const lines = [`CONNECT ${target} HTTP/1.1`, `Host: ${target}`];
  if (proxy.user !== "") {
    const pair = Buffer.from(`${proxy.user}:${proxy.password}`);
    lines.push(`Proxy-Authorization: Basic ${pair.toString("base64")}`);
  }
  return `${lines.join("\r\n")}\r\n\r\n`;
}

function refusal({ status, phrase }: ResponseHead): string {
  if (status === 407) {
    return "it wants a user and password (407): put them into HTTPS_PROXY";
  }
  return `it refused with ${status} ${phrase}`.trimEnd();
}
