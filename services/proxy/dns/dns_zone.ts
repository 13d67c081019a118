/**
 * What there is under `svc.tunnel`, as in a cluster's DNS:
 *
 * ```
 * <service>.<namespace>.svc.tunnel                  A, AAAA, and SRV of all ports
 * _<port>._<protocol>.<service>.<namespace>.svc.tunnel                        SRV
 * <127-0-0-2>.<service>.<namespace>.svc.tunnel      A, AAAA: one of its addresses
 * ```
 *
 * The addresses are the proxy's own on this machine, as far as the client can
 * reach them: a client on another machine gets no loopback address, and for a
 * port on all addresses it gets the address that it asked. This file knows
 * names and records, and not how questions arrive.
 *
 * @module
 */

import { isIpAddress, isLoopback } from "../../../proto/peer/ip_address.ts";
import { keyOf, type Protocol } from "../../catalog/model/model.ts";
import type { Snapshot } from "../../catalog/snapshot.ts";
import { SERVICE_DOMAIN } from "./local_names.ts";
import { portKey } from "../listeners/proxied_port.ts";
import type { Proxy } from "../ports/proxy.ts";

/** One thing that is known of a name. */
export type DnsFact =
  | { readonly type: "A" | "AAAA"; readonly address: string }
  | { readonly type: "SRV"; readonly port: number; readonly target: string };

/** The records of a name. */
export type ZoneAnswer =
  /** It is no business of this zone's. */
  | { readonly kind: "elsewhere" }
  | { readonly kind: "unknown" }
  /** The name exists, even if it has no record of the type. */
  | { readonly kind: "known"; readonly facts: readonly DnsFact[] };

/** Who asks, as IP addresses. */
export interface DnsAsker {
  readonly from: string;
  /**
   * An address of this machine; `%` and its interface follow, if it is valid
   * only there.
   */
  readonly asked: string;
}

/** A port of a service, where it is listened for. */
interface PortAddress {
  readonly name: string;
  readonly protocol: Protocol;
  readonly host: string;
  readonly port: number;
}

const ELSEWHERE: ZoneAnswer = { kind: "elsewhere" };
const UNKNOWN: ZoneAnswer = { kind: "unknown" };
const NOTHING: ZoneAnswer = { kind: "known", facts: [] };

export class DnsZone {
  #index: ZoneIndex | undefined;

  constructor(
    private readonly proxy: Pick<Proxy, "catalog" | "served">,
  ) {}

  /** Counts changes of the records. */
  get version(): number {
    return this.proxy.catalog.snapshot.version;
  }

