/**
 * A client of an etcd v3 cluster, by its gRPC API on our own HTTP/2.
 *
 * When a member does not answer, a harmless request goes to the next member; a
 * write that may have been made does not, and its caller decides. The client
 * keeps no data.
 *
 * @module
 */

import { Channel, type ChannelConnection } from "../../net/channel/channel.ts";
import {
  type MessageStream,
  openMessageStream,
  unaryCall,
} from "../../proto/grpc/client.ts";
import { Metadata } from "../../proto/grpc/metadata.ts";
import type { Draft, MessageDecoder } from "../../proto/grpc/message_codec.ts";
import { GrpcError, StatusCode, statusName } from "../../proto/grpc/status.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import {
  INTERNAL_ERROR,
  unawaited,
} from "../../platform/errors/internal_errors.ts";
import {
  type EtcdError,
  failureOf,
  isAboutMember,
  isAboutToken,
} from "./errors.ts";
import { bytesOf, type Entry, entryOf, Int64Text, prefixEnd } from "./keys.ts";
import {
  type ConnectMember,
  type MemberAddress,
  membersUpstream,
} from "./members.ts";
import {
  AUTH_METHODS,
  AuthenticateRequest,
  AuthenticateResponse,
  DeleteRangeRequest,
  DeleteRangeResponse,
  KV_METHODS,
  LEASE_METHODS,
  LeaseGrantRequest,
  LeaseGrantResponse,
  LeaseRevokeRequest,
  LeaseRevokeResponse,
  PutRequest,
  PutResponse,
  RangeRequest,
  RangeResponse,
  TxnRequest,
  TxnResponse,
} from "./etcd_messages.ts";

/** For each try of a call that has one answer. */
export const CALL_TIMEOUT_MS = 5_000;

/**
 * Longest message accepted. etcd's values have 1.5 MiB at most unless it was
 * told otherwise, and a page that is too large is requested again in parts.
 */
export const ETCD_MESSAGE_BYTES_MAX = 32 * 1024 * 1024;

/** Keys in a page of a listing. */
export const PAGE_KEYS = 1_000;

/**
 * Silence after which a member is asked, and for how long. etcd disconnects
 * clients that ask more often than every 5 s.
 */
const KEEPALIVE = { intervalMs: 10_000, timeoutMs: 5_000 };

/** Part of the error for a member that does not answer properly. */
const ANOTHER = "another member is asked";

/** A prefix with more keys than this is not held. */
export const ETCD_KEYS_MAX = 200_000;

export interface EtcdClientOptions {
  readonly members: readonly MemberAddress[];
  readonly connect: ConnectMember;
  readonly user?: EtcdUser | undefined;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** {@linkcode ETCD_KEYS_MAX} unless given. */
  readonly keysMax?: number;
}

/** All keys under a prefix as they were at one moment. */
export interface Listing {
  readonly entries: readonly Entry[];
  /** The store's at that moment. */
  readonly revision: bigint;
  readonly clusterId: Int64Text;
}

export class EtcdClient implements Disposable {
  readonly #channel: Channel;
  readonly #token: AuthToken;

