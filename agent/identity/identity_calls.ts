/**
 * The calls by which a node gets certificates, from any of its servers. A join
 * looks for the token's authority first, and sends the secret only to a server
 * that has proved to hold its key.
 *
 * @module
 */

import type { ProxyEnvironment } from "../../net/dial/proxy_environment.ts";
import { shownCertificates } from "../../net/dial/server_connect.ts";
import { type UnaryCaller, withCaller } from "../../net/channel/grpc_call.ts";
import { P256, PkiError } from "../../platform/pki/key_pair.ts";
import {
  isConnecting,
  type ResolvedServer,
  type ServerAddresses,
} from "../../net/dial/server_addresses.ts";
import type { TlsMaterial } from "../../net/tls/trust/credentials.ts";
import { VERSION } from "../../platform/process/version.ts";
import {
  type EnrolmentOutcome,
  IDENTITY_MESSAGE_BYTES_MAX,
  renewalStatement,
} from "../../proto/identity/enrolment.ts";
import {
  ChallengeAnswer,
  ChallengeRequest,
  type Enrolment,
  EnrolmentAnswer,
  IDENTITY_METHODS,
  JoinRequest,
  RenewRequest,
} from "../../proto/identity/identity_messages.ts";
import { parseJoinToken } from "../../proto/identity/join_token.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";
import {
  EnrolmentError,
  isDefinite,
  isPassing,
  PinError,
  sentenceOf,
} from "./enrolment_error.ts";
import {
  type CertificateFacts,
  certificateFacts,
  pinOf,
} from "../../platform/pki/certificate.ts";
import { holderOf } from "../../platform/pki/certificate_words.ts";
import { isSlip } from "../../platform/errors/internal_errors.ts";
import { supervise } from "../../platform/time/supervise.ts";
import type { Timers } from "../../proto/sync/clock.ts";

/** From TCP to the end of the TLS handshake. */
const CONNECT_TIMEOUT_MS = 10_000;
/** A server signs in a millisecond; several hundred may be before us. */
const ANSWER_TIMEOUT_MS = 30_000;

const NOTHING = new Uint8Array(0);

/** What calls need from outside. */
interface IdentityCallsOptions {
  readonly serverAddresses: ServerAddresses;
  readonly proxyEnv: ProxyEnvironment;
}

export class IdentityCalls {
  constructor(private readonly options: IdentityCallsOptions) {}

  /**
   * A certificate for a token.
   *
   * @throws {NoServerError} When no server could be connected to, or none is
   *   the token's.
   * @throws {GrpcError}
   */
  async join(
    token: string,
    node: string,
    keys: CryptoKeyPair,
  ): Promise<EnrolmentOutcome> {
    const { authorityPin } = parseJoinToken(token);
    const csr = await signingRequest(keys);
    const software = `tunnel/${VERSION}`;
    const request = JoinRequest.encode({ token, node, csr, software });
    return await this.options.serverAddresses.connect(async (place) => {
      const to = { ...this.#to(place), alpn: ["h2"] };
      const ca = await pinnedAuthority(to, authorityPin);
      return await this.#ask(place, { cert: "", key: "", ca }, async (call) => {
        return decodeAnswer(await call(IDENTITY_METHODS.join, request));
      });
    }, (error) => error instanceof PinError || isConnecting(error));
  }

  /** A new certificate, by showing the one there is. @throws As `join`. */
  async renew(
    node: string,
    keys: CryptoKeyPair,
    credentials: TlsMaterial,
  ): Promise<EnrolmentOutcome> {
    const csr = await signingRequest(keys);
    const empty = { nonce: NOTHING, proof: NOTHING };
    const request = RenewRequest.encode({ node, csr, ...empty });
    return await this.#call(credentials, async (call) => {
      return decodeAnswer(await call(IDENTITY_METHODS.renew, request));
    });
  }

  /**
   * A new certificate without a good one: the key signs what the server asks.
   *
   * @param ca Whom to trust, PEM.
   * @param at The one server to ask; absent: any.
   * @throws As `join`.
   */
  async renewByProof(
    node: string,
    keys: CryptoKeyPair,
    ca: string,
    at?: ResolvedServer,
  ): Promise<EnrolmentOutcome> {
    const csr = await signingRequest(keys);
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", csr));
    // One connection for both: the nonce is good at one server, from one place.
    return await this.#call({ cert: "", key: "", ca }, async (call) => {
      const challenge = await call(
        IDENTITY_METHODS.challenge,
        ChallengeRequest.encode({}),
      );
      const { nonce } = ChallengeAnswer.decode(challenge);
      const statement = renewalStatement(nonce, hash);
      const proof = new Uint8Array(
        await crypto.subtle.sign(P256, keys.privateKey, statement),
      );
      const request = RenewRequest.encode({ node, csr, nonce, proof });
      return decodeAnswer(await call(IDENTITY_METHODS.renew, request));
    }, at);
  }

  #call<Result>(
    credentials: TlsMaterial,
    use: (call: UnaryCaller) => Promise<Result>,
    at?: ResolvedServer,
  ): Promise<Result> {
    const ask = (place: ResolvedServer) => this.#ask(place, credentials, use);
    return at === undefined
      ? this.options.serverAddresses.connect(ask)
      : ask(at);
  }

  #ask<Result>(
    place: ResolvedServer,
    credentials: TlsMaterial,
    use: (call: UnaryCaller) => Promise<Result>,
  ): Promise<Result> {
    return withCaller({
      connect: { ...this.#to(place), credentials },
      timeoutMs: ANSWER_TIMEOUT_MS,
      messageBytesMax: IDENTITY_MESSAGE_BYTES_MAX,
    }, use);
  }

  #to(place: ResolvedServer) {
    return {
      ...{ proxyEnv: this.options.proxyEnv, ...place },
      ...{ serverName: TUNNEL_SERVER_NAME, timeoutMs: CONNECT_TIMEOUT_MS },
    };
  }
}

