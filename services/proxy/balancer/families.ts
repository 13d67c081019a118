/**
 * Which family of addresses this machine lacks: in a cluster of two families
 * services have endpoints of both, and dials to a missing family would all
 * fail. Routes are not checked: a machine with an address of a family counts as
 * having it.
 *
 * @module
 */

import {
  type IpAddress,
  isLoopback,
  parseIpAddress,
} from "../../../proto/peer/ip_address.ts";
import type { Clock } from "../../../proto/sync/clock.ts";

/** IPv4 or IPv6. */
export type Family = 4 | 6;

/** Interfaces come and go, and are seldom looked at. */
export const FAMILY_LOOK_MS = 10_000;

/**
 * The family of an address beyond this machine and its links. Nearer addresses
 * need no address of this machine, and names are looked up first.
 */
export function familyOf(address: string): Family | undefined {
  const ip = parseIpAddress(address);
  if (ip === undefined || isNearby(ip)) return undefined;
  return ip.length === 4 ? 4 : 6;
}

export class Families {
  #lookedMs = -Infinity;
  #lacking: Family | undefined;

  /** @param addresses Of this machine's interfaces. */
  constructor(
    private readonly clock: Clock,
    private readonly addresses: () => Iterable<string> = ownAddresses,
  ) {}

  /**
   * The family that this machine lacks; absent: it has both, or it is unknown.
   */
  get lacking(): Family | undefined {
    const nowMs = this.clock.now();
    if (nowMs - this.#lookedMs < FAMILY_LOOK_MS) return this.#lacking;
    this.#lookedMs = nowMs;
    const own = new Set([...this.addresses()].map(familyOf));
    // A machine without any has lost its network for a while.
    if (own.has(4) === own.has(6)) return this.#lacking = undefined;
    return this.#lacking = own.has(4) ? 6 : 4;
  }
}

/** Loopback and link-local ones. */
function isNearby(ip: IpAddress): boolean {
  if (isLoopback(ip)) return true;
  return ip.length === 4
    ? ip[0] === 169 && ip[1] === 254
    : ip[0] === 0xfe && (ip[1]! & 0xc0) === 0x80;
}

function ownAddresses(): Iterable<string> {
  try {
    return Deno.networkInterfaces().map(({ address }) => address);
  } catch {
    // A kernel that does not say leaves everything to the dials.
    return [];
  }
}
