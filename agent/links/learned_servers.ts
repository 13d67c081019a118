/**
 * Where servers are, as those that are linked say: what counts is what any of
 * them says now. While none does, what was said last counts on, so that an agent
 * that has lost all of them knows where to look.
 *
 * A server is believed no more than that: whoever answers at such an address
 * must show the same certificate as at an address that was given.
 *
 * @module
 */

import type { PeerServer } from "../../proto/link/link_messages.ts";
import { readInstanceId } from "../../proto/peer/instance_id.ts";
import { isAddress } from "../../proto/peer/host_port.ts";

/**
 * Servers that are looked at. A service has a few; one that names more cannot
 * make an agent connect to all the world.
 */
export const LEARNED_MAX = 64;

/** By address; processes of one machine may share one. */
export type ServersByAddress = ReadonlyMap<string, readonly PeerServer[]>;

/** Longest id of a server that is compared. */
const SERVER_ID_MAX = 253;

export class LearnedServers {
  /** By the link on which it was said. */
  readonly #said = new Map<object, readonly PeerServer[]>();
  #servers: ServersByAddress = new Map();

  /** @param servers As an earlier process has learned them. */
  constructor(servers: readonly PeerServer[] = []) {
    this.#servers = byAddress([servers]);
  }

  /** By address. */
  get servers(): ServersByAddress {
    return this.#servers;
  }

  /** A server says where the others are, in place of what it said before. */
  note(link: object, servers: readonly PeerServer[]): void {
    this.#said.set(link, servers);
    this.#servers = byAddress(this.#said.values());
  }

  /** The link is over. @returns Whether that changes what counts. */
  forget(link: object): boolean {
    if (!this.#said.delete(link) || this.#said.size === 0) return false;
    this.#servers = byAddress(this.#said.values());
    return true;
  }
}

function byAddress(
  said: Iterable<readonly PeerServer[]>,
): ServersByAddress {
  const servers = new Map<string, PeerServer[]>();
  const known = new Set<string>();
  for (const list of said) {
    for (const server of list.slice(0, LEARNED_MAX)) {
      const { address, serverId } = server;
      const isGood = isAddress(address) && serverId.length <= SERVER_ID_MAX;
      if (!isGood || known.size >= LEARNED_MAX) continue;
      const instanceId = readInstanceId(server.instanceId) ?? "";
      const key = JSON.stringify([address, serverId, instanceId]);
      if (known.has(key)) continue;
      known.add(key);
      const there = servers.get(address) ?? [];
      there.push({ address, serverId, instanceId });
      servers.set(address, there);
    }
  }
  return servers;
}
