/**
 * Where on this machine each proxied port is found.
 *
 * A service may state its address. If it does not, the address is computed from
 * the service's name, so that it is the same after a restart and on other
 * machines: a port of a range, or an address in 127.0.0.0/8 with the service's
 * own port. When two names give the same number, the second takes the next free
 * number and keeps it (`reserved_numbers.ts`): a service that comes later, or
 * comes back, never changes another's address.
 *
 * @module
 */

import { fnv1a } from "../../../proto/bytes/fnv1a.ts";
import type { ListenAddress } from "../../../net/listen/listeners.ts";
import {
  formatIpAddress,
  parseIpPrefix,
  prefixContains,
} from "../../../proto/peer/ip_address.ts";
import {
  AddressFile,
  type AddressFileOptions,
  ReservedNumbers,
} from "./reserved_numbers.ts";
import type { ProxiedPort } from "../listeners/proxied_port.ts";

/** How addresses are found. */
export type LocalAddresses =
  /** A port of its own for each proxied port, all on one address. */
  | {
    readonly kind: "ports";
    readonly host: string;
    readonly first: number;
    readonly last: number;
  }
  /** Any free port, and a new one after each start. */
  | { readonly kind: "anywhere"; readonly host: string }
  /** The service's own port, as kube-proxy 0.4 does. */
  | { readonly kind: "original"; readonly host: string }
  /** An address for each service, and its own ports. */
  | { readonly kind: "virtual-ips"; readonly range: VirtualRange };

/** Addresses to give away: all of these have the same 32 bits less some. */
export interface VirtualRange {
  readonly first: number;
  readonly count: number;
}

/** The facts about a port that decide its place. */
export type PlacedPort = Pick<ProxiedPort, "key" | "service" | "servicePort">;

const LOOPBACK = parseIpPrefix("127.0.0.0/8")!;

/** @returns `undefined` unless it is a prefix inside 127.0.0.0/8. */
export function virtualRange(text: string): VirtualRange | undefined {
  const prefix = parseIpPrefix(text);
  if (prefix === undefined || prefix.address.length !== 4) return undefined;
  if (prefix.length < 8 || !prefixContains(LOOPBACK, prefix.address)) {
    return undefined;
  }
  const count = 2 ** (32 - prefix.length);
  const address = prefix.address.reduce((sum, byte) => sum * 256 + byte, 0);
  return { first: address - address % count, count };
}

/** Two names that make the same number. */
export interface Collision {
  /** The service that must take the next free number. */
  readonly owner: string;
  readonly holder: string;
}

export class LocalAddressBook {
  /** Ports that use the address of their service. */
  readonly #users = new Map<string, Set<string>>();

  /**
   * @param kept Numbers of an earlier run.
   * @param onCollision A name gives a number that another name has.
   */
  constructor(
    private readonly addresses: LocalAddresses,
    private readonly kept: ReservedNumbers = new ReservedNumbers(),
    private readonly onCollision: (collision: Collision) => void = () => {},
  ) {}

  /** Whose address it would be, but for another's; absent: it has its own. */
  displacedBy({ key, service }: Pick<PlacedPort, "key" | "service">):
    | string
    | undefined {
    const range = numbersOf(this.addresses);
    const owner = this.#ownerOf({ key, service });
    if (range === undefined || !this.#users.has(owner)) return undefined;
    const holder = this.kept.ownerOf(fnv1a(owner) % range.count);
    return holder === owner ? undefined : holder;
  }

  #ownerOf({ key, service }: Pick<PlacedPort, "key" | "service">): string {
    return this.addresses.kind === "virtual-ips" ? service : key;
  }

  /**
   * The place of `port`: the same one at each call, until it is released.
   *
   * @returns `undefined` when the range is full.
   */
  place({ key, service, servicePort }: PlacedPort): ListenAddress | undefined {
    const { port, listen } = servicePort;
    const { addresses } = this;
    if (addresses.kind === "anywhere" || addresses.kind === "original") {
      return {
        hostname: listen?.host ?? addresses.host,
        port: listen?.port ?? (addresses.kind === "original" ? port : 0),
      };
    }
    const isByPort = addresses.kind === "ports";
    const hostname = listen?.host ?? (isByPort ? addresses.host : undefined);
    if (listen !== undefined && hostname !== undefined) {
      this.release({ key, service });
      return { hostname, port: listen.port };
    }
    const { count } = numbersOf(addresses)!;
    const number = this.#take(this.#ownerOf({ key, service }), key, count);
    if (number === undefined) return undefined;
    return isByPort
      ? { hostname: addresses.host, port: addresses.first + number }
      : {
        hostname: ipv4Text(addresses.range.first + number),
        port: listen?.port ?? port,
      };
  }

  /** `port` is gone; its number may be another's now. */
  release({ key, service }: Pick<PlacedPort, "key" | "service">): void {
    const owner = this.#ownerOf({ key, service });
    const users = this.#users.get(owner);
    users?.delete(key);
    if (users === undefined || users.size > 0) return;
    this.#users.delete(owner);
    this.kept.leave(owner);
  }

  #take(owner: string, user: string, count: number): number | undefined {
    const number = this.kept.claim(owner) ?? this.#give(owner, count);
    if (number === undefined) return undefined;
    const users = this.#users.get(owner) ?? new Set();
    users.add(user);
    this.#users.set(owner, users);
    return number;
  }

  #give(owner: string, count: number): number | undefined {
    const start = fnv1a(owner) % count;
    let number: number | undefined;
    for (let step = 0; step < count && number === undefined; step++) {
      const next = (start + step) % count;
      const isFree = this.kept.ownerOf(next) === undefined;
      if (isFree && !this.#isReserved(next)) number = next;
    }
    // The range is full: the oldest number of a service that is gone is freed.
    number ??= this.kept.reclaim((next) => !this.#isReserved(next));
    if (number === undefined) return undefined;
    const holder = this.kept.ownerOf(start);
    this.kept.give(owner, number);
    if (holder !== undefined) this.onCollision({ owner, holder });
    return number;
  }

  /** Programs take these two for "this machine" and "everybody". */
  #isReserved(number: number): boolean {
    if (this.addresses.kind !== "virtual-ips") return false;
    const address = this.addresses.range.first + number;
    return address === 0x7f00_0001 || (address & 0xff) === 0 ||
      (address & 0xff) === 0xff;
  }
}

/** The range of which numbers are given; `undefined`: none are. */
export function numbersOf(
  addresses: LocalAddresses,
): { readonly name: string; readonly count: number } | undefined {
  switch (addresses.kind) {
    case "ports": {
      const { first, last } = addresses;
      return { name: `ports ${first}-${last}`, count: last - first + 1 };
    }
    case "virtual-ips": {
      const { first, count } = addresses.range;
      return { name: `virtual-ips ${ipv4Text(first)}+${count}`, count };
    }
    default:
      return undefined;
  }
}

function ipv4Text(address: number): string {
  const bytes = [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff);
  return formatIpAddress(new Uint8Array(bytes));
}

/**
 * The file at `path`, for services at these addresses.
 *
 * @returns `undefined` when addresses are not given by number.
 */
export function openAddressFile(
  path: string,
  addresses: LocalAddresses,
  tools: Pick<AddressFileOptions, "log" | "timers" | "isOthers">,
): AddressFile | undefined {
  const range = numbersOf(addresses);
  if (range === undefined) return undefined;
  const { name, count } = range;
  return new AddressFile({ path, range: name, count, ...tools });
}
