/**
 * The first messages on a link of the streams carrier, and whether two ends
 * that sent them can work together.
 *
 * @module
 */

import type { Code } from "../codes/codes.ts";

/** The ALPN name of the streams carrier. */
export const STREAMS_ALPN = "tunnel/1";

/** HTTP/2's own ALPN name (RFC 9113 §3.2), and so the packets carrier's. */
export const HTTP2_ALPN = "h2";

/** The version of the link protocol that this build speaks. */
export const LINK_VERSION = 1;

/** How long either end waits for the other's hello. */
export const HELLO_DEADLINE_MS = 10_000;

/** Largest control message: a CA bundle is by far the largest thing in one. */
export const CONTROL_MESSAGE_BYTES_MAX = 1024 * 1024;

/** Thrown, or handed over, when a link cannot be made or was refused. */
export class LinkError extends Error {
  override readonly name = "LinkError";
  readonly tunnelCode: Code = "TUN403";
}

/** The agent wants no link to this server: it has all that it can use. */
export class LinkDeclinedError extends LinkError {
  override readonly tunnelCode: Code = "TUN403";
}

/** The server refuses this agent; an operator must change that. */
export class LinkRefusedError extends LinkError {
  /** @param tunnelCode Of the server's refusal, where it gave one. */
  constructor(
    message: string,
    override readonly tunnelCode: Code = "TUN320",
  ) {
    super(message);
  }
}

/**
 * Whether an end of version `ours` works with one of version `theirs`.
 *
 * Versions N and N−1 work together, whichever end is the newer one: the newer
 * end knows both versions, and the older end relies on that.
 *
 * @param whose For the sentence, such as `server`.
 * @returns Why not; `undefined` when they do.
 */
export function versionProblem(
  theirs: number,
  whose: "server" | "agent",
  ours: number = LINK_VERSION,
): string | undefined {
  if (theirs > 0 && Math.abs(theirs - ours) <= 1) return undefined;
  return `Cannot work together: the ${whose} speaks link version ${theirs}, ` +
    `this end speaks version ${ours}, and only neighbours understand each ` +
    "other; update the older one";
}
