/**
 * What a program of this machine says on its health port: that it is ready, why
 * it is not, and what should be looked at although it is.
 *
 * @module
 */

import { failed, fine, warned } from "./faults.ts";
import type { Finding } from "./path_walk.ts";
import { HttpConnection } from "../../../net/channel/http_connection.ts";
import { connectToHost } from "../../../net/dial/connect_host.ts";
import { headBytes } from "../../../net/http1/head.ts";
import { codeOf, messageOf } from "../../../platform/errors/error_code.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import { clipped } from "../../../proto/peer/quoted.ts";

/** A health port answers at once, or its program stands still. */
const ANSWER_MS = 1_500;

/** Of others' words. */
const WORDS_LENGTH_MAX = 200;

/** @param address Where it listens. */
export async function localHealth(
  { hostname, port }: { readonly hostname: string; readonly port: number },
  signal: AbortSignal,
): Promise<Finding | undefined> {
  if (port === 0) return undefined;
  const isEverywhere = hostname === "" || hostname === "0.0.0.0" ||
    hostname === "::";
  const host = isEverywhere ? "127.0.0.1" : hostname;
  const where = hostPort(host, port);
  let text: string;
  try {
    text = await readiness(host, port, signal);
  } catch (error) {
    return unanswered(where, error);
  }
  const problems = [...text.matchAll(/^\[-\](.+)$/gm)].map(([, line]) => line!);
  const notes = [...text.matchAll(/^\[!\](.+)$/gm)].map(([, line]) => line!);
  const noAgent = problems.find((line) => line.startsWith("agent-connected"));
  if (noAgent !== undefined && problems.length === 1) {
    return warned(
      "TUN501",
      "the server runs, and no agent is linked to it",
      "run `tunnel doctor agent` on a node, or let one join: tunnel token " +
        "create",
    );
  }
  if (problems.length > 0) {
    return failed("TUN119", problems.join("; "), "see the program's log");
  }
  if (notes.length > 0) {
    return warned("TUN116", notes.join("; "), "see the program's log");
  }
  return fine(`${where} says ready`);
}

/** Over a socket of ours: the platform's `fetch` would ask a proxy for it. */
async function readiness(
  host: string,
  port: number,
  until: AbortSignal,
): Promise<string> {
  const signal = AbortSignal.any([until, AbortSignal.timeout(ANSWER_MS)]);
  const stream = await connectToHost(host, port, {
    timers: systemTimers,
    signal,
  });
  const connection = new HttpConnection(stream, (idle) => idle.close());
  const bytes = headBytes([
    "GET /readyz?verbose HTTP/1.1",
    `host: ${hostPort(host, port)}`,
  ]);
  const { body } = await connection.ask({ method: "GET", bytes, signal });
  return await new Response(body).text();
}

function unanswered(where: string, error: unknown): Finding {
  if (codeOf(error) === "ECONNREFUSED") {
    return failed(
      "TUN401",
      `the program runs, and nobody listens on its health port ${where}`,
      "name the one that it was started with: --health-port",
    );
  }
  const isLate = error instanceof DOMException;
  return failed(
    "TUN421",
    `the program runs, and its health port ${where} does not answer` +
      (isLate
        ? ` within ${ANSWER_MS / 1_000} s`
        : `: ${clipped(messageOf(error), WORDS_LENGTH_MAX)}`),
    "it stands still (ps -o stat: T is stopped, D waits for a disk): " +
      "continue or restart it",
  );
}
