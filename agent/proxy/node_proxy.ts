/**
 * A service proxy as a process of its own: with a port for whoever looks after
 * it, and an end in order.
 *
 * @module
 */

import { programInfo, type ShowNode } from "../node_facts.ts";
import { proxyWarnings } from "../../services/proxy/status/services_answer.ts";
import type { AdminRoute } from "../../net/admin/admin_api.ts";
import type { TermSource } from "../../net/tls/trust/expiry.ts";
import { RecentEvents, withEvents } from "../../platform/log/recent_events.ts";
import type { ConfigAnswer } from "../../proto/admin/list_answers.ts";
import { actionLog } from "../../net/admin/admin_api.ts";
import { metaHandler } from "../../net/admin/http_endpoints.ts";
import {
  type AdminAccess,
  AdminPort,
  apiBeside,
} from "../../net/listen/admin_port.ts";
import type { HandoverFields } from "../../net/handover/packet_socket.ts";
import type { ListenAddress } from "../../net/listen/listeners.ts";
import { AccessLog, type AccessLogOptions } from "../../policy/access_log.ts";
import type { Log } from "../../platform/log/log.ts";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { registerInternalErrors } from "../../platform/log/internal_error_log.ts";
import { registerProcessMetrics } from "../../platform/metrics/process_metrics.ts";
import { registerBuildInfo } from "../../platform/process/build_info.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { RelayOptions } from "../options.ts";
import { Relay, type RelayEnvironment } from "../relay/relay.ts";
import { ProxyDrain } from "../../services/proxy/proxy_drain.ts";
import { PROXY_STATUS_PATH } from "../../services/proxy/status/proxy_path.ts";
import {
  ServiceProxy,
  type ServiceProxyOptions,
} from "../../services/proxy/service_proxy.ts";

/** What a node's proxy is made of. */
export interface NodeProxyOptions extends ServiceProxyOptions {
  /** For health, metrics and `/debug/proxy`. */
  readonly admin: ListenAddress;
  /** How the admin API is reached; absent: by nobody. */
  readonly adminAccess?: AdminAccess;
  /** At the end of the process; 0 ends what runs at once. */
  readonly drainTimeoutMs: number;
  /** What this node shows to its servers; absent: nothing. */
  readonly identity?: {
    /** Why certificates keep this node from its servers, if they do. */
    readonly problem: string | undefined;
    readonly certificates: readonly TermSource[];
  };
  /** Flags as they are in effect, without secrets; absent: nobody is told. */
  readonly shownFlags?: () => ConfigAnswer["flags"];
  /** What programs on this machine are passed on, and the way; absent: nothing. */
  readonly relay?:
    & RelayOptions
    & Pick<RelayEnvironment, "upstream" | "servers">;
  /** A line for each connection; absent: none. */
  readonly access?: AccessLogOptions;
}

/** One that is up. */
export interface RunningProxy {
  /** Where it tells about itself. */
  readonly admin: string;
  /** Where the relays listen, if there are any. */
  readonly relay: { readonly xds?: string; readonly connect?: string };
  /** Settles when everything is closed. */
  readonly finished: Promise<void>;
  /** Settles when all that is known of is served, or everything is closed. */
  whenReady(): Promise<void>;
  /** It was asked to end, or another process serves. */
  readonly isDraining: boolean;
  /** Ends when nothing runs, or at its timeout; who comes is served. */
  shutdown(why?: string): void;
  /** See `Replaceable.awaitSuccessor`. */
  awaitSuccessor(ms: number): void;
  /** Another process serves: what runs goes on for a while. */
  handedOver(pid: number): void;
  /** See `Replaceable`. */
  readonly memory: Iterable<HandoverFields>;
  recall(part: HandoverFields): void;
  /** See `Replaceable.successorEnded`. */
  successorEnded(): void;
  /** Ends at once. */
  stop(reason: string): void;
  /** Reads all sources again. */
  reload(): void;
}

/**
 * Starts one. Sources that cannot be reached are no error: it goes on trying,
 * and so it does with ports that others have.
 *
 * @param show Makes what people see of it.
 * @throws {ListenError} For its own port; nothing stays open.
 */
export function startNodeProxy(
  options: NodeProxyOptions,
  log: Log,
  show: ShowNode,
): RunningProxy {
  return new NodeProxy(options, log, show).running;
}

/** How often a proxy that starts is asked whether it is ready. */
const READY_LOOK_MS = 20;

class NodeProxy {
  readonly running: RunningProxy;
  readonly #proxy: ServiceProxy;
  readonly #admin: AdminPort;
  readonly #relay: Relay | undefined;
  readonly #drain: ProxyDrain;
  readonly #access: AccessLog | undefined;
  readonly #events = new RecentEvents();

