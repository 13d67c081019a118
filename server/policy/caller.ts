/**
 * A caller that asks for a connection, as the socket of its frontend, or of the
 * agent port, proves it.
 *
 * @module
 */

import type { PeerCredentials } from "../../net/stream/stream.ts";
import { Wildcard } from "../../policy/wildcard.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";

/** A stream's knowledge of its peer; every `Stream` is one. */
export interface Caller {
  readonly identity: PeerIdentity;
  /** `ip:port`; of a unix socket a path, or `unix`. */
  readonly remoteAddress: string;
  /** For a unix socket its path; the socket's mode decides who may connect. */
  readonly localAddress: string;
  /** For a unix socket its process and user, if known. */
  peerCredentials?(): PeerCredentials | undefined;
  /** It came to the agent port, as this node. */
  readonly node?: string | undefined;
  /**
   * The caller came to another server, with this id. That server proved that it
   * is ours and described the caller. The dial is never forwarded again.
   */
  readonly forwardedBy?: string;
}

/** The socket that a caller without a certificate came through. */
export function socketOf({ identity, localAddress }: Caller): string {
  return identity.kind === "certificate" ? "" : localAddress;
}

/** The caller as part of a sentence. */
export function callerName(caller: Caller): string {
  const { forwardedBy } = caller;
  const name = ownName(caller);
  return forwardedBy === undefined ? name : `${name} by server ${forwardedBy}`;
}

function ownName(caller: Caller): string {
  if (caller.node !== undefined) return `node ${caller.node}`;
  return caller.identity.kind === "certificate"
    ? `CN=${caller.identity.commonName}`
    : `socket ${caller.localAddress}`;
}

/** For the audit log: public facts about a caller only. */
export function callerFacts(
  caller: Caller,
): Readonly<Record<string, string | number>> {
  const { forwardedBy } = caller;
  const facts = ownFacts(caller);
  return forwardedBy === undefined ? facts : { ...facts, forwardedBy };
}

function ownFacts(caller: Caller): Readonly<Record<string, string | number>> {
  const { kind, commonName, fingerprint } = caller.identity;
  if (caller.node !== undefined) return { node: caller.node, fingerprint };
  return kind === "certificate"
    ? { commonName, fingerprint }
    : { socket: caller.localAddress, ...caller.peerCredentials?.() };
}

/** What entries of a policy may say of a caller's certificate. */
export const CERTIFICATE_FIELDS = [
  "commonName",
  "organization",
  "subjectAltName",
] as const;

/**
 * Whether a certificate matches all patterns of an entry.
 *
 * @param patterns As written in the policy, by field.
 */
export function certificateTest(
  patterns: { readonly [F in typeof CERTIFICATE_FIELDS[number]]?: string },
): (identity: PeerIdentity) => boolean {
  const wanted = CERTIFICATE_FIELDS.flatMap((field) => {
    const text = patterns[field];
    return text === undefined ? [] : [[field, new Wildcard(text)] as const];
  });
  return ({ kind, commonName, names, certificate }) => {
    const values = {
      commonName: [commonName],
      organization: certificate?.organizations ?? [],
      subjectAltName: names,
    };
    return kind === "certificate" &&
      wanted.every(([field, pattern]) =>
        values[field].some((value) => pattern.matches(value))
      );
  };
}
