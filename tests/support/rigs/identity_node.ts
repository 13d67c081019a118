/**
 * A node in the hands of a test: it asks for certificates over real TLS, and
 * can do so wrongly in every way.
 *
 * @module
 */

import { connectTls } from "../../../net/dial/server_connect.ts";
import { openClientConnection } from "../../../net/http2/client_connection.ts";
import {
  exportPrivateKey,
  generateKeyPair,
  P256,
} from "../../../platform/pki/key_pair.ts";
import { makeSigningRequest } from "../../../platform/pki/signing_request.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import type { CertificatePair } from "../certificates/throwaway_ca.ts";
import { unaryCall } from "../../../proto/grpc/client.ts";
import {
  ChallengeAnswer,
  ChallengeRequest,
  EnrolmentAnswer,
  IDENTITY_METHODS,
  JoinRequest,
  RenewRequest,
} from "../../../proto/identity/identity_messages.ts";
import { TUNNEL_SERVER_NAME } from "../../../proto/identity/node_name.ts";
import { renewalStatement } from "../../../proto/identity/enrolment.ts";
import type { Connection } from "../../../proto/streams/connection.ts";

/** Where a server is, and whom to trust there. */
export interface ServerPlace {
  readonly port: number;
  /** PEM. */
  readonly ca: string;
}

/** One connection to the agent port as ordinary HTTP/2. */
export class IdentityCaller implements Disposable {
  private constructor(private readonly connection: Connection) {}

  /** @param pair Shown as client certificate. @throws As `connectTls`. */
  static open(
    place: ServerPlace,
    pair?: CertificatePair,
  ): Promise<IdentityCaller> {
    const { cert, key } = pair ?? { cert: "", key: "" };
    return connectTls({
      host: "127.0.0.1",
      port: place.port,
      credentials: { ca: place.ca, cert, key },
      alpn: ["h2"],
      serverName: TUNNEL_SERVER_NAME,
      proxyEnv: {},
      timeoutMs: 10_000,
    }).then((stream) => {
      const connection = openClientConnection(stream, {
        timers: systemTimers,
      });
      return new IdentityCaller(connection);
    });
  }

  /** @throws {GrpcError} */
  async challenge(): Promise<Uint8Array> {
    const request = ChallengeRequest.encode({});
    const answer = await this.#call(IDENTITY_METHODS.challenge, request);
    return ChallengeAnswer.decode(answer).nonce;
  }

  /** @throws {GrpcError} */
  async join(
    token: string,
    node: string,
    csr: Uint8Array,
  ): Promise<EnrolmentAnswer> {
    const request = { token, node, csr, software: "test" };
    const bytes = JoinRequest.encode(request);
    return EnrolmentAnswer.decode(
      await this.#call(IDENTITY_METHODS.join, bytes),
    );
  }

  /** @throws {GrpcError} */
  async renew(
    node: string,
    csr: Uint8Array,
    nonce: Uint8Array = new Uint8Array(0),
    proof: Uint8Array = new Uint8Array(0),
  ): Promise<EnrolmentAnswer> {
    const bytes = RenewRequest.encode({ node, csr, nonce, proof });
    return EnrolmentAnswer.decode(
      await this.#call(IDENTITY_METHODS.renew, bytes),
    );
  }

  #call(path: string, request: Uint8Array): Promise<Uint8Array> {
    return unaryCall(this.connection, {
      path,
      request,
      authority: TUNNEL_SERVER_NAME,
      scheme: "https",
      timers: systemTimers,
      timeoutMs: 10_000,
    });
  }

  [Symbol.dispose](): void {
    this.connection.shutdown("the test is over");
  }
}

/** A key, and what was issued for it. */
export class IdentityNode {
  readonly keys: CryptoKeyPair;
  /** PEM; empty until it joined. */
  cert = "";
  authorities = "";

  private constructor(
    readonly name: string,
    keys: CryptoKeyPair,
    readonly csr: Uint8Array<ArrayBuffer>,
  ) {
    this.keys = keys;
  }

  static async make(name: string): Promise<IdentityNode> {
    const keys = await generateKeyPair();
    return new IdentityNode(name, keys, await makeSigningRequest(keys));
  }

  /** As TLS wants it. */
  async pair(): Promise<CertificatePair> {
    const key = await exportPrivateKey(this.keys.privateKey);
    return { cert: this.cert, key };
  }

  /** @returns The reason when it has to wait for approval. */
  async join(place: ServerPlace, token: string): Promise<string | undefined> {
    using caller = await IdentityCaller.open(place);
    return this.#keep(await caller.join(token, this.name, this.csr));
  }

  /** Over mTLS. */
  async renew(place: ServerPlace): Promise<string | undefined> {
    using caller = await IdentityCaller.open(place, await this.pair());
    return this.#keep(await caller.renew(this.name, this.csr));
  }

  /** Without a certificate. */
  async renewByProof(place: ServerPlace): Promise<string | undefined> {
    using caller = await IdentityCaller.open(place);
    const nonce = await caller.challenge();
    const proof = await this.prove(nonce);
    const answer = await caller.renew(this.name, this.csr, nonce, proof);
    return this.#keep(answer);
  }

  /** The signature that a renewal without a certificate needs. */
  async prove(
    nonce: Uint8Array,
    csr: Uint8Array<ArrayBuffer> = this.csr,
  ): Promise<Uint8Array> {
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", csr));
    const statement = renewalStatement(nonce, hash);
    return new Uint8Array(
      await crypto.subtle.sign(P256, this.keys.privateKey, statement),
    );
  }

  #keep({ enrolment, pending }: EnrolmentAnswer): string | undefined {
    if (enrolment === undefined) return pending?.reason;
    const decoder = new TextDecoder();
    this.cert = decoder.decode(enrolment.certificate);
    this.authorities = decoder.decode(enrolment.authorities);
    return undefined;
  }
}
