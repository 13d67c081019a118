/**
 * A service proxy as a process of its own: with a port for whoever looks after
 * it, and an end in order.
 *
 * @module
 */

import { metaHandler } from "../../host/http_endpoints.ts";
import { type ListenAddress, listenHttp } from "../../host/listeners.ts";
import type { Log } from "../../host/log.ts";
import { MetricRegistry } from "../../host/metrics.ts";
import { registerProcessMetrics } from "../../host/process_metrics.ts";
import { PROXY_PATH } from "./proxy_path.ts";
import { ServiceProxy, type ServiceProxyOptions } from "./service_proxy.ts";

/** What a node's proxy is told. */
export interface NodeProxyOptions extends ServiceProxyOptions {
  /** For health, metrics and `/debug/proxy`. */
  readonly admin: ListenAddress;
  /** At the end of the process; 0 ends what runs at once. */
  readonly drainTimeoutMs: number;
}

/** One that is up. */
export interface RunningProxy {
  /** Where it tells about itself. */
  readonly admin: string;
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
  const proxy = new ServiceProxy(options, { log, metrics });
  const admin = listenHttp(
    options.admin,
    metaHandler({
      metrics,
      checks: [{ name: "sources-read", problem: () => proxy.problem }],
      style: "agent",
    }, { [PROXY_PATH]: (url) => proxy.answer(url) }),
  );
  log.info("proxy started", { admin: admin.address });
  proxy.start();
  const finished = Promise.withResolvers<void>();
  const end = (drainMs: number) =>
    void proxy.stop(drainMs).then(() => finished.resolve());
  return {
    admin: admin.address,
    finished: finished.promise.then(() => admin.close()),
    shutdown: () => end(options.drainTimeoutMs),
    stop: (reason) => {
      log.info(`the proxy stops: ${reason}`);
      end(0);
    },
    reload: () => proxy.reload(),
  };
}
