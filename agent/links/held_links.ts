/**
 * The standing links by server, and the places that running attempts have
 * claimed.
 *
 * A server is a process: a successor with the same id is another server, which
 * gets a new link while the old link serves its conduits to the end. Servers
 * that do not say which process they are, are distinguished by their ids alone.
 *
 * It knows neither addresses nor when to connect.
 *
 * @module
 */

import type { Carrier } from "../../proto/link/link.ts";
import type { ServerLink } from "./agent_links.ts";

/** The server that answered, from its hello. */
export interface ServerName {
  readonly serverId: string;
  /** See `ServerHello.instanceId`. */
  readonly instanceId?: string;
}

/** A place for a link that is being made. */
export interface LinkClaim {
  readonly server: HeldServer;
  /** There will be no link; harmless when it was used. */
  release(): void;
}

/** A link, and facts about it. */
interface HeldLink {
  readonly sinceMs: number;
  /** The address by which it was made. */
  readonly owner: object;
  isDraining: boolean;
  /** Its server owes a sign of life. */
  isDoubted: boolean;
}

/**
 * Limit on links beyond the usual number, made because others are doubted:
 * those that recover stay, so there are at most this many times as many.
 */
const DOUBLED = 2;

/** One server, with at least a link or a claim. */
export class HeldServer {
  readonly links = new Map<ServerLink, HeldLink>();
  claims = 0;

  constructor(readonly serverId: string, readonly instanceId: string) {}

  /** How many links are as good as one may hope. */
  get good(): number {
    return [...this.links.values()].filter(({ isDoubted }) => !isDoubted)
      .length;
  }

  /** Whether some link to it takes new conduits. */
  get isLive(): boolean {
    return [...this.links.values()].some(({ isDraining }) => !isDraining);
  }

  /** Whether it is live, or will be when attempts under way succeed. */
  get isComing(): boolean {
    return this.isLive || this.claims > 0;
  }

  /** Whether such a link was made by this address. */
  isLiveBy(owner: object): boolean {
    return [...this.links.values()]
      .some((held) => held.owner === owner && !held.isDraining);
  }

  /** The addresses that lead to it. */
  get owners(): ReadonlySet<object> {
    return new Set([...this.links.values()].map(({ owner }) => owner));
  }
}

export class HeldLinks {
  readonly #servers = new Map<string, HeldServer>();
  /** Those on which the server has read that this agent is going. */
  readonly #told = new WeakSet<ServerLink>();

  constructor(private readonly linksPerServer: number) {}

  /** Servers with a link, by id. */
  get linked(): number {
    const linked = [...this.#servers.values()]
      .filter(({ links }) => links.size > 0);
    return new Set(linked.map(({ serverId }) => serverId)).size;
  }

  get servers(): Iterable<HeldServer> {
    return this.#servers.values();
  }

  /** Servers that take new conduits. */
  get live(): readonly HeldServer[] {
    return [...this.#servers.values()].filter(({ isLive }) => isLive);
  }

  *all(): Iterable<ServerLink> {
    for (const { links } of this.#servers.values()) yield* links.keys();
  }

  /** The same, with the facts about each. */
  *standing(): Iterable<Readonly<HeldLink> & { readonly link: ServerLink }> {
    for (const { links } of this.#servers.values()) {
      for (const [link, held] of links) yield { ...held, link };
    }
  }

  /** Its server, while it is held. */
  find(name: ServerName): HeldServer | undefined {
    return this.#servers.get(keyOf(name));
  }

  /**
   * A place for one more link to this server; nothing when it has all that it
   * can use, or is going itself.
   */
  claim(name: ServerName, carrier: Carrier): LinkClaim | undefined {
    const key = keyOf(name);
    let server = this.#servers.get(key);
    if (server === undefined) {
      server = new HeldServer(name.serverId, name.instanceId ?? "");
      this.#servers.set(key, server);
    }
    const isGoing = server.links.size > 0 && !server.isLive;
    if (isGoing || !this.#hasRoom(server, carrier)) return undefined;
    server.claims++;
    let isReleased = false;
    return {
      server,
      release: () => {
        if (isReleased) return;
        isReleased = true;
        server.claims--;
        this.#tidy(server);
      },
    };
  }

  /** The link for which a place was claimed stands. */
  add(
    claim: LinkClaim,
    link: ServerLink,
    owner: object,
    sinceMs: number,
  ): void {
    claim.server.links.set(link, {
      ...{ sinceMs, owner },
      ...{ isDraining: false, isDoubted: false },
    });
    claim.release();
  }

  /** @returns Since when it stood; nothing when it is not held. */
  remove(link: ServerLink): number | undefined {
    const server = this.find(link);
    const held = server?.links.get(link);
    if (server === undefined || held === undefined) return undefined;
    server.links.delete(link);
    this.#tidy(server);
    return held.sinceMs;
  }

  /** Tells its server that this agent is going. */
  drain(link: ServerLink): void {
    link.drain(() => this.#told.add(link));
  }

  /** The servers of all links have read it. */
  get areTold(): boolean {
    return [...this.all()].every((link) => this.#told.has(link));
  }

  /**
   * The server wants no new conduits on it.
   *
   * @returns Whether that changes something. It does not for a server without a
   *   process id: its successor would look the same.
   */
  drains(link: ServerLink): boolean {
    const held = this.find(link)?.links.get(link);
    if (held === undefined || held.isDraining) return false;
    if ((link.instanceId ?? "") === "") return false;
    return held.isDraining = true;
  }

  /** @returns Whether that is news. */
  doubts(link: ServerLink, isDoubted: boolean): boolean {
    const held = this.find(link)?.links.get(link);
    if (held === undefined || held.isDoubted === isDoubted) return false;
    held.isDoubted = isDoubted;
    return true;
  }

  /** Whether a server that this address leads to can use more links. */
  lacksLinksBy(owner: object): boolean {
    return this.live.some((server) => {
      const [first] = server.links;
      return first !== undefined && first[1].owner === owner &&
        this.#hasRoom(server, first[0].carrier);
    });
  }

  #hasRoom(server: HeldServer, carrier: Carrier): boolean {
    const { links, claims, good } = server;
    const capacity = this.#capacity(carrier);
    return good + claims < capacity &&
      links.size + claims < DOUBLED * capacity;
  }

  /** One stream carries everything in the packets carrier: a second is useless. */
  #capacity(carrier: Carrier): number {
    return carrier === "streams" ? this.linksPerServer : 1;
  }

  #tidy(server: HeldServer): void {
    if (server.links.size > 0 || server.claims > 0) return;
    this.#servers.delete(keyOf(server));
  }
}

/** Ids are the servers' own texts: nothing that they hold joins two of them. */
function keyOf({ serverId, instanceId = "" }: ServerName): string {
  return JSON.stringify([serverId, instanceId]);
}
