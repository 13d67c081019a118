/**
 * A dial that a caller asks of this program and that this program asks of a
 * server: the common part of a relay on a node and of a gateway in front of
 * several servers.
 *
 * @module
 */

import {
  INTERNAL_ERROR,
  reportInternalError,
  unawaited,
} from "../platform/errors/internal_errors.ts";
import type { DialAnswer } from "../proto/link/dial_handler.ts";
import { type DialWishes, wishesOf } from "../proto/link/dial_wishes.ts";
import type { PendingDial } from "../proto/link/link.ts";
import type { ConnectionId } from "../proto/peer/connection_id.ts";
import { DialError, type DialTarget } from "../proto/peer/dial_error.ts";
import { type DialFailure, TunnelDialError } from "./dial_error.ts";
import type { TraceContext } from "../proto/peer/trace_context.ts";
import type { TunnelDialer } from "./tunnel_dialer.ts";

/** The request to us. */
interface RelayedDial extends DialWishes {
  readonly target: DialTarget;
  /** What the caller gave, if it gave one. */
  readonly id?: ConnectionId | undefined;
  readonly trace?: TraceContext | undefined;
  readonly timeoutMs?: number;
  /** See `DialContext.takeEarlyData`. */
  takeEarlyData(): Uint8Array;
}

/**
 * Dials over `dialer`, and answers with the outcome.
 *
 * @param failed For the log: the error, unless it is an internal one.
 */
export function relayDial(
  dialer: TunnelDialer,
  asked: RelayedDial,
  answer: DialAnswer,
  failed: (error: DialError) => void = () => {},
): PendingDial {
  const abort = new AbortController();
  // Sent when there is a connection; the bytes under the view are not kept.
  const earlyData = asked.takeEarlyData().slice();
  const { target, id, trace, timeoutMs } = asked;
  const dialed = dialer.dial({
    target,
    ...wishesOf(asked),
    ...{ id, trace, timeoutMs },
    earlyData: earlyData.length === 0 ? undefined : earlyData,
    signal: abort.signal,
  }).then(
    (conduit) => answer.connected(conduit),
    (error) => {
      const told = asDialError(error);
      if (!abort.signal.aborted) failed(told);
      answer.failed(told);
    },
  );
  unawaited("dial", dialed);
  return { cancel: () => abort.abort() };
}

/** In the words of answers. */
const REASONS: Readonly<Record<DialFailure, DialError["reason"]>> = {
  endpoint: "endpoint",
  timeout: "timeout",
  context: "cancelled",
  dialclosed: "dial-closed",
  tunnelclosed: "link-lost",
  // There is no server to ask.
  streamsetup: "no-agent",
};

function asDialError(error: unknown): DialError {
  if (!(error instanceof TunnelDialError)) {
    reportInternalError("dial", error);
    return new DialError("endpoint", INTERNAL_ERROR);
  }
  if (error.cause instanceof DialError) return error.cause;
  return new DialError(REASONS[error.reason], error.message);
}
