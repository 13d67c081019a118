/**
 * One connection of a bench: dials a bench target, asks for a service, and
 * reads and writes the bytes after the answer.
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
import { messageOf } from "../../platform/errors/error_code.ts";
import { TunnelDialError } from "../../client/dial_error.ts";
import { TunnelConn } from "../../client/tunnel_conn.ts";
import type { TunnelDialer } from "../../client/tunnel_dialer.ts";

/** The route of a bench. */
export interface BenchRoute {
  readonly dialer: TunnelDialer;
  /** `host:port` of another bench target than the agent's own. */
  readonly address?: string;
  /** The `host` identifier of the only node wanted. */
  readonly node?: string;
  /** Limit on each dial. */
  readonly timeoutMs?: number;
}

const NOTHING = new Uint8Array(0);

/** What is read before the answer's line has ended. */
const ANSWER_BYTES = 4_096;

export class BenchConn {
  private constructor(
    /** The program that answered. */
    readonly host: BenchHost,
    private readonly conn: TunnelConn,
    /** Came in one piece with the answer. */
    private early: Uint8Array,
  ) {}

  /**
   * @param signal Gives the connection up, also once it is open.
   * @param payload Sent at once behind the request.
   * @returns An open connection: the target has granted the request.
   * @throws {TunnelDialError | BenchError}
   */
  static async open(
    { address, dialer, node, timeoutMs }: BenchRoute,
    service: BenchService,
    signal: AbortSignal,
    payload = NOTHING,
  ): Promise<BenchConn> {
    const conduit = await dialer.dial({
      target: { protocol: "tcp", address: address ?? BENCH_ADDRESS },
      earlyData: joinedBytes([benchRequest(service), payload]),
      signal,
      node,
      timeoutMs,
    }).catch((error) => {
      throw address === undefined ? withoutTarget(error) : error;
    });
    const conn = new TunnelConn(conduit);
    const giveUp = () => conn.close();
    signal.addEventListener("abort", giveUp);
    conn.closed.then(() => signal.removeEventListener("abort", giveUp));
    if (signal.aborted) giveUp();
    try {
      return await BenchConn.#granted(conn);
    } catch (error) {
      conn.close();
      throw error instanceof BenchError ? error : broken(messageOf(error));
    }
  }

  static async #granted(conn: TunnelConn): Promise<BenchConn> {
    const lines = new BenchLineReader();
    const chunk = new Uint8Array(ANSWER_BYTES);
    for (;;) {
      const count = await conn.read(chunk);
      const line = lines.push(chunk.subarray(0, count ?? 0));
      if (count !== null && line === undefined) continue;
      const host = parseBenchAnswer(line?.text ?? "");
      if (host === undefined) throw broken(NO_BENCH_TARGET);
      return new BenchConn(host, conn, chunk.slice(line!.taken, count!));
    }
  }

  /** @throws {BenchError} Also when the target has ended it. */
  async read(into: Uint8Array): Promise<number> {
    const { early } = this;
    if (early.length > 0) {
      const taken = Math.min(early.length, into.length);
      into.set(early.subarray(0, taken));
      this.early = early.subarray(taken);
      return taken;
    }
    const count = await orBroken(this.conn.read(into));
    if (count === null) throw broken("the target has ended it");
    return count;
  }

  /** @throws {BenchError} */
  write(bytes: Uint8Array): Promise<void> {
    return orBroken(this.conn.write(bytes));
  }

  /** Ends it in order. @returns When it is over. */
  async end(): Promise<void> {
    this.conn.closeWrite();
    await this.conn.closed;
  }
}

async function orBroken<Value>(moving: Promise<Value>): Promise<Value> {
  try {
    return await moving;
  } catch (error) {
    throw broken(`the connection broke: ${messageOf(error)}`);
  }
}

function broken(why: string): BenchError {
  return new BenchError(`Cannot bench: ${why}`);
}

const NO_BENCH_TARGET = "what answers at the target is no bench target; " +
  "start one with tunnel bench --serve";

/**
 * An agent without a bench target takes the name for one of the network's: its
 * resolver's error is translated into that cause.
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