/**
 * Loaded when wanted, every few days: what makes requests takes 15 MB and a
 * tenth of a second of each start.
 */
async function signingRequest(
  keys: CryptoKeyPair,
): Promise<Uint8Array<ArrayBuffer>> {
  const { makeSigningRequest } = await import(
    "../../platform/pki/signing_request.ts"
  );
  return await makeSigningRequest(keys);
}

/** @throws {PkiError} When a newer server says something else. */
function decodeAnswer(bytes: Uint8Array): EnrolmentOutcome {
  const { enrolment, pending } = EnrolmentAnswer.decode(bytes);
  if (enrolment !== undefined) return { enrolment };
  if (pending !== undefined) return { pending };
  throw new PkiError(
    "Cannot read the server's answer: it is neither a certificate nor a " +
      "reason to wait; is the server newer? Update this agent",
  );
}

/**
 * Finds the authority that a join token pins, among what a server shows.
 *
 * No server is trusted for this: the certificates are only read, and only a TLS
 * handshake is sent. A server that shows the pinned authority without its key
 * fails at the next connection, which is verified with it.
 *
 * @param pin See `proto/identity/join_token.ts`.
 * @returns PEM.
 * @throws {PinError} When the server does not show it.
 * @throws {ConnectError | TlsHandshakeError}
 */
export async function pinnedAuthority(
  options: Parameters<typeof shownCertificates>[0],
  pin: string,
): Promise<string> {
  const shown = await shownCertificates(options);
  const pinned = shown.map(readableFacts)
    .find((facts) => facts !== undefined && pinOf(facts) === pin);
  if (pinned !== undefined) return pinned.pem;
  const [leaf] = shown;
  const holder = leaf === undefined ? "nobody" : holderOf(new Uint8Array(leaf));
  throw new PinError(
    `Cannot join at ${options.host}:${options.port}: the server there ` +
      `(${holder}) is not the one that made this token, so it was told ` +
      "nothing; correct --server, or make a token on that server with " +
      "`tunnel token create`",
  );
}

/** @returns `undefined`: another's may be damaged, and ours is not. */
function readableFacts(der: Uint8Array): CertificateFacts | undefined {
  try {
    return certificateFacts(der);
  } catch (error) {
    if (!(error instanceof PkiError)) throw error;
    return undefined;
  }
}

// Asks for a certificate until there is one, or a refusal that stays.
//
// Decides when to ask again. How is `ask`'s business.

/** Longest wait between attempts. */
const CAP_MS = 10_000;
/** A server that says "at once" is asked no more often than this. */
const PENDING_MS_MIN = 1_000;
/** Nor one that names next year forgotten. */
const PENDING_MS_MAX = 60_000;
/** How often a person's join is cut off, or put off, before that is told. */
const PASSING_MAX = 3;

/** What asking needs from outside. */
interface EnrolOptions {
  ask(): Promise<EnrolmentOutcome>;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** False: who cannot be reached is told at once, as a person would want. */
  readonly isPatient: boolean;
  /** Asked again after `retryMs`, because of `reason`. */
  waiting(reason: string, retryMs: number): void;
}

/**
 * @throws {EnrolmentError} When asking again is of no use; when not patient, also
 *   when no server could be reached.
 */
export async function enrol(options: EnrolOptions): Promise<Enrolment> {
  const { ask, timers, random, isPatient, waiting } = options;
  let got: Enrolment | undefined;
  let passed = 0;
  await supervise<string>({
    timers,
    random,
    capMs: CAP_MS,
    signal: new AbortController().signal, // Nobody stops it but the answer.
    async run(run) {
      const { enrolment, pending } = await ask();
      got = enrolment;
      if (enrolment !== undefined) return "done";
      run.succeeded();
      const retryMs = Math.max(
        PENDING_MS_MIN,
        Math.min(pending.retryAfterMs, PENDING_MS_MAX),
      );
      waiting(pending.reason, retryMs);
      return { afterMs: retryMs };
    },
    problemOf(error) {
      if (isSlip(error)) throw error;
      const reason = sentenceOf(error);
      const goesOn = isPatient || isPassing(error) && ++passed < PASSING_MAX;
      if (goesOn && !isDefinite(error)) return reason;
      throw new EnrolmentError(reason, { cause: error });
    },
    onProblem: waiting,
    // It may be our address that was told to be calm.
    leastMs: () => isPatient ? 0 : PENDING_MS_MIN,
  });
  return got!;
}