  constructor(private readonly options: EtcdClientOptions) {
    this.#channel = new Channel({
      upstream: membersUpstream(options),
      timers: options.timers,
      keepalive: KEEPALIVE,
    });
    this.#token = new AuthToken(options.user);
  }

  /**
   * Reads all keys that begin with `prefix`.
   *
   * @throws {EtcdError}
   */
  async list(prefix: string): Promise<Listing> {
    const doing = `read ${prefix}`;
    const { keysMax = ETCD_KEYS_MAX } = this.options;
    const key = bytesOf(prefix);
    const rangeEnd = prefixEnd(key);
    const entries: Entry[] = [];
    let first: RangeResponse | undefined;
    let from = key;
    let limit = PAGE_KEYS;
    while (true) {
      const revision = first?.header?.revision ?? "0";
      const request = { key: from, rangeEnd, limit: `${limit}`, revision };
      let page: RangeResponse;
      try {
        page = await this.#range(request);
      } catch (error) {
        if (!(error instanceof GrpcError)) throw error;
        const isTooLarge = error.code === StatusCode.RESOURCE_EXHAUSTED;
        if (!isTooLarge || limit === 1) throw failureOf(doing, error);
        limit = Math.ceil(limit / 8);
        continue;
      }
      first ??= page;
      for (const kv of page.kvs) entries.push(entryOf(kv));
      if (entries.length > keysMax) throw tooMany(prefix, keysMax);
      const last = page.kvs.at(-1);
      if (!page.more || last === undefined) {
        if (first.header === null) throw failureOf(doing, NO_HEADER);
        const { revision, clusterId } = first.header;
        return { entries, revision: BigInt(revision), clusterId };
      }
      // The next key in etcd's order: the last one and a byte 0.
      from = new Uint8Array([...last.key, 0]);
    }
  }

  /** @throws {EtcdError} */
  async get(key: string): Promise<Entry | undefined> {
    const request = { key: bytesOf(key) };
    const { kvs } = await saying(`read ${key}`, this.#range(request));
    return kvs[0] && entryOf(kvs[0]);
  }

  /**
   * Writes a key.
   *
   * @param lease The lease that it dies with; absent: none.
   * @throws {EtcdError} With UNAVAILABLE or DEADLINE_EXCEEDED it may have been
   *   written.
   */
  async put(
    key: string,
    value: Uint8Array,
    lease: Int64Text = "0",
  ): Promise<void> {
    const request = { key: bytesOf(key), value, lease };
    await this.#ask(`write ${key}`, {
      path: KV_METHODS.put,
      bytes: PutRequest.encode(request),
      may: "once",
      codec: PutResponse,
    });
  }

  /** @throws {EtcdError} As {@linkcode put}. */
  async delete(key: string): Promise<void> {
    await this.#ask(`delete ${key}`, {
      path: KV_METHODS.deleteRange,
      bytes: DeleteRangeRequest.encode({ key: bytesOf(key) }),
      may: "once",
      codec: DeleteRangeResponse,
    });
  }

  /**
   * Does several things at once, or others.
   *
   * @param doing For errors; goes on after "Cannot".
   * @returns Whether all comparisons held, and the revision that it made.
   * @throws {EtcdError} As {@linkcode put}.
   */
  txn(doing: string, request: Draft<TxnRequest>): Promise<TxnResponse> {
    return this.#ask(doing, {
      path: KV_METHODS.txn,
      bytes: TxnRequest.encode(request),
      may: "once",
      codec: TxnResponse,
    });
  }

  /**
   * Gets a lease. One whose answer is lost ends by itself.
   *
   * @throws {EtcdError}
   */
  async grantLease(
    ttlSeconds: number,
  ): Promise<{ readonly lease: Int64Text; readonly ttlSeconds: number }> {
    const { ID, TTL } = await this.#ask("get a lease", {
      path: LEASE_METHODS.leaseGrant,
      bytes: LeaseGrantRequest.encode({ TTL: `${ttlSeconds}` }),
      may: "repeatedly",
      codec: LeaseGrantResponse,
    });
    return { lease: ID, ttlSeconds: Number(TTL) };
  }

  /**
   * Ends a lease, and deletes the keys that are bound to it.
   *
   * @throws {EtcdError} NOT_FOUND when it had ended.
   */
  async revokeLease(lease: Int64Text): Promise<void> {
    await this.#ask("end a lease", {
      path: LEASE_METHODS.leaseRevoke,
      bytes: LeaseRevokeRequest.encode({ ID: lease }),
      may: "repeatedly",
      codec: LeaseRevokeResponse,
    });
  }

  /**
   * Opens a call with messages both ways, on a member that has a leader and as
   * long as it has one.
   *
   * The stream's end, if it is about the member or the token, makes the next
   * one go to another member or with another token. That there is no
   * connection is an end, too, and so is an internal error.
   */
  openStream(path: string, events: EtcdStreamEvents): void {
    const opening = this.#openStream(path, events)
      .then((stream) => events.onOpen(stream), (error) => {
        if (!(error instanceof GrpcError)) throw error;
        events.onEnd(error);
      });
    unawaited("task", opening, () => {
      events.onEnd(new GrpcError(StatusCode.INTERNAL, INTERNAL_ERROR));
    });
  }

  async #openStream(
    path: string,
    events: EtcdStreamEvents,
  ): Promise<EtcdStream> {
    const connection = await this.#channel.connection();
    const token = await this.#tokenOn(connection);
    const blame = (error: { code: StatusCode; message: string }) => {
      if (isAboutToken(error.message)) this.#token.forget(token);
      else if (isAboutMember(error.code)) connection.leave(ANOTHER);
    };
    const options = this.#head(connection, path, token, { hasleader: "true" });
    try {
      const stream = openMessageStream(
        connection.http2,
        options,
        ETCD_MESSAGE_BYTES_MAX,
        {
          onMessage: (message) => events.onMessage(message),
          onEnd: ({ code, message }) => {
            const words = message || `the call ended with ${statusName(code)}`;
            const error = new GrpcError(code || StatusCode.UNAVAILABLE, words);
            blame(error);
            events.onEnd(error);
          },
        },
      );
      return { ...stream, blame };
    } catch (error) {
      if (error instanceof GrpcError) blame(error);
      throw error;
    }
  }

  /** Ends all calls. */
  [Symbol.dispose](): void {
    const reason = "the client is closed";
    const error = new GrpcError(StatusCode.UNAVAILABLE, reason);
    this.#channel.abort(reason, error);
  }

  #range(request: Draft<RangeRequest>): Promise<RangeResponse> {
    return this.#call({
      path: KV_METHODS.range,
      bytes: RangeRequest.encode(request),
      may: "repeatedly",
      codec: RangeResponse,
    });
  }

  #ask<Answer>(doing: string, call: UnaryCall<Answer>): Promise<Answer> {
    return saying(doing, this.#call(call));
  }

  /** @throws {GrpcError} */
  async #call<Answer>(call: UnaryCall<Answer>): Promise<Answer> {
    const { path, bytes, may, codec } = call;
    let refusals = 0;
    for (let tried = 1;; tried++) {
      const connection = await this.#channel.connection();
      let token = "";
      try {
        token = await this.#tokenOn(connection);
        return codec.decode(
          await this.#unary(connection, path, bytes, token),
        );
      } catch (error) {
        if (!(error instanceof GrpcError)) throw error;
        if (isAboutToken(error.message) && this.#token.canRenew) {
          this.#token.forget(token);
          if (refusals++ === 0) continue;
        }
        if (!isAboutMember(error.code)) throw error;
        connection.leave(ANOTHER);
        if (may === "once" || tried > this.options.members.length) {
          throw explained(error, connection);
        }
      }
    }
  }

  #tokenOn(connection: ChannelConnection): Promise<string> {
    return this.#token.get((request) =>
      this.#unary(connection, AUTH_METHODS.authenticate, request, "")
    );
  }

  #unary(
    connection: ChannelConnection,
    path: string,
    request: Uint8Array,
    token: string,
  ): Promise<Uint8Array> {
    return unaryCall(connection.http2, {
      ...this.#head(connection, path, token),
      request,
      timers: this.options.timers,
      timeoutMs: CALL_TIMEOUT_MS,
      messageBytesMax: ETCD_MESSAGE_BYTES_MAX,
    });
  }

  #head(
    { authority, scheme }: ChannelConnection,
    path: string,
    token: string,
    more: Readonly<Record<string, string>> = {},
  ) {
    return {
      path,
      authority,
      scheme,
      metadata: new Metadata(token === "" ? more : { ...more, token }),
    };
  }
}