  /**
   * @param name In upper or lower case, with or without a dot at its end.
   * @param asker Absent: a program on this machine.
   */
  find(name: string, asker?: DnsAsker): ZoneAnswer {
    const wanted = name.toLowerCase().replace(/\.$/, "");
    if (wanted === SERVICE_DOMAIN) return NOTHING;
    if (!wanted.endsWith(`.${SERVICE_DOMAIN}`)) return ELSEWHERE;
    const inside = wanted.slice(0, -SERVICE_DOMAIN.length - 1);
    const service = this.#services.keys.get(inside);
    if (service !== undefined) {
      return known(this.#factsOf(service, inside, asker));
    }
    if (this.#services.above.has(inside)) return NOTHING;
    return inside.startsWith("_")
      ? this.#findPort(inside.split("."), asker)
      : this.#findHost(inside, asker);
  }

  /** `_http._tcp.web.default`; names of ports may have dots, too. */
  #findPort(
    labels: readonly string[],
    asker: DnsAsker | undefined,
  ): ZoneAnswer {
    const at = labels.findIndex((label) =>
      label === "_tcp" || label === "_udp"
    );
    if (at < 0) return UNKNOWN;
    const inside = labels.slice(at + 1).join(".");
    const service = this.#services.keys.get(inside);
    if (service === undefined) return UNKNOWN;
    const all = this.#placesOf(service);
    const places = all.filter(({ protocol }) => `_${protocol}` === labels[at]);
    if (at === 0) return places.length === 0 ? UNKNOWN : NOTHING;
    const port = labels.slice(0, at).join(".").slice(1);
    const wanted = places.filter(({ name }) => name.toLowerCase() === port);
    if (wanted.length === 0) return UNKNOWN;
    return known(portFacts(seenBy(asker, wanted), seenBy(asker, all), inside));
  }

  /** `127-0-0-2.web.default`: where a service has more than one address. */
  #findHost(inside: string, asker: DnsAsker | undefined): ZoneAnswer {
    const dot = inside.indexOf(".");
    const service = this.#services.keys.get(inside.slice(dot + 1));
    if (dot < 0 || service === undefined) return UNKNOWN;
    const label = inside.slice(0, dot);
    const hosts = hostsOf(seenBy(asker, this.#placesOf(service)))
      .filter((host) => labelOf(host) === label);
    return hosts.length === 0 ? UNKNOWN : known(hosts.map(addressFact));
  }

  #factsOf(
    service: string,
    inside: string,
    asker: DnsAsker | undefined,
  ): readonly DnsFact[] {
    const places = seenBy(asker, this.#placesOf(service));
    return [
      ...hostsOf(places).map(addressFact),
      ...portFacts(places, places, inside),
    ];
  }

  #placesOf(service: string): readonly PortAddress[] {
    const { catalog, served } = this.proxy;
    const ports = catalog.snapshot.services.get(service)?.ports ?? [];
    return ports.flatMap(({ name, protocol }) => {
      const bound = served.get(portKey(service, name))?.listener.bound;
      if (bound === undefined) return [];
      const { hostname, port } = bound;
      return [{ name, protocol, host: hostname, port }];
    });
  }

  get #services(): ZoneIndex {
    const { snapshot } = this.proxy.catalog;
    if (this.#index?.snapshot !== snapshot) this.#index = indexOf(snapshot);
    return this.#index!;
  }
}

/** Names inside the zone, in lower case. */
interface ZoneIndex {
  readonly snapshot: Snapshot;
  /** The catalog's keys of services. */
  readonly keys: ReadonlyMap<string, string>;
  /** Names that exist because others are below them, such as namespaces. */
  readonly above: ReadonlySet<string>;
}

function indexOf(snapshot: Snapshot): ZoneIndex {
  const keys = new Map<string, string>();
  const above = new Set<string>();
  for (const service of snapshot.services.values()) {
    const inside = `${service.name}.${service.namespace}`.toLowerCase();
    keys.set(inside, keyOf(service));
    for (let dot = inside.indexOf("."); dot >= 0;) {
      above.add(inside.slice(dot + 1));
      dot = inside.indexOf(".", dot + 1);
    }
  }
  return { snapshot, keys, above };
}

function known(facts: readonly DnsFact[]): ZoneAnswer {
  return { kind: "known", facts };
}

function hostsOf(places: readonly PortAddress[]): string[] {
  return [...new Set(places.map(({ host }) => host))];
}

function addressFact(address: string): DnsFact {
  return { type: address.includes(":") ? "AAAA" : "A", address };
}

function labelOf(host: string): string {
  return host.replaceAll(/[.:]/g, "-");
}

/** A target must have the address at which the port is, and no other. */
function portFacts(
  wanted: readonly PortAddress[],
  all: readonly PortAddress[],
  inside: string,
): readonly DnsFact[] {
  const isOne = hostsOf(all).length === 1;
  return wanted.map(({ host, port }) => ({
    type: "SRV",
    port,
    target: `${isOne ? "" : `${labelOf(host)}.`}${inside}.${SERVICE_DOMAIN}`,
  }));
}

/**
 * The places that the asker can reach, with the addresses that it should use.
 */
function seenBy(
  asker: DnsAsker | undefined,
  places: readonly PortAddress[],
): readonly PortAddress[] {
  return places.flatMap((place) => {
    const host = asker === undefined || isHere(asker)
      ? fromHere(place.host)
      : fromElsewhere(place.host, asker.asked);
    return host === undefined ? [] : [{ ...place, host }];
  });
}

/**
 * A question from the very address that it was sent to comes from this machine.
 */
function isHere({ from, asked }: DnsAsker): boolean {
  return isLoopback(from) || from === asked;
}

/** A port on all addresses is found on loopback. */
function fromHere(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}

function fromElsewhere(host: string, asked: string): string | undefined {
  if (isLoopback(host)) return undefined;
  if (host !== "0.0.0.0" && host !== "::") return host;
  // The proxy may be reachable over IPv4 by an asker that came over IPv6, but
  // its address is unknown.
  const isOfFamily = host === "::" || !asked.includes(":");
  return isOfFamily && isIpAddress(asked) ? asked : undefined;
}
