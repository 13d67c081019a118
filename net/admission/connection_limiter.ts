/**
 * Counts all connections to a process, by source and together, and decides
 * which may stay.
 *
 * Work and memory per connection is a handful of numbers; a source is forgotten
 * with its last connection (its resets a while later), so that the table of
 * sources is never longer than that of connections.
 *
 * Reading order: `ConnectionLimiter.arrive`, then `AdmittedConnection`; `Penalty` for sources that break rules.
 *
 * @module
 */

import type { SharedLimits } from "../../proto/streams/abuse_limits.ts";
import { TokenBucket } from "../../proto/streams/token_bucket.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { setNewest } from "../../proto/sync/newest.ts";
import { Penalty, WEIGHT_OF_UNAUTHENTICATED } from "./penalty.ts";
import {
  type ConnectionLimit,
  type ConnectionLimits,
  type LimitPlan,
  type LimitScope,
  UNAUTHENTICATED_BYTES_MAX,
} from "./connection_limits.ts";
import { sourceOf } from "./source.ts";

/**
 * Sources without a connection whose resets are remembered: a peer that
 * reconnects gets no fresh budget. The source that was quiet longest is
 * forgotten first.
 */
export const QUIET_SOURCES_MAX = 4_096;

/** Processes that are remembered for their faults; quietest forgotten first. */
export const FAULTY_PROCESSES_MAX = 256;

/** What a `ConnectionLimiter` needs from outside. */
export interface ConnectionLimiterOptions {
  readonly plan: LimitPlan;
  readonly clock: Clock;
  /** A limit was reached, and a connection refused or ended for it. */
  readonly reached: (limit: ConnectionLimit, scope: LimitScope) => void;
  /**
   * A source or a process has broken rules too often and is slowed down; see
   * `Penalty`.
   */
  readonly penalized?: (name: string) => void;
}

/** What one source, or all of them, hold now. */
class Account {
  connections = 0;
  streams = 0;
  headerBytes = 0;
  /** In the order in which they came. */
  readonly unauthenticated = new Set<AdmittedConnection>();
  readonly resets: TokenBucket;
  readonly handshakes: TokenBucket;
  readonly work: TokenBucket;
  readonly penalty: Penalty;

  constructor(readonly limits: ConnectionLimits, nowMs: number) {
    this.penalty = new Penalty(nowMs);
    this.resets = new TokenBucket(limits.resets, nowMs);
    this.handshakes = new TokenBucket(limits.handshakes, nowMs);
    this.work = new TokenBucket(limits.work, nowMs);
  }
}

export class ConnectionLimiter {
  readonly #all: Account;
  readonly #allAlone: readonly Account[];
  readonly #host: Host;
  readonly #sources = new Map<string, Account>();
  /** Sources of {@linkcode QUIET_SOURCES_MAX}, the quietest first. */
  readonly #quiet = new Map<string, Account>();
  /** Of {@linkcode FAULTY_PROCESSES_MAX}. */
  readonly #processes = new Map<number, Penalty>();

  constructor(private readonly options: ConnectionLimiterOptions) {
    this.#all = new Account(options.plan.all, options.clock.now());
    this.#allAlone = [this.#all];
    this.#host = {
      nowMs: () => options.clock.now(),
      left: (name) => this.#forget(name),
      reached: (limit, account) =>
        options.reached(limit, this.#scopeOf(account, limit)),
    };
  }

  /** How many are connected. */
  get connections(): number {
    return this.#all.connections;
  }

  /** How many of them are unauthenticated. */
  get unauthenticated(): number {
    return this.#all.unauthenticated.size;
  }

  /** How many sources they have. */
  get sources(): number {
    return this.#sources.size;
  }

  /**
   * A peer has connected to a port where all show a certificate, or where only
   * known peers can connect: its source has no penalty, as all peers behind it
   * are known, too.
   *
   * @param remoteAddress `ip:port`; `undefined` for a unix socket, whose peers
   *   are known by its mode.
   * @param close Ends the connection at once, and makes `leave` be called.
   * @param process At the other end of a unix socket. Each has its own penalty.
   * @returns `undefined`: there is no room, close it.
   */
  enter(
    remoteAddress: string | undefined,
    close: () => void,
    process?: number,
  ): AdmittedConnection | undefined {
    const admitted = this.#admit(remoteAddress, close);
    if (process !== undefined) this.#watch(admitted, process);
    if (admitted === undefined || !admitted.isUnauthenticated) return admitted;
    if (admitted.takeHandshake()) return admitted;
    admitted.leave();
    return undefined;
  }

