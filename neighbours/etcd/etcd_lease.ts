/**
 * Holds a lease as long as it runs, and a new one when that is lost.
 *
 * The lease runs on etcd's clock, so only etcd knows whether it is alive: a
 * member that does not answer is left for the next one and the same lease is
 * renewed there. When etcd says that it is gone, its keys are gone as well;
 * then there is a new lease, and its holder writes the keys again.
 *
 * Reading order: `start`, `#holdOne`, `#renew`, `Renewal`.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { EtcdClient, EtcdStream } from "./client.ts";
import { EtcdError, etcdTrouble, failureOf } from "./errors.ts";
import {
  LEASE_METHODS,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
} from "./etcd_messages.ts";
import { Int64Text } from "./keys.ts";
import { pause } from "../../platform/time/pause.ts";
import {
  type Next,
  type Run,
  supervise,
} from "../../platform/time/supervise.ts";

/**
 * Renewals in the life of a lease: one may be lost with its member, and there
 * is time for another elsewhere.
 */
const RENEWALS = 3;

/** Longest wait after failures to get a lease or to write. */
export const LEASE_RETRY_CAP_MS = 10_000;

export interface EtcdLeaseOptions {
  readonly client: EtcdClient;
  /** What is asked for; etcd may give more. */
  readonly ttlSeconds: number;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /**
   * Writes the keys of the lease.
   *
   * @throws {EtcdError} It is called again, perhaps with another lease.
   */
  readonly write: (lease: Int64Text) => Promise<void>;
  /** Written: now it is there. */
  readonly onHeld: (lease: Int64Text) => void;
  /** It runs on. */
  readonly onRenewed?: () => void;
  /** The lease is gone with all its keys; a new one follows. */
  readonly onLost: () => void;
  /** Not renewed or not written; tried again in `retryMs`. */
  readonly onProblem: (error: EtcdError, retryMs: number) => void;
}

export class EtcdLease {
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #lease: Int64Text | undefined;

  constructor(private readonly options: EtcdLeaseOptions) {}

  start(): void {
    this.#running ??= this.#supervise(
      LEASE_RETRY_CAP_MS,
      (run) => this.#holdOne(run),
    );
  }

  /**
   * Ends the lease and its keys at once.
   *
   * @throws {EtcdError} When etcd could not be asked: then the lease expires.
   */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    const lease = this.#lease;
    this.#lease = undefined;
    if (lease === undefined) return;
    try {
      await this.options.client.revokeLease(lease);
    } catch (error) {
      const isGone = error instanceof EtcdError &&
        error.code === StatusCode.NOT_FOUND;
      if (!isGone) throw error;
    }
  }

  #supervise(
    capMs: number,
    run: (run: Run) => Promise<Next>,
  ): Promise<void> {
    const { timers, random, onProblem } = this.options;
    const { signal } = this.#stopping;
    const problemOf = etcdTrouble;
    return supervise({
      ...{ timers, random, capMs, signal, run, problemOf, onProblem },
    });
  }

  /** One lease, to its end. */
  async #holdOne(run: Run): Promise<Next> {
    const { client, ttlSeconds: wanted, write, onHeld, onLost } = this.options;
    const { lease, ttlSeconds } = await client.grantLease(wanted);
    this.#lease = lease;
    if (this.#stopping.signal.aborted) return "done";
    try {
      await write(lease);
    } catch (error) {
      // Whether it was written or not, it goes with the lease.
      await this.#drop(lease);
      throw error;
    }
    run.succeeded();
    if (this.#stopping.signal.aborted) return "done";
    onHeld(lease);
    await this.#renew(lease, ttlSeconds * 1_000);
    if (this.#stopping.signal.aborted) return "done";
    this.#lease = undefined;
    onLost();
    return "again";
  }

  async #drop(lease: Int64Text): Promise<void> {
    this.#lease = undefined;
    try {
      await this.options.client.revokeLease(lease);
    } catch (error) {
      // The lease expires by itself; the earlier error is reported.
      if (!(error instanceof EtcdError)) throw error;
    }
  }

  /** Settles when etcd says that the lease is gone, or it is stopped. */
  async #renew(lease: Int64Text, ttlMs: number): Promise<void> {
    const { signal } = this.#stopping;
    const intervalMs = ttlMs / RENEWALS;
    await pause(this.options.timers, intervalMs, signal);
    await this.#supervise(
      Math.min(intervalMs, LEASE_RETRY_CAP_MS),
      async (run) => {
        const renewal = new Renewal({
          ...this.options,
          lease,
          intervalMs,
          signal,
          onRenewed: () => {
            run.succeeded();
            this.options.onRenewed?.();
          },
        });
        const problem = await renewal.ended;
        if (problem !== undefined) throw problem;
        return "done";
      },
    );
  }
}

/** What one stream of renewals needs. */
interface RenewalOptions {
  readonly client: EtcdClient;
  readonly timers: Timers;
  readonly lease: Int64Text;
  readonly intervalMs: number;
  readonly signal: AbortSignal;
  readonly onRenewed: () => void;
}

/** Renewals on one member, the first at once. */
class Renewal {
  readonly #ended = Promise.withResolvers<EtcdError | undefined>();
  #stream: EtcdStream | undefined;
  #cancelTimer: () => void = () => {};
  #isOver = false;

  constructor(private readonly options: RenewalOptions) {
    options.signal.addEventListener("abort", this.#onStop);
    options.client.openStream(LEASE_METHODS.leaseKeepAlive, {
      onOpen: (stream) => {
        if (this.#isOver) return stream.cancel();
        this.#stream = stream;
        this.#ask();
      },
      onMessage: (message) => this.#receive(message),
      onEnd: (error) => this.#fail(error),
    });
  }

  /** `undefined`: the lease is gone, or `stop` was called. */
  get ended(): Promise<EtcdError | undefined> {
    return this.#ended.promise;
  }

  #ask(): void {
    const { lease, intervalMs } = this.options;
    this.#stream?.send(LeaseKeepAliveRequest.encode({ ID: lease }));
    this.#after(intervalMs, () => {
      const error = new GrpcError(
        StatusCode.UNAVAILABLE,
        `no answer within ${Math.round(intervalMs)} ms`,
      );
      this.#stream?.blame(error);
      this.#fail(error);
    });
  }

  #receive(bytes: Uint8Array): void {
    if (this.#isOver) return;
    const { TTL } = LeaseKeepAliveResponse.decode(bytes);
    if (BigInt(TTL) <= 0n) return this.#end(undefined);
    this.options.onRenewed();
    this.#after(this.options.intervalMs, () => this.#ask());
  }

  #after(delayMs: number, act: () => void): void {
    this.#cancelTimer();
    const timer = this.options.timers.after(delayMs, act);
    this.#cancelTimer = () => timer.cancel();
  }

  #fail(error: GrpcError): void {
    this.#end(failureOf("renew a lease", error));
  }

  #end(problem: EtcdError | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.options.signal.removeEventListener("abort", this.#onStop);
    this.#cancelTimer();
    this.#stream?.cancel();
    this.#ended.resolve(problem);
  }

  readonly #onStop = () => this.#end(undefined);
}
