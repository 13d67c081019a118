/**
 * Asks an HTTP proxy for a tunnel (CONNECT, RFC 9110 §9.3.6).
 *
 * @module
 */

import type { Socket } from "node:net";
import { Buffer } from "node:buffer";
import type { Proxy } from "./proxy_environment.ts";

/** A proxy's answer is a line and a few headers; more is an attack or no proxy. */
export const ANSWER_BYTES_MAX = 16 * 1024;

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
  let answer = Buffer.alloc(0);
  // A paused socket could lose the end, so bytes are only ever listened to;
  // a server speaks TLS second, so none can follow the answer.
  const onData = (chunk: Buffer) => {
    answer = Buffer.concat([answer, chunk]);
    const end = answer.indexOf("\r\n\r\n");
    if (end < 0) {
      if (answer.length > ANSWER_BYTES_MAX) fail("its answer is too long");
      return;
    }
    const [line = ""] = answer.toString("latin1").split("\r\n");
    if (!/^HTTP\/1\.[01] 2[0-9][0-9]\b/.test(line)) {
      return fail(refusal(line));
    }
    if (answer.length > end + 4) return fail("it sent bytes of its own");
    resolve();
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

function refusal(line: string): string {
  const status = /^HTTP\/1\.[01] ([0-9]{3}) ?(.*)$/.exec(line);
  if (status === null) return "it does not answer as an HTTP proxy";
  if (status[1] === "407") {
    return "it wants a user and password (407): put them into HTTPS_PROXY";
  }
  return `it refused with ${status[1]} ${status[2]}`.trimEnd();
}
