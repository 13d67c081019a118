/**
 * The calls of `/tunnel.v1.Identity` on the agent port: a token becomes a
 * certificate, and a certificate (or a proof of its key) the next one.
 *
 * Nothing is decided from what a caller merely claims: tokens are compared with
 * hashes, keys with signatures, names with the records of nodes. A caller without
 * a certificate is counted before anything is done for it.
 *
 * Reading order: `methods`, `#join`, `#renew`, `#enrol`.
 *
 * @module
 */

import { tunnelCodeOf } from "../../proto/codes/codes.ts";
import { lineKey } from "../../platform/log/line_key.ts";
import type { Log } from "../../platform/log/log.ts";
import { P256, PkiError } from "../../platform/pki/key_pair.ts";
import {
  readSigningRequest,
  type SigningRequest,
} from "../../platform/pki/signing_request.ts";
import type { MethodHandler } from "../../proto/grpc/call.ts";
import { GrpcError, StatusCode, statusName } from "../../proto/grpc/status.ts";
import {
  readTraceparent,
  TRACEPARENT_FIELD,
} from "../../proto/peer/trace_context.ts";
import { inSpan } from "../../platform/tracing/tracing.ts";
import { unaryMethod } from "../../proto/grpc/server.ts";
import {
  type EnrolmentOutcome,
  IDENTITY_MESSAGE_BYTES_MAX,
  renewalStatement,
} from "../../proto/identity/enrolment.ts";
import {
  AuthoritiesAnswer,
  AuthoritiesRequest,
  ChallengeAnswer,
  EnrolmentAnswer,
  IDENTITY_METHODS,
  JoinRequest,
  RenewRequest,
  StandingAnswer,
} from "../../proto/identity/identity_messages.ts";
import {
  JoinTokenError,
  parseJoinToken,
} from "../../proto/identity/join_token.ts";
import {
  isJoinableName,
  isNodeName,
  JOINABLE_NAME_RULE,
  NODE_NAME_RULE,
} from "../../proto/identity/node_name.ts";
import {
  NO_IDENTIFIERS,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import type { ConnectionPeer } from "../links/agent_port.ts";
import {
  CHALLENGE_VALID_MS,
  Challenges,
  JoinAttempts,
  RENEWALS_BURST,
} from "./attempts.ts";
import type { Authorities } from "./authorities.ts";
import type { GrantedAddresses } from "./granted_addresses.ts";
import { issueNodeCertificate } from "./leaf_certificates.ts";
import { ownCertificate, standingProblem } from "./node_authorizer.ts";
import type { NodeRecord, NodeStore } from "./node_store.ts";
import type { Store, StoreTransaction } from "../../neighbours/store/store.ts";
import {
  logState,
  StoreAwayError,
  StoreError,
} from "../../neighbours/store/store_error.ts";
import { noteTrust } from "./authority_step.ts";
import { TokenRefusal, type TokenStore } from "./token_store.ts";

/** How long a node that waits for approval should wait before it asks again. */
const APPROVAL_RETRY_MS = 5_000;

/** Handshakes before a join, in which its node looks for the token's authority. */
const LOOKS_OF_A_JOIN = 1;

/** What the service needs from outside. */
export interface JoinServiceOptions {
  readonly state: Store;
  readonly tokens: TokenStore;
  readonly nodes: NodeStore;
  readonly authorities: () => Authorities;
  /** What joined nodes were granted. */
  readonly granted: Pick<GrantedAddresses, "loaded" | "taken" | "note">;
  /** Certificates of other authorities pass the handshake, too. */
  readonly trustsOthers: boolean;
  /** Monotonic; for limits and nonces. */
  readonly clock: Clock;
  /** Milliseconds since 1970; for certificates. */
  readonly now: () => number;
  readonly certificateLifeMs: number;
  readonly log: Log;
  /** Every call, with the name of its status. */
  readonly counted: (method: MethodName, status: string) => void;
}

export type MethodName =
  | "authorities"
  | "challenge"
  | "check"
  | "join"
  | "renew";

const UNREFUSED: StandingAnswer = {
  ...{ refusal: "", code: "", serverId: "", now: "" },
  ...{ linkedFrom: [], instances: 0 },
};

/** What a refused token means for the node that shows it. */
const TOKEN_STATUS: Readonly<Record<TokenRefusal["reason"], StatusCode>> = {
  unknown: StatusCode.UNAUTHENTICATED,
  expired: StatusCode.UNAUTHENTICATED,
  "used-up": StatusCode.UNAUTHENTICATED,
  "other-node": StatusCode.PERMISSION_DENIED,
};

/** Serves the identity calls of all connections. */
export class JoinService {
  readonly #challenges: Challenges;
  readonly #attempts: JoinAttempts;
  readonly #renewals: JoinAttempts;

  constructor(private readonly options: JoinServiceOptions) {
    this.#challenges = new Challenges(options.clock);
    this.#attempts = new JoinAttempts(options.clock);
    this.#renewals = new JoinAttempts(options.clock, RENEWALS_BURST);
  }

  /** The methods as one connection may call them. */
  methods(caller: ConnectionPeer): Readonly<Record<string, MethodHandler>> {
    const method = (
      name: MethodName,
      handler: (request: Uint8Array) => Promise<Uint8Array>,
    ) => this.#method(name, caller, handler);
    /** For callers without a certificate: counted before any work is done. */
    const begin = () => this.#begin(this.#attempts, caller.remoteAddress);
    return {
      [IDENTITY_METHODS.challenge]: method("challenge", () => {
        begin();
        return Promise.resolve(ChallengeAnswer.encode({
          nonce: this.#challenges.make(caller.remoteAddress),
          validMs: CHALLENGE_VALID_MS,
        }));
      }),
      [IDENTITY_METHODS.join]: method("join", async (bytes) => {
        begin();
        const request = JoinRequest.decode(bytes);
        const outcome = await this.#join(request, caller);
        caller.known?.(LOOKS_OF_A_JOIN);
        return EnrolmentAnswer.encode(outcome);
      }),
      [IDENTITY_METHODS.checkToken]: method("check", async (bytes) => {
        begin();
        return StandingAnswer.encode({
          ...UNREFUSED,
          now: new Date(this.options.now()).toISOString(),
          ...await this.#tokenProblem(JoinRequest.decode(bytes)),
        });
      }),
      [IDENTITY_METHODS.renew]: method("renew", async (bytes) => {
        const request = RenewRequest.decode(bytes);
        const outcome = await this.#renew(request, caller);
        caller.known?.();
        return EnrolmentAnswer.encode(outcome);
      }),
      [IDENTITY_METHODS.authorities]: method("authorities", async (bytes) => {
        const { trusted } = AuthoritiesRequest.decode(bytes);
        const own = ownCertificate(this.options, caller.identity);
        if (own.isOurs && own.node !== undefined) {
          const { publicKeySha256 } = caller.identity.certificate!;
          await noteTrust(this.options, own.node, publicKeySha256, trusted);
        }
        const { bundle } = this.options.authorities();
        const authorities = new TextEncoder().encode(bundle);
        return AuthoritiesAnswer.encode({ authorities });
      }),
    };
  }

  #method(
    name: MethodName,
    { remoteAddress }: ConnectionPeer,
    handler: (request: Uint8Array) => Promise<Uint8Array>,
  ): MethodHandler {
    const { log, counted } = this.options;
    return unaryMethod(async (request, { metadata }) => {
      try {
        const parent = readTraceparent(metadata.texts(TRACEPARENT_FIELD));
        const start = { kind: "server", parent } as const;
        const answer = await inSpan(name, start, () => handler(request));
        counted(name, "OK");
        return answer;
      } catch (error) {
        const refusal = this.#refusalFor(error);
        counted(name, statusName(refusal.code));
        // A caller that asks too often is counted, and does not fill the log.
        if (refusal.code !== StatusCode.RESOURCE_EXHAUSTED) {
          this.#attempts.refused(remoteAddress);
          log.event(`${name} refused: ${refusal.message}`, {
            code: tunnelCodeOf(refusal) ?? "TUN320",
            from: remoteAddress,
            status: statusName(refusal.code),
          }, lineKey(`${name} of ${remoteAddress}: ${refusal.message}`));
        }
        throw refusal;
      }
    }, { messageBytesMax: IDENTITY_MESSAGE_BYTES_MAX });
  }

  /**
   * Why no node could join with the token, if that is so; the token is not used
   * up.
   */
  async #tokenProblem(
    { token, node }: JoinRequest,
  ): Promise<Pick<StandingAnswer, "refusal" | "code"> | undefined> {
    const { tokens, nodes, now } = this.options;
    checkNodeName(node, isJoinableName(node), JOINABLE_NAME_RULE);
    // With no node's key: a token that its own node has used is used up here.
    const use = { node, publicKeySha256: "" };
    try {
      await tokens.check(parseJoinToken(token), use, now());
    } catch (error) {
      if (!(error instanceof TokenRefusal)) throw error;
      return { refusal: error.message, code: error.tunnelCode };
    }
    if (await nodes.readNow(node) === undefined) return undefined;
    return {
      refusal: `Cannot join as ${node}: that name is bound to another key; ` +
        `use another one (--node), or \`tunnel node forget ${node}\` first`,
      code: "TUN307",
    };
  }

  async #join(
    request: JoinRequest,
    { remoteAddress }: ConnectionPeer,
  ): Promise<EnrolmentOutcome> {
    const { node } = request;
    checkNodeName(node, isJoinableName(node), JOINABLE_NAME_RULE);
    const token = parseJoinToken(request.token);
    const csr = await readSigningRequest(request.csr);
    const { publicKeySha256 } = csr;
    const use = { node, publicKeySha256 };
    const { state, tokens, nodes, now, log, granted: taken } = this.options;
    // Without a token a caller is answered at once, and learns no names.
    await tokens.check(token, use, now());
    const { answer, joined } = await state.transact(async (change) => {
      const granted = await tokens.check(token, use, now(), change);
      const known = await nodes.readNow(node, change);
      const isWaiting = known?.state === "pending" &&
        known.publicKeySha256 === publicKeySha256;
      const standing = known === undefined || isWaiting
        ? undefined
        : standingProblem(node, known, publicKeySha256);
      if (standing !== undefined) {
        throw new GrpcError(
          StatusCode.PERMISSION_DENIED,
          `Cannot join as ${node}: ${standing.problem}`,
          standing.tunnelCode,
        );
      }
      // The record of a known node does not change: an attacker who has seen
      // its request could replay it with a token that grants more, or less.
      if (known !== undefined) {
        return { answer: await this.#enrol(known, csr, change) };
      }
      await this.#checkFree(node, granted.identifiers);
      await tokens.claim(granted, use, change);
      const record: NodeRecord = {
        name: node,
        state: granted.needsApproval ? "pending" : "approved",
        publicKeySha256,
        identifiers: granted.identifiers,
        joinedAt: new Date(now()).toISOString(),
        tokenId: granted.id,
        joinedFrom: remoteAddress,
      };
      return { answer: await this.#enrol(record, csr, change), joined: record };
    });
    if (joined === undefined) return answer;
    log.event(
      joined.state === "pending" ? "node waits for approval" : "node joined",
      {
        node,
        from: remoteAddress,
        token: joined.tokenId,
        software: request.software.slice(0, 100),
      },
    );
    // The next join may come before the change is noticed.
    taken.note(node);
    return answer;
  }

  /**
   * A node's name attracts connections, as a granted `host` does.
   *
   * @param own What the node's token grants; the node may use that.
   */
  async #checkFree(node: string, own: string): Promise<void> {
    const { host, uid } = parseIdentifiers(own, "server");
    const claims = {
      ...NO_IDENTIFIERS,
      host: host.includes(node) ? [] : [node],
      uid: uid.includes(node) ? [] : [node],
    };
    const { granted } = this.options;
    await granted.loaded();
    const taken = granted.taken(claims);
    if (taken === undefined) return;
    throw new GrpcError(
      StatusCode.PERMISSION_DENIED,
      `Cannot join as ${node}: the node ${taken.node} was granted ` +
        `${taken.claim}; use another name, or take that from it on the ` +
        `server with \`tunnel node approve ${taken.node} --identifiers …\``,
      "TUN320",
    );
  }

  async #renew(
    request: RenewRequest,
    caller: ConnectionPeer,
  ): Promise<EnrolmentOutcome> {
    const { node } = request;
    const own = ownCertificate(this.options, caller.identity);
    const isCertified = own.isOurs && own.node === node;
    if (isCertified) this.#begin(this.#renewals, `node ${node}`);
    else this.#begin(this.#attempts, caller.remoteAddress);
    checkNodeName(node, isNodeName(node), NODE_NAME_RULE);
    const csr = await readSigningRequest(request.csr);
    if (!isCertified) await this.#checkProof(request, csr, caller);
    const { state, nodes, log } = this.options;
    return await state.transact(async (change) => {
      const record = await nodes.readNow(node, change);
      const standing = standingProblem(node, record, csr.publicKeySha256);
      if (standing !== undefined && record?.state !== "pending") {
        throw new GrpcError(
          record === undefined
            ? StatusCode.NOT_FOUND
            : StatusCode.PERMISSION_DENIED,
          `Cannot renew the certificate of ${node}: ${standing.problem}`,
          standing.tunnelCode,
        );
      }
      log.detail("node renews its certificate", {
        node,
        from: caller.remoteAddress,
        by: isCertified ? "certificate" : "proof",
      });
      return await this.#enrol(record!, csr, change);
    });
  }

  /** Without a certificate: a signature that was made just now, for this. */
  async #checkProof(
    { nonce, proof, csr: der }: RenewRequest,
    csr: SigningRequest,
    { remoteAddress }: ConnectionPeer,
  ): Promise<void> {
    if (proof.length === 0) {
      throw new GrpcError(
        StatusCode.UNAUTHENTICATED,
        "Cannot renew: the connection shows no certificate of that node, and " +
          "the request no proof of its key; ask for a challenge and sign it",
      );
    }
    if (!this.#challenges.isGood(nonce, remoteAddress)) {
      throw new GrpcError(
        StatusCode.ABORTED,
        "Cannot renew: the nonce is not (or no longer) good; ask for a new " +
          "challenge",
      );
    }
    const hash = await crypto.subtle.digest("SHA-256", new Uint8Array(der));
    const isProven = await crypto.subtle.verify(
      P256,
      csr.publicKey,
      new Uint8Array(proof),
      renewalStatement(nonce, new Uint8Array(hash)),
    );
    if (isProven) return;
    throw new GrpcError(
      StatusCode.UNAUTHENTICATED,
      "Cannot renew: the proof was not signed by the key of the request",
    );
  }

  /** Writes the record, with a certificate unless the node has to wait. */
  async #enrol(
    record: NodeRecord,
    { publicKey }: SigningRequest,
    change: StoreTransaction,
  ): Promise<EnrolmentOutcome> {
    const { nodes, authorities, now, certificateLifeMs } = this.options;
    if (record.state === "pending") {
      await nodes.write(record, change);
      const reason = `${record.name} waits for approval: ` +
        `\`tunnel node approve ${record.name}\` on the server`;
      return { pending: { reason, retryAfterMs: APPROVAL_RETRY_MS } };
    }
    const trusted = authorities();
    const certificate = await issueNodeCertificate(
      trusted,
      record.name,
      publicKey,
      now(),
      certificateLifeMs,
    );
    await nodes.write(
      { ...record, certificate: certificate.record },
      change,
    );
    const encoder = new TextEncoder();
    return {
      enrolment: {
        node: record.name,
        certificate: encoder.encode(certificate.pem),
        authorities: encoder.encode(trusted.bundle),
        identifiers: record.identifiers,
      },
    };
  }

  #begin(attempts: JoinAttempts, source: string): void {
    const waitMs = attempts.begin(source);
    if (waitMs === 0) return;
    throw new GrpcError(
      StatusCode.RESOURCE_EXHAUSTED,
      `Cannot answer: too many attempts from there; try again in ` +
        `${Math.ceil(waitMs / 1_000)} s`,
    );
  }

  #refusalFor(error: unknown): GrpcError {
    if (error instanceof GrpcError) return error;
    const isAsked = error instanceof TokenRefusal ||
      error instanceof PkiError || error instanceof JoinTokenError;
    if (isAsked) {
      const code = error instanceof TokenRefusal
        ? TOKEN_STATUS[error.reason]
        : StatusCode.INVALID_ARGUMENT;
      return new GrpcError(code, error.message, error.tunnelCode);
    }
    // The node that has it shows its id; an operator can do nothing here.
    if (error instanceof StoreAwayError) {
      return new GrpcError(
        StatusCode.UNAVAILABLE,
        "The server cannot change its state now, which is kept elsewhere; try " +
          "again in a while, or ask another server",
        error.tunnelCode,
      );
    }
    if (!(error instanceof StoreError)) throw error;
    logState(this.options.log, error);
    return new GrpcError(
      StatusCode.UNAVAILABLE,
      "The server cannot use its own state; see the server's log",
      error.tunnelCode,
    );
  }
}

function checkNodeName(node: string, isGood: boolean, rule: string): void {
  if (isGood) return;
  throw new GrpcError(
    StatusCode.INVALID_ARGUMENT,
    `Cannot name a node ${JSON.stringify(node.slice(0, 100))}: wanted ${rule}`,
  );
}
