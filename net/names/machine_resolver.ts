/**
 * Names to addresses as this machine is set up: `/etc/nsswitch.conf` orders the
 * sources; `/etc/hosts` is read and name servers are queried from here, other
 * sources by the platform.
 *
 * The platform alone would do for one name at a time. But it looks names up in
 * few threads and has no deadline, so that a few names whose name servers are
 * silent stopped all others, those of `/etc/hosts` too.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import { descriptorLimit } from "../libc/descriptor_limit.ts";
import { sourceAddress } from "../libc/source_address.ts";
import { orderAddresses } from "./address_order.ts";
import { DnsClient } from "./dns_client.ts";
import { FollowedText, mayRead } from "./followed_text.ts";
import { domainOf, type HostName, isIn, readHost } from "./host_name.ts";
import { type HostsFile, parseHosts } from "./hosts_file.ts";
import { type Finding, KeptAnswers } from "./kept_answers.ts";
import { LookupQueue, QueueError } from "./lookup_queue.ts";
import { type NameSource, nameSourcesOf } from "./name_sources.ts";
import { hasDatagrams } from "../datagram/datagram_socket.ts";
import { type PlatformLookup, PlatformNames } from "./platform_lookup.ts";
import {
  type FoundAddresses,
  type KeepingResolver,
  LookupError,
} from "./resolver.ts";
import { type DnsConfig, parseResolvConf } from "./resolv_conf.ts";

/** Look-ups by DNS at a time. Each may take some sockets. */
export const LOOKUPS_MAX = 1_024;

/** So that they take no more than a quarter of the descriptors there are. */
const DESCRIPTORS_PER_LOOKUP = 16;

/** Of names with the same last two labels. */
export const DOMAIN_LOOKUPS_MAX = 32;

/** That wait for their turn. */
export const WAITING_LOOKUPS_MAX = 4_096;

/** All search domains and name servers together. */
export const LOOKUP_TIMEOUT_MS = 10_000;

/** How long the platform's answers, which have no time of their own, are kept. */
const PLATFORM_TTL_MS = 1_000;

/** Where the machine's files are. */
export interface NameFiles {
  readonly hosts: string;
  readonly resolvConf: string;
  readonly nsswitch: string;
}

const SYSTEM_FILES: NameFiles = {
  hosts: "/etc/hosts",
  resolvConf: "/etc/resolv.conf",
  nsswitch: "/etc/nsswitch.conf",
};

/** What a `MachineResolver` needs from outside. */
export interface MachineResolverOptions {
  readonly timers: Timers;
  readonly files?: NameFiles;
  /** Instead of what stands in the file; tests have a port of their own. */
  readonly config?: DnsConfig;
  readonly platform?: PlatformLookup;
}

export class MachineResolver implements KeepingResolver {
  readonly #kept: KeptAnswers;
  readonly #dns: DnsClient;
  readonly #queue: LookupQueue;
  readonly #platform: PlatformNames;
  readonly #hosts: FollowedText<HostsFile>;
  readonly #config: FollowedText<DnsConfig | undefined>;
  readonly #nsswitch: FollowedText<string | undefined>;

