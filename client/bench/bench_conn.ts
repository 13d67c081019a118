/**
 * One connection of a bench: dials a bench target, asks for a service, and
 * hands on what comes behind the answer.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import {
  BENCH_ADDRESS,
  type BenchHost,
  BenchLineReader,
  benchRequest,
  type BenchService,
  parseBenchAnswer,
} from "../../proto/link/bench_wire.ts";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../proto/transfer/conduit.ts";
import { TunnelDialError } from "../dial_error.ts";
import type { TunnelDialer } from "../tunnel_dialer.ts";

/** Where a bench goes, and how. */
export interface BenchRoute {
  readonly dialer: TunnelDialer;
  /** `host:port` of another bench target than the agent's own. */
  readonly address?: string;
  /** The `host` identifier of the only node wanted. */
  readonly node?: string;
  /** Limit on each dial. */
  readonly timeoutMs?: number;
}

/** What the owner of a {@linkcode BenchConn} receives, once it is open. */
export interface BenchConnEvents {
  /** Bytes behind the answer; they count as passed on. */
  onData(chunk: Uint8Array): void;
  onWritable?(): void;
  /** It is over, through no doing of ours. */
  onBroken(error: BenchError): void;
}

export class BenchConn implements ConduitEvents {
  readonly #line = new BenchLineReader();
  readonly #opened = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<void>();
  #host: BenchHost | undefined;
  #state: "asking" | "open" | "over" = "asking";

  private constructor(
    private readonly conduit: Conduit,
    private readonly events: BenchConnEvents,
  ) {
    conduit.attach(this);
  }

  /**
   * @param payload Sent at once behind the request.
   * @returns An open connection: the target has granted the request.
   * @throws {TunnelDialError | BenchError}
   */
  static async open(
    route: BenchRoute,
    service: BenchService,
    events: BenchConnEvents,
    options: { readonly payload?: Uint8Array; readonly signal?: AbortSignal } =
      {},
  ): Promise<BenchConn> {
    const { address, dialer, node, timeoutMs } = route;
    const { payload, signal } = options;
    const request = benchRequest(service);
    const conduit = await dialer.dial({
      target: { protocol: "tcp", address: address ?? BENCH_ADDRESS },
      earlyData: payload === undefined
        ? request
        : joinedBytes([request, payload]),
      ...(node === undefined ? {} : { node }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(signal === undefined ? {} : { signal }),
    }).catch((error) => {
      throw address === undefined ? withoutTarget(error) : error;
    });
    const conn = new BenchConn(conduit, events);
    const giveUp = () => conn.close();
    if (signal?.aborted) giveUp();
    signal?.addEventListener("abort", giveUp);
    try {
      await conn.#opened.promise;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
    return conn;
  }

  /** Who answered. */
  get host(): BenchHost {
    return this.#host!; // set before anybody gets to see the connection
  }

  /** As `Conduit.write`; takes nothing once the connection is over. */
  write(chunk: Uint8Array): number {
    return this.#state === "open" ? this.conduit.write(chunk) : 0;
  }

  /** Ends it in order. @returns When it is over. */
  async end(): Promise<void> {
    if (this.#state === "open") {
      this.#state = "over";
      this.conduit.end();
    }
    await this.#closed.promise;
  }

  /** Gives it up; nothing is received any more. */
  close(): void {
    const before = this.#state;
    this.#state = "over";
    this.conduit.reset("the bench is over");
    if (before === "asking") {
      this.#opened.reject(new BenchError("the bench was given up"));
    }
  }

  onData(chunk: Uint8Array): void {
    const { length } = chunk;
    if (this.#state === "open") this.events.onData(chunk);
    else if (this.#state === "asking") this.#onAnswer(chunk);
    this.conduit.consumed(length);
  }

  onWritable(): void {
    if (this.#state === "open") this.events.onWritable?.();
  }

  onEnd(): void {
    this.#break(
      this.#state === "asking" ? NO_BENCH_TARGET : "the target has ended it",
    );
  }

  onClose(end: ConduitEnd): void {
    this.#closed.resolve();
    const why = end.kind === "clean" ? "it was closed" : end.reason;
    if (this.#state === "asking") {
      this.#break(end.kind === "clean" ? NO_BENCH_TARGET : why);
    } else this.#break(`the connection broke: ${why}`);
  }

  #onAnswer(chunk: Uint8Array): void {
    const line = this.#line.push(chunk);
    if (line === undefined) return;
    this.#host = parseBenchAnswer(line.text ?? "");
    if (this.#host === undefined) return this.#break(NO_BENCH_TARGET);
    this.#state = "open";
    if (line.taken < chunk.length) {
      this.events.onData(chunk.subarray(line.taken));
    }
    this.#opened.resolve();
  }

  #break(why: string): void {
    const before = this.#state;
    if (before === "over") return;
    this.#state = "over";
    this.conduit.reset("the bench is over");
    const error = new BenchError(`Cannot bench: ${why}`);
    if (before === "asking") this.#opened.reject(error);
    else this.events.onBroken(error);
  }
}

const NO_BENCH_TARGET = "what answers at the target is no bench target; " +
  "start one with tunnel bench --serve";

/**
 * An agent without a bench target takes the name for one of the network's: its
 * resolver's complaint is turned into what it means.
 */
function withoutTarget(error: unknown): unknown {
  if (!(error instanceof TunnelDialError)) return error;
  const name = BENCH_ADDRESS.slice(0, BENCH_ADDRESS.indexOf(":"));
  if (!error.message.includes(`lookup ${name}`)) return error;
  return new BenchError(
    "Cannot bench: the agent has no bench target (Konnectivity's, or an older " +
      "one of ours); run tunnel bench --serve 127.0.0.1:7007 beside it and " +
      "give --target 127.0.0.1:7007",
    { cause: error },
  );
}

/** One sentence for the caller. */
export class BenchError extends Error {
  override readonly name = "BenchError";
}
