/**
 * An etcd cluster in memory, on our own HTTP/2: keys with revisions, watches,
 * leases and users, as far as clients can tell; and everything that a test may
 * want to happen to it.
 *
 * @module
 */

import { openServerConnection } from "../../../net/http2/server_connection.ts";
import {
  AUTH_METHODS,
  AuthenticateRequest,
  AuthenticateResponse,
  type Compare,
  DeleteRangeRequest,
  DeleteRangeResponse,
  type KeyValue,
  KV_METHODS,
  LEASE_METHODS,
  LeaseGrantRequest,
  LeaseGrantResponse,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  LeaseRevokeRequest,
  LeaseRevokeResponse,
  PutRequest,
  PutResponse,
  RangeRequest,
  RangeResponse,
  type RequestOp,
  TxnRequest,
  TxnResponse,
  WATCH_METHODS,
  WatchRequest,
  WatchResponse,
} from "../../../neighbours/etcd/etcd_messages.ts";
import {
  EtcdClient,
  type EtcdClientOptions,
} from "../../../neighbours/etcd/client.ts";
import type {
  ConnectMember,
  MemberAddress,
} from "../../../neighbours/etcd/members.ts";
import type { MethodHandler, ServerCall } from "../../../proto/grpc/call.ts";
import {
  encodingOf,
  MessageReader,
} from "../../../proto/grpc/message_reader.ts";
import type { MessageDecoder } from "../../../proto/grpc/message_codec.ts";
import { unaryMethod } from "../../../proto/grpc/server.ts";
import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import type { Connection } from "../../../proto/streams/connection.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import { MemoryStream } from "../memory/memory_stream.ts";

const DECODER = new TextDecoder();
const ENCODER = new TextEncoder();

type FakeEvent = {
  readonly type: number;
  readonly kv: KeyValue;
};

interface FakeWatch {
  readonly call: ServerCall;
  readonly from: string;
  readonly to: string;
}

/** See the module description. */
export class FakeEtcd {
  readonly timers: Timers;
  readonly members: readonly MemberAddress[];
  /** Paths that were called, in order, with the port of the member. */
  readonly calls: string[] = [];
  /** The revisions that lists were asked for; "0" is the newest. */
  readonly listed: string[] = [];
  readonly leases = new Set<string>();
  /** Ports of members that answer nobody. */
  readonly down = new Set<number>();
  clusterId = "14841639068965178418";
  revision = 1;
  compacted = 0;
  /** Watches are told so many events at once; more come in fragments. */
  fragmentEvents = Infinity;
  /** Nothing is answered on streams. */
  isSilent = false;
  /** Every watch is told that its place is gone. */
  loses = false;
  /** Whoever shows none of the tokens is refused; absent: everybody may. */
  user: { readonly name: string; readonly password: string } | undefined;
  /** What the next calls of a path answer. */
  readonly failures = new Map<string, GrpcError[]>();
  #tokens = new Set<string>();
  #given = 0;
  /** Beyond what a number can hold. */
  #nextLease = 7_587_887_887_887_887_001n;
  readonly #store = new Map<string, KeyValue>();
  readonly #history: { revision: number; events: FakeEvent[] }[] = [];
  readonly #watches = new Set<FakeWatch>();
  readonly #connections = new Map<Connection, number>();
  #waiting: { readonly isSo: () => boolean; resolve(): void }[] = [];

  constructor(timers: Timers, members = 1) {
    this.timers = timers;
    this.members = Array.from({ length: members }, (_, i) => ({
      host: "etcd",
      port: 2379 + i,
      isTls: false,
    }));
  }

