/**
 * A service proxy as a process of its own: with a port for operators, and an
 * orderly end.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { programInfo } from "../../net/admin/own_facts.ts";
import type { ShowNode } from "../node_facts.ts";
import { proxyWarnings } from "../../services/proxy/status/proxy_summary.ts";
import type { TermSource } from "../../net/tls/trust/expiry.ts";
import type { ConfigAnswer } from "../../proto/admin/list_answers.ts";
import { actionLog, type AdminRoute } from "../../net/admin/admin_api.ts";
import { metaHandler } from "../../net/admin/http_endpoints.ts";
import {
  type AdminAccess,
  type AdminPort,
  apiBeside,
} from "../../net/listen/admin_port.ts";
import { Program, type Replaceable } from "../../net/program/program.ts";
import type { ListenAddress } from "../../net/listen/listeners.ts";
import type { AccessLogOptions } from "../../policy/access_log.ts";
import type { AuditLogOptions } from "../../policy/audit_log.ts";
import type { Log } from "../../platform/log/log.ts";
import type { RelayOptions } from "../options.ts";
import { Relay, type RelayWays } from "../relay/relay.ts";
import { ProxyDrain } from "../../services/proxy/proxy_drain.ts";
import {
  ServiceProxy,
  type ServiceProxyOptions,
} from "../../services/proxy/service_proxy.ts";

/** The parts of a node's proxy. */
export interface NodeProxyOptions extends ServiceProxyOptions {
  /** For health, metrics and `/debug/proxy`. */
  readonly admin: ListenAddress;
  /** The ways to the admin API; absent: none. */
  readonly adminAccess?: AdminAccess;
  /** At the end of the process; 0 ends running connections at once. */
  readonly drainTimeoutMs: number;
  /** What this node shows to its servers; absent: nothing. */
  readonly identity?: {
    /** Why certificates keep this node from its servers, if they do. */
    readonly problem: string | undefined;
    readonly certificates: readonly TermSource[];
  };
  /** The flags in effect, without secrets; absent: they are not shown. */
  readonly shownFlags?: () => ConfigAnswer["flags"];
  /** What programs on this machine are passed on, and the way; absent: nothing. */
  readonly relay?: RelayOptions & RelayWays;
  /** A line for each connection; absent: none. */
  readonly access?: AccessLogOptions;
  /** Absent: no audit log. */
  readonly audit?: AuditLogOptions;
}

/** One that is up. */
export interface RunningProxy extends Replaceable {
  /** The address of its health port. */
  readonly admin: string;
  /** The addresses of the relays, if there are any. */
  readonly relay: { readonly xds?: string; readonly connect?: string };
  /** Settles when all that is known of is served, or everything is closed. */
  whenReady(): Promise<void>;
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

class NodeProxy {
  readonly running: RunningProxy;
  readonly #proxy: ServiceProxy;
  readonly #admin: AdminPort;
  readonly #relay: Relay | undefined;
  readonly #drain: ProxyDrain;
  readonly #program: Program;
  readonly #ready = Promise.withResolvers<void>();

  /** @throws {ListenError | AuditLogError} Nothing stays open. */
  constructor(
    options: NodeProxyOptions,
    output: Log,
    private readonly show: ShowNode,
  ) {
    const program = this.#program = new Program(
      {
        kind: "proxy",
        eventLines: [],
        access: options.access,
        audit: options.audit,
      },
      output,
    );
    const { log } = program;
    const changed = () => this.#changed();
    const proxy = this.#proxy = new ServiceProxy(options, program, changed);
    try {
      this.#admin = this.#openAdmin(options);
      const { relay } = options;
      this.#relay = relay && new Relay(relay, relay, program, changed);
    } catch (error) {
      program.close();
      unawaited("task", program.end());
      throw error;
    }
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
    }, program);
    log.info("proxy started", {
      admin: this.#admin.address,
      ...this.#relay?.addresses,
    });
    this.#admin.openSoon();
    proxy.start();
    this.#changed();
    this.running = this.#run(options.drainTimeoutMs);
  }

  #run(drainTimeoutMs: number): RunningProxy {
    const [drain, proxy] = [this.#drain, this.#proxy];
    const program = this.#program;
    return {
      admin: this.#admin.address,
      relay: this.#relay?.addresses ?? {},
      finished: drain.finished.finally(() => program.end()),
      whenReady: () => Promise.race([this.#ready.promise, drain.finished]),
      get isDraining() {
        return !drain.isRunning;
      },
      shutdown: (why = "asked to end") => drain.begin(why, drainTimeoutMs),
      awaitSuccessor: (ms) => drain.awaitSuccessor(ms),
      get memory() {
        return proxy.memory;
      },
      recall: (part) => proxy.recall(part),
      successorEnded: () => {
        if (!drain.isRunning) proxy.successorEnded();
      },
      handedOver: (pid) => drain.handedOver(pid, drainTimeoutMs),
      stop: (reason) => drain.now(reason),
      reload: () => {
        proxy.reload();
        program.reload();
      },
    };
  }

  #openAdmin(options: NodeProxyOptions): AdminPort {
    const { log, metrics, trail } = this.#program;
    const { admin, adminAccess = {}, identity } = options;
    const proxy = this.#proxy;
    const handler = metaHandler({
      metrics,
      checks: [
        {
          name: "not-stopping",
          problem: () =>
            !this.#drain.isRunning ? "the proxy is stopping" : undefined,
        },
        { name: "sources-read", problem: () => proxy.problem },
        { name: "identity", problem: () => identity?.problem },
      ],
      notes: () => proxy.notes,
      style: "agent",
    }, proxy.openRoutes);
    return this.#program.openAdmin({
      address: admin,
      access: adminAccess,
      handler: apiBeside(
        this.#routes(options),
        () => handler,
        actionLog(log, (action) => trail?.acted(action)),
      ),
    });
  }

  #routes(
    { node = "", identity, shownFlags }: NodeProxyOptions,
  ): readonly AdminRoute[] {
    const proxy = this.#proxy;
    return this.show({
      conduits: this.#program.conduits,
      events: this.#program.events,
      program: () =>
        programInfo({
          program: "proxy",
          id: node || Deno.hostname(),
          isReady: proxy.problem === undefined,
          isDraining: !this.#drain.isRunning,
          addresses: { admin: this.#admin.address, ...this.#relay?.addresses },
        }),
      certificates: () => identity?.certificates ?? [],
      warnings: () => proxyWarnings(proxy, identity?.problem),
      parts: () => proxy.parts,
      services: ({ url }) => proxy.services(url),
      flags: shownFlags,
    });
  }

  /** Its services, or its open connections, may have changed. */
  #changed(): void {
    if (this.#proxy.problem === undefined) this.#ready.resolve();
    this.#drain.loadChanged();
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
    this.#program.close();
  }
}