  /** @throws {ListenError | AuditLogError} Nothing stays open. */
  constructor(
    options: NodeProxyOptions,
    output: Log,
    private readonly show: ShowNode,
  ) {
    const log = withEvents(output, this.#events, []);
    const metrics = new MetricRegistry();
    registerProcessMetrics(metrics);
    registerBuildInfo(metrics);
    registerInternalErrors(metrics, "tunnel_proxy");
    const access = this.#access = AccessLog.open(options.access, {
      log,
      timers: systemTimers,
      metrics,
      prefix: "tunnel_proxy_",
    });
    const tools = { log, metrics, access, events: this.#events };
    const proxy = this.#proxy = new ServiceProxy(options, tools);
    this.#admin = this.#listen(options, { log, metrics });
    this.#relay = openRelay(
      options,
      { log, metrics },
      () => this.#admin.close(),
    );
    const relayed = () => this.#relay?.load ?? 0;
    this.#drain = new ProxyDrain({
      get load() {
        const { connections, load } = proxy;
        return {
          connections: connections + relayed(),
          sessions: load - connections,
        };
      },
      retire: () => {
        proxy.retire();
        this.#relay?.shutdown();
      },
      close: (reason, lastMs) => this.#close(reason, lastMs),
    }, { timers: systemTimers, log });
    log.info("proxy started", {
      admin: this.#admin.address,
      ...this.#relay?.addresses,
    });
    this.#admin.openSoon();
    proxy.start();
    this.running = this.#run(options.drainTimeoutMs);
  }

  #run(drainTimeoutMs: number): RunningProxy {
    const [drain, proxy] = [this.#drain, this.#proxy];
    return {
      admin: this.#admin.address,
      relay: this.#relay?.addresses ?? {},
      finished: drain.finished.finally(() => this.#access?.close()),
      whenReady: () => Promise.race([this.#whenReady(), drain.finished]),
      get isDraining() {
        return drain.isDraining;
      },
      shutdown: (why = "asked to end") => drain.begin(why, drainTimeoutMs),
      awaitSuccessor: (ms) => drain.awaitSuccessor(ms),
      get memory() {
        return proxy.memory;
      },
      recall: (part) => proxy.recall(part),
      successorEnded: () => {
        if (drain.isDraining) proxy.successorEnded();
      },
      handedOver: (pid) => drain.handedOver(pid, drainTimeoutMs),
      stop: (reason) => drain.now(reason),
      reload: () => {
        this.#proxy.reload();
        this.#access?.reopen();
      },
    };
  }

  #listen(
    options: NodeProxyOptions,
    { log, metrics }: {
      readonly log: Log;
      readonly metrics: MetricRegistry;
    },
  ): AdminPort {
    const { admin, adminAccess = {}, identity } = options;
    const proxy = this.#proxy;
    const handler = metaHandler({
      metrics,
      checks: [
        {
          name: "not-stopping",
          problem: () =>
            this.#drain.isDraining ? "the proxy is stopping" : undefined,
        },
        { name: "sources-read", problem: () => proxy.problem },
        { name: "identity", problem: () => identity?.problem },
      ],
      notes: () => proxy.notes,
      style: "agent",
    }, { [PROXY_STATUS_PATH]: (url) => proxy.answer(url) });
    return new AdminPort({
      address: admin,
      access: adminAccess,
      handler: apiBeside(
        this.#routes(options),
        () => handler,
        actionLog(log),
      ),
      log,
    });
  }

  #routes(
    { node = "", identity, shownFlags }: NodeProxyOptions,
  ): readonly AdminRoute[] {
    const proxy = this.#proxy;
    return this.show({
      conduits: proxy.conduits,
      events: this.#events,
      program: () =>
        programInfo({
          program: "proxy",
          id: node || Deno.hostname(),
          isReady: proxy.problem === undefined,
          isDraining: this.#drain.isDraining,
          addresses: { admin: this.#admin.address, ...this.#relay?.addresses },
        }),
      certificates: () => identity?.certificates ?? [],
      warnings: () => proxyWarnings(proxy, identity?.problem),
      parts: () => proxy.parts,
      services: () => proxy.services,
      ...shownFlags === undefined ? {} : { flags: shownFlags },
    });
  }

  async #whenReady(): Promise<void> {
    while (!this.#drain.isDraining && this.#proxy.problem !== undefined) {
      await new Promise<void>((resolve) =>
        systemTimers.after(READY_LOOK_MS, resolve)
      );
    }
  }

  async #close(reason: string, lastMs: number): Promise<void> {
    if (lastMs > 0) {
      await Promise.all([
        this.#proxy.stop(lastMs),
        this.#relay?.drain(lastMs),
      ]);
    }
    this.#relay?.close(reason);
    await this.#proxy.stop(0);
    this.#admin.close();
  }
}

/** @param undo Called when it cannot be opened. */
function openRelay(
  { relay }: NodeProxyOptions,
  tools: { readonly log: Log; readonly metrics: MetricRegistry },
  undo: () => void,
): Relay | undefined {
  if (relay === undefined) return undefined;
  try {
    const { upstream, servers } = relay;
    return new Relay(relay, {
      ...tools,
      upstream,
      ...(servers === undefined ? {} : { servers }),
    });
  } catch (error) {
    undo();
    throw error;
  }
}