  get keys(): readonly string[] {
    return [...this.#store.keys()].sort();
  }

  get watchCount(): number {
    return this.#watches.size;
  }

  /** A client of it, in its time. */
  client(options: Partial<EtcdClientOptions> = {}): EtcdClient {
    const { members, connect, timers } = this;
    const random = () => 0;
    return new EtcdClient({ members, connect, timers, random, ...options });
  }

  readonly connect: ConnectMember = async (member, _signal, use) => {
    await Promise.resolve();
    if (this.down.has(member.port)) {
      throw new GrpcError(StatusCode.UNAVAILABLE, `no etcd on ${member.port}`);
    }
    const [near, far] = MemoryStream.pair("");
    this.#serve(far, member.port);
    return use(near);
  };

  /** Settles when something that happens here has made it so. */
  until(isSo: () => boolean): Promise<void> {
    if (isSo()) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ isSo, resolve }));
  }

  /** Writes or, without a value, deletes; all of them at one revision. */
  change(changes: Readonly<Record<string, string | undefined>>): void {
    this.revision++;
    const events = Object.entries(changes).flatMap(([key, value]) =>
      value === undefined
        ? this.#erase(key)
        : this.#write(ENCODER.encode(key), ENCODER.encode(value), "0")
    );
    this.#publish(events);
  }

  compact(): void {
    this.compacted = this.revision;
  }

  /** Another store altogether, as after a backup was restored. */
  restore(entries: Readonly<Record<string, string>>, revision: number): void {
    this.#store.clear();
    this.#history.length = 0;
    this.revision = revision - 1;
    this.change(entries);
    this.#history.length = 0;
  }

  /** Ends all watches with a status. */
  endWatches(code: StatusCode, message: string): void {
    for (const { call } of [...this.#watches]) call.finish({ code, message });
    this.#watches.clear();
  }

  /** Says something on all watches that etcd may say by itself. */
  say(response: Partial<WatchResponse>): void {
    for (const { call } of this.#watches) this.#answer(call, response);
  }

  expire(lease: string): void {
    this.leases.delete(lease);
    const keys = [...this.#store].filter(([, kv]) => kv.lease === lease);
    if (keys.length === 0) return;
    this.revision++;
    this.#publish(keys.flatMap(([key]) => this.#erase(key)));
  }

  /** As after a restart of the members. */
  forgetTokens(): void {
    this.#tokens.clear();
  }

  /** A member goes away in the middle of everything. */
  kill(port: number): void {
    this.down.add(port);
    for (const [connection, its] of this.#connections) {
      if (its === port) connection.abort(0, "killed");
    }
  }

  // --- Serving -------------------------------------------------------------------

  #serve(stream: MemoryStream, port: number): void {
    const connection: Connection = openServerConnection(stream, {
      serves: this.#methods(port),
      timers: this.timers,
      events: { onClosed: () => this.#connections.delete(connection) },
    });
    this.#connections.set(connection, port);
  }

  #methods(port: number): Record<string, MethodHandler> {
    const header = () => this.#header();
    const { range, put, deleteRange, txn } = KV_METHODS;
    const { authenticate } = AUTH_METHODS;
    return {
      [range]: this.#unary(
        [range, port, RangeRequest, RangeResponse],
        (request) => this.#range(request),
      ),
      [put]: this.#unary(
        [put, port, PutRequest, PutResponse],
        (request) => this.#put(request),
      ),
      [deleteRange]: this.#unary(
        [deleteRange, port, DeleteRangeRequest, DeleteRangeResponse],
        ({ key }) => {
          this.change({ [DECODER.decode(key)]: undefined });
          return header();
        },
      ),
      [txn]: this.#unary(
        [txn, port, TxnRequest, TxnResponse],
        (request) => {
          const succeeded = request.compare.every((one) => this.#holds(one));
          const ops = succeeded ? request.success : request.failure;
          this.revision++;
          this.#publish(ops.flatMap((op) => this.#do(op)));
          return { ...header(), succeeded };
        },
      ),
      [authenticate]: this.#unary(
        [
          authenticate,
          port,
          AuthenticateRequest,
          AuthenticateResponse,
        ],
        (request) => this.#authenticate(request),
      ),
      ...this.#leaseMethods(port),
      [WATCH_METHODS.watch]: (call) => this.#watch(call, port),
      [LEASE_METHODS.leaseKeepAlive]: (call) => this.#keepAlive(call, port),
    };
  }

  #leaseMethods(port: number): Record<string, MethodHandler> {
    const { leaseGrant, leaseRevoke } = LEASE_METHODS;
    return {
      [leaseGrant]: this.#unary(
        [leaseGrant, port, LeaseGrantRequest, LeaseGrantResponse],
        ({ TTL }) => {
          const ID = `${this.#nextLease++}`;
          this.leases.add(ID);
          return { ID, TTL, error: "" };
        },
      ),
      [leaseRevoke]: this.#unary(
        [leaseRevoke, port, LeaseRevokeRequest, LeaseRevokeResponse],
        ({ ID }) => {
          if (!this.leases.has(ID)) throw leaseNotFound();
          this.expire(ID);
          return this.#header();
        },
      ),
    };
  }

  #unary<Request, Answer>(
    [path, port, request, answer]: readonly [
      path: string,
      port: number,
      request: MessageDecoder<Request>,
      answer: { encode(answer: Answer): Uint8Array },
    ],
    serve: (request: Request) => Answer,
  ): MethodHandler {
    return unaryMethod((bytes, call) => {
      this.#note(`${path} ${port}`);
      if (path !== AUTH_METHODS.authenticate) this.#admit(call);
      const failure = this.failures.get(path)?.shift();
      if (failure !== undefined) throw failure;
      const said = serve(request.decode(bytes));
      queueMicrotask(() => this.#happened());
      return Promise.resolve(answer.encode(said));
    });
  }

  #admit({ metadata }: ServerCall): void {
    if (this.user === undefined) return;
    const token = metadata.text("token");
    if (token === undefined) {
      throw new GrpcError(
        StatusCode.INVALID_ARGUMENT,
        "etcdserver: user name is empty",
      );
    }
    if (this.#tokens.has(token)) return;
    throw new GrpcError(
      StatusCode.UNAUTHENTICATED,
      "etcdserver: invalid auth token",
    );
  }

  #authenticate({ name, password }: { name: string; password: string }) {
    if (this.user === undefined) {
      throw new GrpcError(
        StatusCode.FAILED_PRECONDITION,
        "etcdserver: authentication is not enabled",
      );
    }
    if (name !== this.user.name || password !== this.user.password) {
      throw new GrpcError(
        StatusCode.INVALID_ARGUMENT,
        "etcdserver: authentication failed, invalid user ID or password",
      );
    }
    const token = `token.${++this.#given}`;
    this.#tokens.add(token);
    return { token };
  }

  #note(call: string): void {
    this.calls.push(call);
    this.#happened();
  }

  #happened(): void {
    const settled = this.#waiting.filter(({ isSo }) => isSo());
    this.#waiting = this.#waiting.filter((one) => !settled.includes(one));
    for (const { resolve } of settled) resolve();
  }

  // --- Keys ----------------------------------------------------------------------

  #header() {
    const { clusterId, revision } = this;
    return { header: { clusterId, memberId: "1", revision: `${revision}` } };
  }

  #range(request: RangeRequest) {
    this.listed.push(`${request.revision}`);
    if (Number(request.revision) !== 0 && this.compacted > 0) {
      throw new GrpcError(
        StatusCode.OUT_OF_RANGE,
        "etcdserver: mvcc: required revision has been compacted",
      );
    }
    const from = DECODER.decode(request.key);
    const to = DECODER.decode(request.rangeEnd);
    const limit = Number(request.limit) || Infinity;
    const found = this.keys
      .filter((key) => to === "" ? key === from : isWithin(key, from, to));
    const kvs = found.slice(0, limit).map((key) => this.#store.get(key)!);
    return { ...this.#header(), kvs, more: found.length > limit };
  }

  #put(request: PutRequest) {
    this.#needLease(request);
    this.revision++;
    this.#publish(this.#do({ requestPut: request }));
    return this.#header();
  }

  #needLease({ lease }: PutRequest): void {
    if (lease !== "0" && !this.leases.has(lease)) throw leaseNotFound();
  }

  #do({ requestPut: put, requestDeleteRange: erase }: RequestOp): FakeEvent[] {
    if (put === undefined) return this.#erase(DECODER.decode(erase?.key));
    this.#needLease(put);
    return this.#write(put.key, put.value, put.lease);
  }

  #holds({ key, createRevision, modRevision }: Compare): boolean {
    const kv = this.#store.get(DECODER.decode(key));
    return modRevision === undefined
      ? (kv?.createRevision ?? "0") === createRevision
      : (kv?.modRevision ?? "0") === modRevision;
  }

  #write(key: Uint8Array, value: Uint8Array, lease: string): FakeEvent[] {
    const name = DECODER.decode(key);
    const modRevision = `${this.revision}`;
    const createRevision = this.#store.get(name)?.createRevision ?? modRevision;
    const kv = { key, value, lease, modRevision, createRevision };
    this.#store.set(name, kv);
    return [{ type: 0, kv }];
  }

  #erase(name: string): FakeEvent[] {
    if (!this.#store.delete(name)) return [];
    const key = ENCODER.encode(name);
    const value = new Uint8Array();
    const modRevision = `${this.revision}`;
    return [{
      type: 1,
      kv: { key, value, modRevision, createRevision: "0", lease: "0" },
    }];
  }

  // --- Streams -------------------------------------------------------------------

  #publish(events: FakeEvent[]): void {
    if (events.length === 0) return;
    this.#history.push({ revision: this.revision, events });
    for (const watch of this.#watches) this.#tell(watch, events);
    this.#happened();
  }

  #tell({ call, from, to }: FakeWatch, all: readonly FakeEvent[]): void {
    const events = all
      .filter(({ kv }) => isWithin(DECODER.decode(kv.key), from, to));
    if (events.length === 0) return;
    while (events.length > this.fragmentEvents) {
      const some = events.splice(0, this.fragmentEvents);
      this.#answer(call, { events: some, fragment: true });
    }
    this.#answer(call, { events });
  }

  #answer(call: ServerCall, response: Partial<WatchResponse>): void {
    if (this.isSilent) return;
    const whole = { ...this.#header(), ...response } as WatchResponse;
    call.sendMessage(WatchResponse.encode(whole));
  }

  #watch(call: ServerCall, port: number) {
    this.#note(`${WATCH_METHODS.watch} ${port}`);
    this.#admit(call);
    let watch: FakeWatch | undefined;
    const end = () => {
      if (watch !== undefined) this.#watches.delete(watch);
      this.#happened();
    };
    const hear = ({ createRequest, progressRequest }: WatchRequest) => {
      if (progressRequest) {
        this.#note("progress");
        return this.#answer(call, { watchId: "-1" });
      }
      const { key, rangeEnd, startRevision } = createRequest!;
      const start = Number(startRevision);
      this.#answer(call, { created: true });
      if (start <= this.compacted || this.loses) {
        const compactRevision = `${Math.max(this.compacted, start)}`;
        const header = { ...this.#header().header, revision: "0" };
        return this.#answer(call, { canceled: true, compactRevision, header });
      }
      watch = { call, from: DECODER.decode(key), to: DECODER.decode(rangeEnd) };
      for (const { revision, events } of this.#history) {
        if (revision >= start) this.#tell(watch, events);
      }
      this.#watches.add(watch);
      this.#happened();
    };
    return this.#streamOf(call, WatchRequest, hear, end);
  }

  #keepAlive(call: ServerCall, port: number) {
    this.#note(`${LEASE_METHODS.leaseKeepAlive} ${port}`);
    this.#admit(call);
    const hear = ({ ID }: { readonly ID: string }) => {
      this.#note(`renew ${ID}`);
      if (this.isSilent) return;
      const TTL = this.leases.has(ID) ? "15" : "0";
      call.sendMessage(LeaseKeepAliveResponse.encode({ ID, TTL }));
    };
    return this.#streamOf(call, LeaseKeepAliveRequest, hear, () => {});
  }

  #streamOf<Request>(
    call: ServerCall,
    codec: MessageDecoder<Request>,
    hear: (request: Request) => void,
    onCancel: () => void,
  ) {
    const reader = new MessageReader({
      encoding: encodingOf(call.metadata),
      onMessage: (message) => hear(codec.decode(message)),
    });
    return {
      onBody: (chunk: Uint8Array) => {
        reader.push(chunk);
        call.consumed(chunk.length);
      },
      onHalfClose() {},
      onWritable() {},
      onCancel,
    };
  }
}

function isWithin(key: string, from: string, to: string): boolean {
  return key >= from && (to === "\0" || key < to);
}

function leaseNotFound(): GrpcError {
  return new GrpcError(
    StatusCode.NOT_FOUND,
    "etcdserver: requested lease not found",
  );
}