/** What the opener of a stream receives; see `MessageStreamEvents`. */
export interface EtcdStreamEvents {
  onOpen(stream: EtcdStream): void;
  onMessage(message: Uint8Array): void;
  onEnd(error: GrpcError): void;
}

/** A stream that can be blamed for more than its end says. */
export interface EtcdStream extends MessageStream {
  /** The errors seen on it are the member's or the token's fault. */
  blame(error: { readonly code: StatusCode; readonly message: string }): void;
}

/**
 * Possible causes when a member disconnects before its first byte. TLS 1.3 may
 * refuse a client after the client's handshake has succeeded.
 */
function explained(
  error: GrpcError,
  { authority, scheme, hasAnswered }: ChannelConnection,
): GrpcError {
  if (hasAnswered || error.code !== StatusCode.UNAVAILABLE) return error;
  const why = scheme === "https"
    ? "as members do that want a certificate, or another one"
    : "as members do that speak TLS: try https://";
  const message = `${scheme}://${authority}: ${error.message}, ${why}`;
  return new GrpcError(error.code, message);
}

/** A call with one answer. */
interface UnaryCall<Answer> {
  readonly path: string;
  readonly bytes: Uint8Array;
  /** `once`: what may have been done is not asked of another member. */
  readonly may: "once" | "repeatedly";
  readonly codec: MessageDecoder<Answer>;
}

