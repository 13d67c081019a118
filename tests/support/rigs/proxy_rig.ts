/**
 * A service proxy whose catalog a test writes, on loopback, with backends that
 * answer or do not.
 *
 * @module
 */

import { Catalog } from "../../../services/catalog/catalog.ts";
import {
  DEFAULT_NAMESPACE,
  DIRECT,
  type Endpoint,
  type Service,
  type ServiceEndpoints,
} from "../../../services/catalog/model/model.ts";
import type { Target } from "../../../services/catalog/snapshot.ts";
import type { Source } from "../../../services/catalog/model/source.ts";
import type { LocalAddresses } from "../../../services/proxy/addresses/local_address.ts";
import {
  type PortProxies,
  Proxy,
} from "../../../services/proxy/ports/proxy.ts";
import { CONNECTION_DEFAULTS } from "../../../services/proxy/defaults.ts";
import type {
  ConnectionDefaults,
  ProxiedPort,
  ProxyContext,
} from "../../../services/proxy/listeners/proxied_port.ts";
import {
  type EndpointDial,
  type EndpointDialer,
  EndpointDialError,
  MachineDialer,
} from "../../../services/proxy/endpoints/endpoint_dialer.ts";
import { dialTimeout } from "../../../net/dial/dial_errors.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import { DialReports } from "../../../platform/conduits/dial_reports.ts";
import { ConnectionLog } from "../../../platform/log/connection_log.ts";
import { LiveConduits } from "../../../platform/conduits/live_conduits.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import { freePort } from "../program/ports.ts";
import { FakeTimers } from "../memory/fake_timers.ts";
import { RecordedLog } from "../watch/recorded_log.ts";
import { arrivals } from "../peers/sockets.ts";
import {
  type ScriptedSink,
  ScriptedSource,
  serviceOf,
} from "../watch/scripted_source.ts";

/** A service with one nameless TCP port, unless `about` says otherwise. */
export function service(
  name: string,
  about: Partial<Omit<Service, "name">> = {},
): Service {
  return serviceOf(name, 80, about);
}

/** Endpoints on 127.0.0.1, each a port or ports by name. */
export function endpoints(
  name: string,
  ports: readonly (number | Readonly<Record<string, number>>)[],
  about: Partial<Endpoint> = {},
): ServiceEndpoints {
  return {
    service: `${DEFAULT_NAMESPACE}/${name}`,
    endpoints: ports.map((port) => ({
      address: "127.0.0.1",
      ports: typeof port === "number"
        ? [{ name: "", port }]
        : Object.entries(port).map(([name, port]) => ({ name, port })),
      state: "ready",
      weight: 1,
      via: DIRECT,
      ...about,
    })),
  };
}

/** Dials as told, and in earnest where nothing was told. */
export class ScriptedDialer implements EndpointDialer {
  readonly dials: { readonly key: string; readonly timeoutMs: number }[] = [];
  /** By `host:port`. */
  readonly answers = new Map<
    string,
    (dial: EndpointDial) => Promise<Conduit>
  >();
  readonly #real = new MachineDialer({});
  #waiters: (() => void)[] = [];

