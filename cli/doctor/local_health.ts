/**
 * What a program of this machine says on its health port: that it is ready, why
 * it is not, and what should be looked at although it is.
 *
 * @module
 */

import { failed, fine, warned } from "../../client/doctor/faults.ts";
import type { Finding } from "../../client/doctor/path_walk.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import { hostPort } from "../../proto/peer/host_port.ts";

/** A health port answers at once, or its program stands still. */
const ANSWER_MS = 1_500;

/** @param address Where it listens. */
export async function localHealth(
  { hostname, port }: { readonly hostname: string; readonly port: number },
  signal: AbortSignal,
): Promise<Finding | undefined> {
  if (port === 0) return undefined;
  const isEverywhere = hostname === "" || hostname === "0.0.0.0" ||
    hostname === "::";
  const where = hostPort(isEverywhere ? "127.0.0.1" : hostname, port);
  let text: string;
  try {
    const response = await fetch(`http://${where}/readyz?verbose`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
    });
    text = await response.text();
  } catch (error) {
    return failed(
      "TUN421",
      `the program runs, and its health port ${where} does not answer: ` +
        messageOf(error),
      "it stands still (ps -o stat: T is stopped, D waits for a disk): " +
        "continue or restart it",
    );
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
    return failed("TUN709", problems.join("; "), "see the program's log");
  }
  if (notes.length > 0) {
    return warned("TUN116", notes.join("; "), "see the program's log");
  }
  return fine(`${where} says ready`);
}
