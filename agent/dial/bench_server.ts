/**
 * A bench target on a port (`tunnel bench --serve`), for nodes whose agent has
 * none.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { BenchTargets } from "./bench_targets.ts";
import { type ListenAddress, listenTcp } from "../../net/listen/listeners.ts";
import { conduitOf } from "../../net/stream/stream_conduit.ts";
import type { Stream } from "../../net/stream/stream.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { VERSION } from "../../platform/process/version.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { transfer } from "../../proto/transfer/transfer.ts";

/** A bench target that listens. */
export interface BenchServer {
  /** `ip:port`, as bound. */
  readonly address: string;
  /** No new connections. */
  close(): void;
}

/**
 * Opens the port.
 *
 * @param onProblem Trouble with the port, or a connection too many: one line.
 * @throws {ListenError}
 */
export function serveBench(
  at: ListenAddress,
  onProblem: (line: string) => void,
): BenchServer {
  const software = `tunnel/${VERSION}`;
  const targets = new BenchTargets({ agentId: "", software }, systemTimers);
  const serve = async (conn: Stream) => {
    try {
      const target = await targets.dial();
      await transfer(conduitOf(conn), target);
    } catch (error) {
      conn.close();
      if (!(error instanceof DialError)) throw error;
      onProblem(error.message);
    }
  };
  const listener = listenTcp(at, {
    onConnection: (conn) => unawaited("dial", serve(conn), () => conn.close()),
    onProblem,
  });
  return { address: listener.address, close: () => listener.close() };
}
