/**
 * The addresses of servers: several, each perhaps a name of several machines,
 * tried in turn.
 *
 * Names are resolved for each attempt, so that a server that has moved is found
 * at the next one. Each attempt begins at another address than the previous
 * one, so that a client of several servers finds them all; addresses that have
 * just failed come last, so that a dead one does not cost its deadline each
 * time.
 *
 * @module
 */

import { type Code, tunnelCodeOf } from "../../proto/codes/codes.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { AttemptOrder, FAILED_MS, REFUSED_MS } from "./attempt_order.ts";
import { ConnectError } from "./server_connect.ts";
import { interleaveFamilies } from "./happy_eyeballs.ts";
import { type ProxyEnvironment, proxyFor } from "./proxy_environment.ts";
import { LookupError, type Resolver } from "../names/resolver.ts";
import { systemResolver } from "../names/system_resolver.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { TlsHandshakeError } from "../tls/trust/tls_errors.ts";

/** The address of a server, or of a balancer in front of several. */
export interface ServerAddress {
  /** A name or an address without brackets. */
  readonly host: string;
  /** The address of a server's agent port. */
  readonly port: number;
}

/** One of the machines behind an address. */
export interface ResolvedServer extends ServerAddress {
  /** Absent when a proxy resolves the name. */
  readonly ip?: string;
}

/** Machines behind one name that are tried in one attempt. */
export const ADDRESSES_PER_NAME_MAX = 16;

/** What `ServerAddresses` needs from outside. */
export interface ServerAddressesOptions {
  /** At least one. */
  readonly addresses: readonly ServerAddress[];
  readonly resolver: Resolver;
  /**
   * Whether it is reached through a proxy; then the proxy resolves its name.
   */
  readonly isProxied: (address: ServerAddress) => boolean;
  readonly clock: Clock;
}

/**
 * Resolved by this machine's resolver, through the proxy of its environment.
 */
export function systemServerAddresses(
  addresses: readonly ServerAddress[],
  proxyEnv: ProxyEnvironment,
): ServerAddresses {
  return new ServerAddresses({
    addresses,
    resolver: systemResolver,
    isProxied: ({ host, port }) => proxyFor(host, port, proxyEnv) !== undefined,
    clock: systemTimers,
  });
}

/** `Cannot connect to name:1 (10.0.0.1): why`, as `server_connect.ts` says it. */
const SENTENCE = /^Cannot connect to (\S+)(?: \(([^()]+)\))?: (.+)$/s;

/** Each sentence once, and those that differ in the address alone as one. */
function together(sentences: readonly string[]): string {
  const byReason = new Map<string, Map<string, Set<string>>>();
  const others = new Set<string>();
  for (const sentence of sentences) {
    const [, name, ip, reason] = SENTENCE.exec(sentence) ?? [];
    if (name === undefined || reason === undefined) others.add(sentence);
    else {
      const named = byReason.get(reason) ?? new Map<string, Set<string>>();
      const ips = named.get(name) ?? new Set<string>();
      if (ip !== undefined) ips.add(ip);
      byReason.set(reason, named.set(name, ips));
    }
  }
  const joined = [...byReason].map(([reason, named]) => {
    const where = [...named].map(([name, ips]) =>
      ips.size === 0 ? name : `${name} (${[...ips].join(", ")})`
    );
    return `Cannot connect to ${where.join(", ")}: ${reason}`;
  });
  return [...joined, ...others].join("; ");
}

/** No server could be connected to. */
export class NoServerError extends ConnectError {
  /** @param errors Why, of each that was tried; at least one. */
  constructor(readonly errors: readonly Error[]) {
    super(together(errors.map(({ message }) => message)));
  }

  /** From the first address that has one. */
  override get tunnelCode(): Code {
    for (const error of this.errors) {
      const code = tunnelCodeOf(error);
      if (code !== undefined) return code;
    }
    return "TUN401";
  }

  /** By each of them. */
  override get isRefused(): boolean {
    return this.errors.every((error) =>
      error instanceof ConnectError && error.isRefused
    );
  }
}

export class ServerAddresses {
  readonly #turns: AttemptOrder;
  #addresses: readonly ServerAddress[];

  constructor(private readonly options: ServerAddressesOptions) {
    this.#addresses = options.addresses;
    this.#turns = new AttemptOrder(options.clock);
  }

  /** Replaces the addresses; at least one. */
  use(addresses: readonly ServerAddress[]): void {
    this.#addresses = addresses;
  }

  /**
   * Connects to the first server that lets us.
   *
   * @param isOther Which errors are of this server alone, so that the next one
   *   is tried: those of connecting when absent.
   * @throws {NoServerError} When every server failed in such a way; else what
   *   `connect` throws.
   */
  async connect<Result>(
    connect: (server: ResolvedServer) => Promise<Result>,
    isOther: (error: unknown) => boolean = isConnecting,
  ): Promise<Result> {
    const errors: Error[] = [];
    for (const address of this.#turns.order(this.#addresses, keyOf)) {
      let resolved: readonly ResolvedServer[];
      try {
        resolved = await this.#resolve(address);
      } catch (error) {
        if (!(error instanceof LookupError)) throw error;
        this.#turns.took(keyOf(address), FAILED_MS);
        errors.push(unknownHost(address, error));
        continue;
      }
      for (const server of this.#turns.order(resolved, keyOf)) {
        const taken = await this.#try(server, connect);
        for (const tried of [server, address]) {
          const lastMs = taken.ok ? 0 : lastsMs(taken.error);
          this.#turns.took(keyOf(tried), lastMs);
        }
        if (taken.ok) return taken.result;
        if (!isOther(taken.error)) throw taken.error;
        errors.push(taken.error as Error);
      }
    }
    throw new NoServerError(errors);
  }

  async #try<Result>(
    server: ResolvedServer,
    connect: (server: ResolvedServer) => Promise<Result>,
  ): Promise<
    { ok: true; result: Result } | { ok: false; error: unknown }
  > {
    try {
      return { ok: true, result: await connect(server) };
    } catch (error) {
      return { ok: false, error };
    }
  }

  async #resolve(address: ServerAddress): Promise<readonly ResolvedServer[]> {
    const { resolver, isProxied } = this.options;
    if (isProxied(address)) return [address];
    const ips = await resolver.lookup(address.host);
    return interleaveFamilies(ips).slice(0, ADDRESSES_PER_NAME_MAX)
      .map((ip) => ({ ...address, ip }));
  }
}

/** The same for the same machine and port. */
export function keyOf({ host, port, ip }: ResolvedServer): string {
  return `${host} ${port} ${ip ?? ""}`;
}

function lastsMs(error: unknown): number {
  return error instanceof ConnectError && error.isRefused
    ? REFUSED_MS
    : FAILED_MS;
}

/** Whether no connection came about: another server may do better. */
export function isConnecting(error: unknown): boolean {
  return error instanceof ConnectError || error instanceof TlsHandshakeError;
}

function unknownHost({ host, port }: ServerAddress, error: LookupError): Error {
  return new ConnectError(
    `Cannot connect to ${hostPort(host, port)}: ${error.message}`,
    { cause: error },
  );
}
