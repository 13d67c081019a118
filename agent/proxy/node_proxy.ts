/**
 * A service proxy as a process of its own: with a port for whoever looks after
 * it, and an end in order.
 *
 * @module
 */

import { metaHandler } from "../../host/listen/http_endpoints.ts";
import { type ListenAddress, listenHttp } from "../../host/listen/listeners.ts";
import type { Log } from "../../host/process/log.ts";
import { MetricRegistry } from "../../host/process/metrics.ts";
import { registerInternalErrors } from "../../host/process/internal_error_log.ts";
import { registerProcessMetrics } from "../../host/process/process_metrics.ts";
import type { CallRoad } from "../../client/call_road.ts";
import type { RelayOptions } from "../relay/options.ts";
import { Relay } from "../relay/relay.ts";
import { PROXY_PATH } from "./proxy_path.ts";
import { ServiceProxy, type ServiceProxyOptions } from "./service_proxy.ts";

/** What a node's proxy is told. */
export interface NodeProxyOptions extends ServiceProxyOptions {
  /** For health, metrics and `/debug/proxy`. */
  readonly admin: ListenAddress;
  /** At the end of the process; 0 ends what runs at once. */
  readonly drainTimeoutMs: number;
  /** What programs on this machine are passed on, and the way; absent: nothing. */
  readonly relay?: RelayOptions & { readonly road: CallRoad };
}

/** One that is up. */
export interface RunningProxy {
  /** Where it tells about itself. */
  readonly admin: string;
  /** Where the relays listen, if there are any. */
  readonly relay: { readonly xds?: string; readonly connect?: string };
  /** Settles when everything is closed. */
  readonly finished: Promise<void>;
  /** No more clients; what runs goes on for a while. */
  shutdown(): void;
  /** Ends at once. */
  stop(reason: string): void;
  /** Reads all sources again. */
  reload(): void;
}

/**
 * Starts one. Sources that cannot be reached are no error: it goes on trying,
 * and so it does with ports that others have.
 *
 * @throws {ListenError} For its own port; nothing stays open.
 */
export function startNodeProxy(
  options: NodeProxyOptions,
  log: Log,
): RunningProxy {
  const metrics = new MetricRegistry();
  registerProcessMetrics(metrics);
  registerInternalErrors(metrics, "tunnel_proxy");
  const proxy = new ServiceProxy(options, { log, metrics });
  const admin = listenHttp(
    options.admin,
    metaHandler({
      metrics,
      checks: [{ name: "sources-read", problem: () => proxy.problem }],
      style: "agent",
    }, { [PROXY_PATH]: (url) => proxy.answer(url) }),
  );
  const relay = openRelay(options, { log, metrics }, () => admin.close());
  log.info("proxy started", { admin: admin.address, ...relay?.addresses });
  proxy.start();
  const finished = Promise.withResolvers<void>();
  const end = (drainMs: number) => {
    if (drainMs === 0) relay?.close("the proxy is stopping");
    void Promise.all([proxy.stop(drainMs), relay?.drain(drainMs)]).then(() => {
      relay?.close("the proxy has stopped");
      finished.resolve();
    });
  };
  return {
    admin: admin.address,
    relay: relay?.addresses ?? {},
    finished: finished.promise.then(() => admin.close()),
    shutdown: () => end(options.drainTimeoutMs),
    stop: (reason) => {
      log.info(`the proxy stops: ${reason}`);
      end(0);
    },
    reload: () => proxy.reload(),
  };
}

/** @param undo Called when it cannot be opened. */
function openRelay(
  { relay }: NodeProxyOptions,
  tools: { readonly log: Log; readonly metrics: MetricRegistry },
  undo: () => void,
): Relay | undefined {
  if (relay === undefined) return undefined;
  try {
    return new Relay(relay, { ...tools, road: relay.road });
  } catch (error) {
    undo();
    throw error;
  }
}