  /**
   * A peer has connected to a port that is open to all, and has yet to call
   * `takeHandshake`. Its source may be slowed down.
   *
   * @param remoteAddress As `enter`.
   */
  arrive(
    remoteAddress: string,
    close: () => void,
  ): AdmittedConnection | undefined {
    const admitted = this.#admit(remoteAddress, close);
    if (admitted === undefined) return undefined;
    const name = sourceOf(remoteAddress);
    const { penalty } = this.#sources.get(name)!;
    admitted.watch(penalty, () => this.options.penalized?.(name));
    return admitted;
  }

  #watch(admitted: AdmittedConnection | undefined, process: number): void {
    const processes = this.#processes;
    const penalty = processes.get(process) ??
      new Penalty(this.options.clock.now());
    admitted?.watch(penalty, () => {
      this.options.penalized?.(`process ${process}`);
    }, () => setNewest(processes, process, penalty, FAULTY_PROCESSES_MAX));
  }

  #admit(
    remoteAddress: string | undefined,
    close: () => void,
  ): AdmittedConnection | undefined {
    const name = remoteAddress && sourceOf(remoteAddress);
    const source = name === undefined ? undefined : this.#accountOf(name);
    if (!this.#hasRoom(source, "source") || !this.#hasRoom(this.#all, "all")) {
      if (name !== undefined) this.#forget(name);
      return undefined;
    }
    if (name === undefined || source === undefined) {
      return new AdmittedConnection(
        this.#allAlone,
        close,
        this.#host,
        undefined,
      );
    }
    this.#makeWay(source, "source");
    this.#makeWay(this.#all, "all");
    // It may have lost its last connection to make room for this one.
    this.#quiet.delete(name);
    this.#sources.set(name, source);
    const admitted = new AdmittedConnection(
      [source, this.#all],
      close,
      this.#host,
      name,
    );
    admitted.wait();
    return admitted;
  }

  /**
   * Room for one connection more, if need be instead of an unauthenticated
   * peer's.
   */
  #hasRoom(account: Account | undefined, scope: LimitScope): boolean {
    if (account === undefined) return true;
    const { connections, limits, unauthenticated } = account;
    if (connections < limits.connections) return true;
    this.options.reached("connections", scope);
    const [oldest] = unauthenticated;
    oldest?.evict();
    return oldest !== undefined;
  }

  /** A penalty is one source's, or one process's, and never everybody's. */
  #scopeOf(account: Account | undefined, limit: ConnectionLimit): LimitScope {
    if (limit === "faults") return "source";
    if (account === undefined) return "connection";
    return account === this.#all ? "all" : "source";
  }

  /** Room for one unauthenticated peer more. */
  #makeWay({ unauthenticated, limits }: Account, scope: LimitScope): void {
    if (unauthenticated.size < limits.unauthenticated) return;
    this.options.reached("unauthenticated_connections", scope);
    const [oldest] = unauthenticated;
    oldest?.evict();
  }

  #accountOf(name: string): Account {
    const account = this.#sources.get(name) ?? this.#quiet.get(name) ??
      new Account(this.options.plan.source, this.options.clock.now());
    this.#quiet.delete(name);
    this.#sources.set(name, account);
    return account;
  }

  #forget(name: string): void {
    const account = this.#sources.get(name);
    if (account === undefined || account.connections > 0) return;
    this.#sources.delete(name);
    setNewest(this.#quiet, name, account, QUIET_SOURCES_MAX);
  }
}

/** What an `AdmittedConnection` needs of its limiter. */
interface Host {
  nowMs(): number;
  left(source: string): void;
  /** @param account Whose limit; `undefined`: the connection's own. */
  reached(limit: ConnectionLimit, account: Account | undefined): void;
}

const nothing = () => {};

interface Knowledge {
  readonly mayGo?: boolean;
  readonly looks?: number | undefined;
}

/** One connection, as long as it lasts. */
export class AdmittedConnection implements SharedLimits {
  /**
   * Called before a connection is closed because its peer reads too slowly: the
   * peer can still receive what was sent, and its own bytes are no longer read.
   */
  linger: () => void = nothing;
  #isHere = true;
  #hasShaken = false;
  #isGuilty = false;
  #penalty: Penalty | undefined;
  #penalized = nothing;
  #remember = nothing;
  #bytes = 0;

  /** @param accounts Its source's, if it has one, and everybody's. */
  constructor(
    private readonly accounts: readonly Account[],
    private readonly close: () => void,
    private readonly host: Host,
    private readonly source: string | undefined,
  ) {
    for (const account of accounts) account.connections++;
  }

