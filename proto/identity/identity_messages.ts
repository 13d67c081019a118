/**
 * The messages of `/tunnel.v1.Identity`. The text is that of `identity.proto`; a
 * test keeps the two equal.
 *
 * @module
 */

import { type MessageCodec, parseProto } from "../grpc/protos.ts";

/** Paths of the methods, on the agent port. */
export const CHALLENGE_PATH = "/tunnel.v1.Identity/Challenge";
export const JOIN_PATH = "/tunnel.v1.Identity/Join";
export const RENEW_PATH = "/tunnel.v1.Identity/Renew";
export const AUTHORITIES_PATH = "/tunnel.v1.Identity/Authorities";

/**
 * The longest request and answer. A certificate signing request has less than
 * 1 KiB, a bundle of two authorities 2 KiB; who is not known yet gets no more.
 */
export const IDENTITY_MESSAGE_BYTES_MAX = 65_536;

export interface ChallengeAnswer {
  readonly nonce: Uint8Array;
  /** Milliseconds until the nonce is refused. */
  readonly validMs: number;
}

export interface JoinRequest {
  /** See `join_token.ts`. */
  readonly token: string;
  /** See `node_name.ts`. */
  readonly node: string;
  /** PKCS #10, DER. */
  readonly csr: Uint8Array;
  /** Such as `tunnel/0.1.0`. */
  readonly software: string;
}

export interface RenewRequest {
  readonly node: string;
  /** PKCS #10, DER, of the key that joined. */
  readonly csr: Uint8Array;
  /** Empty when the connection shows the node's valid certificate. */
  readonly nonce: Uint8Array;
  /** See `renewal_proof.ts`; empty like `nonce`. */
  readonly proof: Uint8Array;
}

/** What a node trusts, for the server's record, when it asks whom to trust. */
export interface AuthoritiesRequest {
  /** Ids of authorities: see `authority_ids.ts`. */
  readonly trusted: readonly string[];
}

export interface AuthoritiesAnswer {
  /** PEM; the first one issues now. */
  readonly authorities: Uint8Array;
}

/** A node's certificate, and what it needs besides. */
export interface Enrolment {
  /** The name in the certificate. */
  readonly node: string;
  /** PEM, leaf first. */
  readonly certificate: Uint8Array;
  /** PEM; the first one issues now. */
  readonly authorities: Uint8Array;
  /** URL query, see `proto/peer/identifiers.ts`. */
  readonly identifiers: string;
}

/** A person has to approve the node first. */
export interface Pending {
  readonly reason: string;
  /** Milliseconds after which to ask again. */
  readonly retryAfterMs: number;
}

/** What Join and Renew answer: exactly one of the two. */
export type EnrolmentAnswer =
  | { readonly enrolment: Enrolment; readonly pending?: undefined }
  | { readonly pending: Pending; readonly enrolment?: undefined };

/** The text of `identity.proto`. */
export const IDENTITY_PROTO =
  `// How a node gets an identity and keeps it (SPEC.md, "Identity").
//
// An agent makes these calls to the server's agent port as ordinary gRPC (ALPN
// h2). Challenge, Join and Renew with a proof need no client certificate.
// Embedded in proto/identity/identity_messages.ts; a test keeps the two equal.

syntax = "proto3";

package tunnel.v1;

service Identity {
  // A nonce for a renewal without a valid certificate.
  rpc Challenge(ChallengeRequest) returns (ChallengeAnswer);
  // A certificate for a token. Safe to repeat with the same token and key: an
  // answer that was lost costs no second use of the token.
  rpc Join(JoinRequest) returns (EnrolmentAnswer);
  // A new certificate for the key that joined, proven by the certificate of
  // the connection or, without one or after its end, by a signature.
  rpc Renew(RenewRequest) returns (EnrolmentAnswer);
  // Whom to trust, for nodes that have no link over which they are told. The
  // answer is the same for everybody; only a node's certificate makes the
  // request count.
  rpc Authorities(AuthoritiesRequest) returns (AuthoritiesAnswer);
}

message ChallengeRequest {}

message ChallengeAnswer {
  // Good for the caller's address and for valid_ms.
  bytes nonce = 1;
  uint32 valid_ms = 2;
}

message JoinRequest {
  // tnl1.<CA>.<id>.<secret>
  string token = 1;
  // Whom the caller wants to be.
  string node = 2;
  // PKCS #10, DER. Only its public key and its signature count.
  bytes csr = 3;
  // Such as tunnel/0.1.0; for the log.
  string software = 4;
}

message RenewRequest {
  string node = 1;
  // PKCS #10, DER, of the key that joined.
  bytes csr = 2;
  // Both empty when the connection shows the node's valid certificate.
  bytes nonce = 3;
  // Signature of that key, ECDSA with SHA-256, r and s of 32 bytes each, over
  // "tunnel renew\\n", the nonce and SHA-256 of csr.
  bytes proof = 4;
}

message AuthoritiesRequest {
  // Whom the node trusts now: for each the first 16 hex digits of SHA-256 over
  // the authority's public key (SubjectPublicKeyInfo).
  repeated string trusted = 1;
}

message AuthoritiesAnswer {
  // As in Enrolment.
  bytes authorities = 1;
}

message EnrolmentAnswer {
  oneof outcome {
    Enrolment enrolment = 1;
    Pending pending = 2;
  }
}

message Enrolment {
  // The node's name as the certificate says it.
  string node = 1;
  // PEM: the leaf, then what stands between it and an authority of the bundle.
  bytes certificate = 2;
  // PEM: whom to trust as the server's authority. The first one issues now: a
  // node whose certificate is of another one renews soon.
  bytes authorities = 3;
  // URL query of what the node may call itself, as in agentidentifiers.
  string identifiers = 4;
}

// A person has to approve the node first: \`tunnel node approve\`.
message Pending {
  string reason = 1;
  // Repeat the call after this.
  uint32 retry_after_ms = 2;
}
`;

const lookup = parseProto(IDENTITY_PROTO);

export const challengeRequest: MessageCodec<Record<never, never>> = lookup(
  "tunnel.v1.ChallengeRequest",
);
export const challengeAnswer: MessageCodec<ChallengeAnswer> = lookup(
  "tunnel.v1.ChallengeAnswer",
);
export const joinRequest: MessageCodec<JoinRequest> = lookup(
  "tunnel.v1.JoinRequest",
);
export const renewRequest: MessageCodec<RenewRequest> = lookup(
  "tunnel.v1.RenewRequest",
);
export const authoritiesRequest: MessageCodec<AuthoritiesRequest> = lookup(
  "tunnel.v1.AuthoritiesRequest",
);
export const authoritiesAnswer: MessageCodec<AuthoritiesAnswer> = lookup(
  "tunnel.v1.AuthoritiesAnswer",
);
/** An answer of neither kind (from a newer server) has neither field. */
export const enrolmentAnswer: MessageCodec<Partial<EnrolmentAnswer>> = lookup(
  "tunnel.v1.EnrolmentAnswer",
);