async function saying<Answer>(
  doing: string,
  answer: Promise<Answer>,
): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    throw error instanceof GrpcError ? failureOf(doing, error) : error;
  }
}

/** What calls itself etcd is something else. */
const NO_HEADER = new GrpcError(
  StatusCode.INTERNAL,
  "its answer has no header, as etcd's have",
);

function tooMany(prefix: string, keysMax: number): EtcdError {
  return failureOf(
    `hold ${prefix}`,
    new GrpcError(
      StatusCode.RESOURCE_EXHAUSTED,
      `it has more than ${keysMax} keys; use a longer prefix`,
    ),
  );
}

// The token that a user and a password buy.
//
// etcd's simple tokens end after five minutes without use and with the member
// that gave them; a client that shows an old one is refused and asks for another.

/** Our credentials for etcd. */
export interface EtcdUser {
  readonly name: string;
  readonly password: string;
}

/** Sends an `AuthenticateRequest`; gives the answer's bytes. */
export type Authenticate = (request: Uint8Array) => Promise<Uint8Array>;

export class AuthToken {
  /** Holds the password, so no debugger's print of this object may show it. */
  readonly #user: EtcdUser | undefined;
  #token: string | undefined;
  #asking: Promise<string> | undefined;

  /** @param user Absent: there is never a token. */
  constructor(user: EtcdUser | undefined) {
    this.#user = user;
  }

  /** Whether {@linkcode forget} and another try can help. */
  get canRenew(): boolean {
    return this.#user !== undefined;
  }

  /**
   * The token; empty when none is wanted.
   *
   * @throws {GrpcError} What etcd answers to a wrong password, or no answer.
   */
  async get(authenticate: Authenticate): Promise<string> {
    if (this.#user === undefined) return "";
    if (this.#token !== undefined) return this.#token;
    const { name, password } = this.#user;
    const request = AuthenticateRequest.encode({ name, password });
    this.#asking ??= this.#ask(authenticate, request).finally(() => {
      this.#asking = undefined;
    });
    return await this.#asking;
  }

  /** It was refused. A newer one stays. */
  forget(token: string): void {
    if (this.#token === token) this.#token = undefined;
  }

  async #ask(authenticate: Authenticate, request: Uint8Array): Promise<string> {
    try {
      const bytes = await authenticate(request);
      this.#token = AuthenticateResponse.decode(bytes).token;
    } catch (error) {
      // The cluster has no authentication: then a user is not needed.
      if (
        !(error instanceof GrpcError) ||
        error.code !== StatusCode.FAILED_PRECONDITION ||
        !error.message.includes("authentication is not enabled")
      ) throw error;
      this.#token = "";
    }
    return this.#token;
  }
}