  constructor(private readonly options: MachineResolverOptions) {
    const { timers, files = SYSTEM_FILES } = options;
    this.#kept = new KeptAnswers(timers);
    this.#dns = new DnsClient(timers);
    this.#queue = new LookupQueue(dnsLimits(), timers);
    this.#platform = new PlatformNames(timers, options.platform);
    this.#hosts = new FollowedText(
      files.hosts,
      timers,
      (text) => parseHosts(text ?? ""),
    );
    this.#config = new FollowedText(files.resolvConf, timers, (text) => {
      this.#kept.expire();
      return text === undefined ? undefined : parseResolvConf(text, {
        options: variable("RES_OPTIONS"),
        search: variable("LOCALDOMAIN"),
      });
    });
    this.#nsswitch = new FollowedText(files.nsswitch, timers, (text) => text);
  }

  async lookup(host: string): Promise<readonly string[]> {
    return (await this.find(host)).addresses;
  }

  find(host: string): Promise<FoundAddresses> {
    const read = readHost(host);
    if (read === "address") return found([host], Infinity);
    if (read === "invalid") return Promise.reject(new LookupError(host));
    if (read === "zoned") return this.#askPlatform(host, host);
    return this.#findName(read, host);
  }

  #findName(name: HostName, host: string): Promise<FoundAddresses> {
    // Names that never exist (RFC 6761 §6.4).
    if (isIn(name.name, "invalid")) {
      return Promise.reject(new LookupError(host));
    }
    const sources = this.#sourcesOf(name);
    const [first] = sources;
    if (first === "files") {
      const addresses = this.#inHosts(name);
      if (addresses !== undefined) return found(addresses, 0);
    }
    if (isIn(name.name, "localhost")) return found(["127.0.0.1", "::1"], 0);
    const key = name.isAbsolute ? `${name.name}.` : name.name;
    return this.#inWords(
      host,
      this.#kept.find(key, host, () => this.#ask(name, host, sources)),
    );
  }

  /** The order of the machine, of what can be done here. */
  #sourcesOf({ name }: HostName): readonly NameSource[] {
    // Name servers are queried by UDP.
    if (Deno.build.os !== "linux" || !hasDatagrams()) return ["platform"];
    const config = this.#dnsConfig;
    return nameSourcesOf(this.#nsswitch.content, name, {
      get hostname() {
        return hostname();
      },
      get hasMdnsAllow() {
        return mayRead(MDNS_ALLOW) && exists(MDNS_ALLOW);
      },
      asksStub: config?.servers.every(({ hostname }) => STUBS.has(hostname)) ??
        false,
    }).map((source) =>
      source === "dns" && config === undefined ? "platform" : source
    );
  }

  get #dnsConfig(): DnsConfig | undefined {
    return this.options.config ?? this.#config.content;
  }

  #inHosts({ name }: HostName): readonly string[] | undefined {
    const addresses = this.#hosts.content.get(name);
    return addresses === undefined ? undefined : inOrder(addresses);
  }

  /** Tries one source after another until one knows the name. */
  async #ask(
    name: HostName,
    host: string,
    sources: readonly NameSource[],
  ): Promise<Finding> {
    let ttlMs = 0;
    for (const source of sources) {
      if (source === "files") {
        const addresses = this.#inHosts(name);
        if (addresses !== undefined) return { addresses, ttlMs: 0 };
      } else if (source === "dns") {
        const config = this.#dnsConfig!;
        const { addresses, ttl } = await this.#queue.run(
          domainOf(name.name),
          (signal) => this.#dns.find(name, host, config, signal),
        );
        ttlMs = ttl * 1_000;
        if (addresses.length > 0) {
          return { addresses: inOrder(addresses), ttlMs };
        }
      } else {
        const addresses = await this.#platform.find(host);
        return { addresses, ttlMs: PLATFORM_TTL_MS };
      }
    }
    return { addresses: [], ttlMs };
  }

  #askPlatform(key: string, host: string): Promise<FoundAddresses> {
    const ask = async () => ({
      addresses: await this.#platform.find(host),
      ttlMs: PLATFORM_TTL_MS,
    });
    return this.#inWords(host, this.#kept.find(key, host, ask));
  }

  async #inWords<Result>(
    host: string,
    finding: Promise<Result>,
  ): Promise<Result> {
    try {
      return await finding;
    } catch (error) {
      if (!(error instanceof QueueError)) throw error;
      if (error.fault === "timeout") throw new LookupError(host, "", "timeout");
      throw new LookupError(
        host,
        "too many names are being looked up",
        "failed",
      );
    }
  }
}

/** Where systemd-resolved listens. */
const STUBS: ReadonlySet<string> = new Set(["127.0.0.53", "127.0.0.54"]);

const MDNS_ALLOW = "/etc/mdns.allow";

function dnsLimits() {
  const descriptors = descriptorLimit() ?? Infinity;
  const room = Math.floor(descriptors / 4 / DESCRIPTORS_PER_LOOKUP) * 4;
  return {
    running: Math.max(2, Math.min(LOOKUPS_MAX, room)),
    perDomain: DOMAIN_LOOKUPS_MAX,
    waiting: WAITING_LOOKUPS_MAX,
    timeoutMs: LOOKUP_TIMEOUT_MS,
  };
}

function found(
  addresses: readonly string[],
  freshForMs: number,
): Promise<FoundAddresses> {
  return Promise.resolve({ addresses, freshForMs, isLastAnswer: false });
}

function inOrder(addresses: readonly string[]): readonly string[] {
  // Where it cannot be known, all are equal: IPv4, which came first, stays
  // first.
  return orderAddresses(addresses, (address) => {
    const source = sourceAddress(address);
    return source === "unknown" ? address : source;
  });
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

function hostname(): string {
  const { state } = Deno.permissions.querySync({
    name: "sys",
    kind: "hostname",
  });
  return state === "granted" ? Deno.hostname() : "";
}

function variable(name: string): string {
  const { state } = Deno.permissions.querySync({ name: "env", variable: name });
  return state === "granted" ? Deno.env.get(name) ?? "" : "";
}
