/**
 * Callers that are nobody in particular.
 *
 * @module
 */

import { reportedIdentity } from "../../../proto/peer/peer_identity.ts";
import type { Caller } from "../../../server/policy/caller.ts";

/** Whoever may connect to a unix socket. */
export function socketCaller(path = "/run/tunnel.sock"): Caller {
  return {
    identity: { kind: "anonymous", commonName: "", fingerprint: "", names: [] },
    remoteAddress: "unix",
    localAddress: path,
  };
}

/** The holder of a certificate. */
export function certifiedCaller(
  commonName: string,
  more: {
    readonly organizations?: readonly string[];
    readonly names?: readonly string[];
  } = {},
): Caller {
  const identity = reportedIdentity({
    commonName,
    fingerprint: "f0".repeat(32),
    ...more,
  });
  return {
    identity,
    remoteAddress: "10.0.0.3:50000",
    localAddress: "10.0.0.1:8090",
  };
}