  /** Whether it is unauthenticated. */
  get isUnauthenticated(): boolean {
    return this.accounts[0]!.unauthenticated.has(this);
  }

  /** The penalty of its source, if there is one. */
  get penalty(): Penalty | undefined {
    return this.#penalty;
  }

  /**
   * @param penalized A fault of this one was one too many.
   * @param remember There was a fault.
   */
  watch(
    penalty: Penalty,
    penalized: () => void,
    remember: () => void = nothing,
  ): void {
    this.#penalty = penalty;
    this.#penalized = penalized;
    this.#remember = remember;
  }

  /** It has to authenticate. */
  wait(): void {
    for (const { unauthenticated } of this.accounts) unauthenticated.add(this);
  }

  /**
   * It is authenticated.
   *
   * @param how `mayGo`: it makes room for others all the same. `looks`: that many
   *   handshakes of its source before this one only looked, and were no faults.
   */
  known({ mayGo = false, looks = 0 }: Knowledge = {}): void {
    if (!this.isUnauthenticated) return;
    for (const { unauthenticated, handshakes } of this.accounts) {
      if (!mayGo) unauthenticated.delete(this);
      if (this.#hasShaken) handshakes.refund();
    }
    this.#hasShaken = false;
    const forgiven = looks * WEIGHT_OF_UNAUTHENTICATED;
    this.#penalty?.ease(this.host.nowMs(), forgiven);
  }

  /**
   * It is ended for its own fault, which its source is remembered for. Once for
   * each connection.
   */
  fault(weight = 1): void {
    if (this.#isGuilty || this.#penalty === undefined) return;
    this.#isGuilty = true;
    this.#remember();
    if (this.#penalty.fault(this.host.nowMs(), weight)) this.#penalized();
  }

  /** Its source is slowed down, and too many wait from there already. */
  refusePenalized(): void {
    this.host.reached("faults", this.accounts[0]);
  }

  /** Its place is needed for another connection, which is not its fault. */
  evict(): void {
    this.#hasShaken = false;
    this.leave();
    this.close();
  }

  /** The connection is over. Harmless a second time. */
  leave(): void {
    if (!this.#isHere) return;
    this.#isHere = false;
    if (this.#hasShaken && this.isUnauthenticated) {
      this.fault(WEIGHT_OF_UNAUTHENTICATED);
    }
    for (const account of this.accounts) {
      account.unauthenticated.delete(this);
      account.connections--;
    }
    if (this.source !== undefined) this.host.left(this.source);
  }

  takeStream(): boolean {
    const full = this.accounts.find(({ streams, limits }) =>
      streams >= limits.streams
    );
    if (full !== undefined) return this.#refuse("streams", full);
    for (const account of this.accounts) account.streams++;
    return true;
  }

  giveStream(): void {
    for (const account of this.accounts) account.streams--;
  }

  takeHeaderBytes(bytes: number): boolean {
    const full = this.accounts.find(({ headerBytes, limits }) =>
      headerBytes + bytes > limits.headerBytes
    );
    if (full !== undefined) return this.#refuse("header_bytes", full);
    for (const account of this.accounts) account.headerBytes += bytes;
    return true;
  }

  giveHeaderBytes(bytes: number): void {
    for (const account of this.accounts) account.headerBytes -= bytes;
  }

  takeReset(): boolean {
    return this.#spend("resets", 1);
  }

  /** It will do a handshake. @returns false: one too many. */
  takeHandshake(): boolean {
    return this.#hasShaken = this.#spend("handshakes", 1);
  }

  /**
   * An unauthenticated peer has sent so much. @returns false: it was too much.
   */
  takeBytes(bytes: number): boolean {
    this.#bytes += bytes;
    if (this.#bytes <= UNAUTHENTICATED_BYTES_MAX) return true;
    this.host.reached("bytes", undefined);
    this.fault();
    return false;
  }

  /**
   * An unauthenticated peer has made so much work. @returns false: it was too
   * much.
   */
  takeWork(ms: number): boolean {
    if (this.#spend("work", ms)) return true;
    this.fault();
    return false;
  }

  #spend(limit: "resets" | "handshakes" | "work", tokens: number): boolean {
    const nowMs = this.host.nowMs();
    const empty = this.accounts.find((account) =>
      !account[limit].spend(nowMs, tokens)
    );
    return empty === undefined || this.#refuse(limit, empty);
  }

  #refuse(limit: ConnectionLimit, account: Account): false {
    this.host.reached(limit, account);
    return false;
  }
}
