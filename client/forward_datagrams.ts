/**
 * A local UDP port whose every caller gets a flow through the tunnel.
 *
 * @module
 */

import { reportInternalError } from "../platform/errors/internal_errors.ts";
import { listenError } from "../net/bind/listen_error.ts";
import {
  type DatagramFlow,
  listenDatagrams,
} from "../net/datagram/datagram_listener.ts";
import { hostPort } from "../proto/peer/host_port.ts";
import { systemTimers } from "../platform/time/system_timers.ts";
import { transfer } from "../proto/transfer/transfer.ts";
import { TunnelDialError } from "./dial_error.ts";
import type { Forward, ForwardOptions } from "./forward.ts";
import { EARLY_BYTES_MAX } from "../proto/link/link.ts";

/** A UDP caller that is silent for so long is gone. */
export const FORWARDED_UDP_IDLE_TIMEOUT_MS = 60_000;

/**
 * How long the datagrams of a caller whose dial failed are dropped before the
 * next one is tried: nobody can tell a UDP caller to stop asking.
 */
export const FORWARDED_REFUSED_PAUSE_MS = 1_000;

/**
 * Opens the port. What a caller says first travels with the dial.
 *
 * @throws {ListenError}
 */
export async function forwardDatagrams(
  options: ForwardOptions,
): Promise<Forward> {
  const { hostname, port } = options;
  const timers = options.timers ?? systemTimers;
  const listener = await listenDatagrams({
    hostname,
    port,
    timers,
    idleTimeoutMs: FORWARDED_UDP_IDLE_TIMEOUT_MS,
    onProblem: options.onProblem,
    async onFlow(flow, caller) {
      try {
        await serve(flow, options);
      } catch (error) {
        timers.after(FORWARDED_REFUSED_PAUSE_MS, () => flow.reset("refused"));
        if (!(error instanceof TunnelDialError)) {
          return reportInternalError("dial", error);
        }
        options.onRefused(error, caller);
      }
    },
  }).catch((error) => {
    throw listenError(hostPort(hostname, port), error);
  });
  return {
    listening: listener.address,
    close() {
      listener.close();
      return Promise.resolve();
    },
  };
}

async function serve(
  flow: DatagramFlow,
  { address, node, oneAgent, timeoutMs, dialer }: ForwardOptions,
): Promise<void> {
  const early = flow.takeFirst(EARLY_BYTES_MAX);
  const far = await dialer.dial({
    target: { protocol: "udp", address },
    node,
    oneAgent,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(early === undefined ? {} : { earlyData: early }),
  });
  await transfer(flow, far);
}
