/**
 * Names to addresses as this machine is set up: `/etc/nsswitch.conf` orders the
 * sources; `/etc/hosts` is read here, and name servers are asked without the C
 * library. That has the last word where they found nothing: it knows all
 * sources, and why there is no answer.
 *
 * The C library alone would do for one name at a time. But it looks names up in
 * few threads and has no deadline, so that a few names whose name servers are
 * silent stopped all others, those of `/etc/hosts` too.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import { descriptorLimit } from "../libc/descriptors.ts";
import { sourceAddress } from "../libc/sockets.ts";
import {
  type DnsFinding,
  type DnsLookupOptions,
  lookUpByDns,
  nameServersOf,
  orderAddresses,
} from "./dns_lookup.ts";
import { FollowedText, type HostsFile, parseHosts } from "./hosts_file.ts";
import { domainOf, isIn, readHost } from "./host_name.ts";
import { KeptAnswers } from "./kept_answers.ts";
import { LookupQueue, QueueError } from "./lookup_queue.ts";
import {
  type NameSource,
  nameSourcesOf,
  type PlatformLookup,
  PlatformNames,
} from "./name_sources.ts";
import { LookupError, type Resolver } from "./resolver.ts";

/**
 * Look-ups by DNS at a time. Each asks two questions at once, and a kernel keeps
 * some hundred datagrams for a name server that is slow to read them.
 */
export const LOOKUPS_MAX = 256;

/** Sockets of one look-up; all together use at most a quarter of the limit. */
const DESCRIPTORS_PER_LOOKUP = 4;

/** Names with the same last two labels. */
export const DOMAIN_LOOKUPS_MAX = 32;

/** That wait for their turn. */
export const WAITING_LOOKUPS_MAX = 4_096;

/** All search domains and name servers together. */
export const LOOKUP_TIMEOUT_MS = 10_000;

/** What a `MachineResolver` needs from outside. */
export interface MachineResolverOptions
  extends Omit<DnsLookupOptions, "signal"> {
  readonly timers: Timers;
  /** The directory of the machine's files; `/etc` unless given. */
  readonly folder?: string;
  readonly platform?: PlatformLookup;
}

export class MachineResolver implements Resolver {
  readonly #kept: KeptAnswers;
  readonly #queue: LookupQueue;
  readonly #platform: PlatformNames;
  readonly #hosts: FollowedText<HostsFile>;
  readonly #servers: FollowedText<ReturnType<typeof nameServersOf>>;
  readonly #nsswitch: FollowedText<string>;

  constructor(private readonly options: MachineResolverOptions) {
    const { timers, folder = "/etc" } = options;
    this.#kept = new KeptAnswers(timers);
    this.#queue = new LookupQueue(dnsLimits(), timers);
    this.#platform = new PlatformNames(timers, options.platform);
    this.#hosts = new FollowedText(`${folder}/hosts`, timers, parseHosts);
    this.#servers = new FollowedText(
      `${folder}/resolv.conf`,
      timers,
      nameServersOf,
    );
    this.#nsswitch = new FollowedText(
      `${folder}/nsswitch.conf`,
      timers,
      (text) => text,
    );
  }

  async lookup(host: string): Promise<readonly string[]> {
    const addresses = await this.#find(host);
    if (addresses.length === 0) throw new LookupError(host);
    return addresses;
  }

  #find(host: string): readonly string[] | Promise<readonly string[]> {
    const read = readHost(host);
    if (read === "address") return [host];
    if (read === "invalid") return [];
    if (read === "zoned") return this.#kept.find(host, () => this.#ask(host));
    const { name, isAbsolute } = read;
    // Names that never exist (RFC 6761 §6.4).
    if (isIn(name, "invalid")) return [];
    const sources = this.#sourcesOf(name);
    const inHosts = this.#hosts.content.get(name);
    if (sources[0] === "files" && inHosts !== undefined) {
      return inOrder(inHosts);
    }
    if (isIn(name, "localhost")) return ["127.0.0.1", "::1"];
    const key = isAbsolute ? `${name}.` : name;
    return this.#kept.find(key, () => this.#ask(host, sources, name, key));
  }

  /** The machine's order of sources, as far as they need no platform. */
  #sourcesOf(name: string): readonly NameSource[] {
    if (Deno.build.os !== "linux") return [];
    // An attempt without the permission would prompt.
    const { state } = Deno.permissions.querySync({ name: "net" });
    const servers = state === "granted" ? this.#servers.content : "special";
    return nameSourcesOf(this.#nsswitch.content, name, servers);
  }

  /** Asks one source after another until one knows the name. */
  async #ask(
    host: string,
    sources: readonly NameSource[] = [],
    name = host,
    key = host,
  ): Promise<readonly string[]> {
    try {
      for (const source of sources) {
        const found = source === "files"
          ? this.#hosts.content.get(name) ?? []
          : await this.#askDns(name, key);
        if (found === "silent") throw new QueueError("timeout");
        if (found.length > 0) return inOrder(found);
      }
      return await this.#platform.find(host);
    } catch (error) {
      throw inWords(host, error);
    }
  }

  #askDns(name: string, key: string): Promise<DnsFinding> {
    return this.#queue.run(
      domainOf(name),
      (signal) => lookUpByDns(key, { ...this.options, signal }),
    );
  }
}

function dnsLimits() {
  const descriptors = descriptorLimit() ?? Infinity;
  const room = Math.floor(descriptors / 4 / DESCRIPTORS_PER_LOOKUP);
  return {
    running: Math.max(2, Math.min(LOOKUPS_MAX, room)),
    perDomain: DOMAIN_LOOKUPS_MAX,
    waiting: WAITING_LOOKUPS_MAX,
    timeoutMs: LOOKUP_TIMEOUT_MS,
  };
}

function inOrder(addresses: readonly string[]): readonly string[] {
  // When the kernel cannot be asked, all addresses are equal, and IPv4, which
  // came first, stays first.
  return orderAddresses(addresses, (address) => {
    const source = sourceAddress(address);
    return source === "unknown" ? address : source;
  });
}

function inWords(host: string, error: unknown): unknown {
  if (!(error instanceof QueueError)) return error;
  return error.fault === "timeout"
    ? new LookupError(host, "", "timeout")
    : new LookupError(host, "too many names are being looked up", "failed");
}
