/**
 * Callers that are nobody in particular.
 *
 * @module
 */

import type { PeerCertificate } from "../../../proto/peer/peer_identity.ts";
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
  const certificate: PeerCertificate = {
    organizations: more.organizations ?? [],
    publicKeySha256: "",
    serialNumber: "",
    der: new Uint8Array(0),
    notAfterMs: Infinity,
  };
  return {
    identity: {
      kind: "certificate",
      commonName,
      fingerprint: "f0".repeat(32),
      names: more.names ?? [],
      certificate,
    },
    remoteAddress: "10.0.0.3:50000",
    localAddress: "10.0.0.1:8090",
  };
}