  dial(target: Target, dial: EndpointDial): Conduit | Promise<Conduit> {
    const key = hostPort(target.address, target.port);
    this.dials.push({ key, timeoutMs: dial.timeoutMs });
    for (const wake of this.#waiters.splice(0)) wake();
    return this.answers.get(key)?.(dial) ?? this.#real.dial(target, dial);
  }

  /** Answers dials of `key` with a failure. */
  refuse(key: string, fault: EndpointDialError["fault"] = "target"): void {
    this.answers.set(key, () => {
      const problem = `dial tcp ${key}: connect: connection refused`;
      return Promise.reject(new EndpointDialError(fault, problem));
    });
  }

  /** Answers dials of `key` as if nobody had answered in time. */
  late(key: string): void {
    this.answers.set(key, () => {
      const cause = dialTimeout("tcp", key);
      return Promise.reject(
        new EndpointDialError("target", cause.message, cause),
      );
    });
  }

  /** Answers dials of `key` with nothing until they are given up. */
  hang(key: string): void {
    this.answers.set(key, ({ signal }) =>
      new Promise((_, reject) => {
        signal!.addEventListener(
          "abort",
          () => reject(new EndpointDialError("cancelled", "given up")),
        );
      }));
  }

  /** Resolves when so many were dialed. */
  async dialed(count: number): Promise<void> {
    while (this.dials.length < count) {
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }
}

/** What a test may want otherwise. */
export interface ProxyRigOptions {
  readonly addresses?: LocalAddresses;
  readonly portProxies?: PortProxies;
  readonly dialTimeoutsMs?: readonly number[];
  readonly zone?: string;
  readonly drainMs?: number;
  readonly defaults?: Partial<ConnectionDefaults>;
  readonly dialer?: EndpointDialer;
  /** More sources, of lower rank than the rig's own. */
  readonly sources?: readonly Source[];
}

/** See the module description. */
export class ProxyRig implements AsyncDisposable {
  readonly source = new ScriptedSource("script", "synced");
  readonly log = new RecordedLog();
  readonly timers = new FakeTimers();
  readonly dialer = new ScriptedDialer();
  /** By a clock of their own: no test waits for their ticks. */
  readonly conduits = new LiveConduits(new FakeTimers());
  readonly catalog: Catalog;
  readonly context: ProxyContext;
  readonly proxy: Proxy;
  readonly #closing: (() => void)[] = [];

  constructor(options: ProxyRigOptions = {}) {
    this.catalog = new Catalog({
      sources: [this.source, ...options.sources ?? []],
      log: this.log,
      timers: this.timers,
      random: () => 0,
    });
    this.context = {
      log: this.log,
      timers: this.timers,
      reports: new DialReports(
        this.conduits,
        new ConnectionLog(this.log, this.timers),
      ),
      random: () => 0,
      dialer: options.dialer ?? this.dialer,
      dialTimeoutsMs: options.dialTimeoutsMs ?? [250, 500, 1_000, 2_000],
      udpIdleMs: 60_000,
      drainMs: options.drainMs ?? 10_000,
      defaults: { ...CONNECTION_DEFAULTS, ...options.defaults },
    };
    this.proxy = new Proxy({
      catalog: this.catalog,
      context: this.context,
      addresses: options.addresses ?? ANY_PORT,
      balance: "round-robin",
      ...(options.zone === undefined ? {} : { zone: options.zone }),
      ...(options.portProxies && { portProxies: options.portProxies }),
    });
    this.catalog.start();
    this.proxy.start();
  }

  get sink(): ScriptedSink {
    return this.source.sink;
  }

  /** Nothing but this service, at `ports`. @returns Its first port. */
  serves(one: Service, ports: Parameters<typeof endpoints>[1]): ProxiedPort {
    const list = endpoints(one.name, ports);
    this.sink.set({ services: [one], endpoints: [list] });
    const [first] = this.proxy.served.values();
    return first!.port;
  }

  /** Where `key` is served. */
  portOf(key: string): number {
    const port = this.proxy.served.get(key)?.listener.bound?.port;
    if (port === undefined) throw new Error(`${key} is served nowhere`);
    return port;
  }

  /** Resolves when `key` is served at `port`. */
  async served(key: string, port: number): Promise<void> {
    while (this.proxy.served.get(key)?.listener.bound?.port !== port) {
      await this.log.next(/ is served on /);
    }
  }

  /** Resolves when `key` is served. @returns Where. */
  async listening(key: string): Promise<number> {
    while (this.proxy.served.get(key)?.listener.bound === undefined) {
      await this.log.next(/ is served on /);
    }
    return this.portOf(key);
  }

  connect(key: string): Promise<Deno.TcpConn> {
    return Deno.connect({ hostname: "127.0.0.1", port: this.portOf(key) });
  }

  /** A server that sends back what it receives, each line behind `prefix`. */
  echo(prefix = ""): number {
    return this.serve(async (conn) => {
      const buffer = new Uint8Array(65_536);
      for (;;) {
        const count = await conn.read(buffer);
        if (count === null) break;
        const text = new TextDecoder().decode(buffer.subarray(0, count));
        await conn.write(encode(prefix + text));
      }
      conn.close();
    });
  }

  /** A server on loopback. @returns Its port. */
  serve(handle: (conn: Deno.TcpConn) => Promise<void>): number {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const conns = new Set<Deno.TcpConn>();
    const loop = async () => {
      for await (const conn of arrivals(listener)) {
        conns.add(conn);
        void handle(conn).catch(() => {}).finally(() => conns.delete(conn));
      }
    };
    void loop();
    this.#closing.push(() => {
      listener.close();
      for (const conn of conns) denoStream(conn).close();
    });
    return listener.addr.port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const stopped = this.proxy.stop(0);
    for (const close of this.#closing) close();
    await stopped;
    await this.catalog.stop();
  }
}

const ANY_PORT: LocalAddresses = {
  kind: "anywhere",
  host: "127.0.0.1",
} as const;

/** Sends `text` and gives what comes back first. */
export async function ask(conn: Deno.Conn, text: string): Promise<string> {
  await conn.write(encode(text));
  const buffer = new Uint8Array(65_536);
  const count = await conn.read(buffer);
  return new TextDecoder().decode(buffer.subarray(0, count ?? 0));
}

/**
 * A port where nobody listens, and nobody else will by chance: the system gives
 * out others to those who ask for any.
 */
export function deadPort(): number {
  return freePort();
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}
