/**
 * Keeps links to every configured address, and to as many distinct servers as
 * servers report.
 *
 * Each address has its own waits (`address_links.ts`), so that a dead one costs
 * the others nothing. Several servers may also share one address, where chance
 * decides which one answers: a second link to the same server is not made, and
 * the next try waits longer. Upstream retries once a second without end in that
 * case, which at five thousand nodes was a storm (kubernetes#102791); here
 * every wait grows to a cap. A lost link is replaced at once, and a server that
 * is being started again is found soon.
 *
 * It decides when to connect. How is `connect`'s business.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type {
  AnnouncedService,
  PeerServer,
} from "../../proto/link/link_messages.ts";
import type { Carrier } from "../../proto/link/link.ts";
import {
  AddressLinks,
  type AddressLinksOptions,
  type AddressTrouble,
} from "./address_links.ts";
import { HeldLinks, type ServerName } from "./held_links.ts";
import { RetryWaits } from "./retry_waits.ts";
import { readInstanceId } from "../../proto/peer/peer_identity.ts";
import { isAddress } from "../../proto/peer/host_port.ts";

/**
 * Two servers that share an id for this long are two. Before that, one may be
 * the successor of the other, which left without a word.
 */
export const SERVERS_ONE_ID_MS = 30_000;

/**
 * Within this time agents try an address that they have just learned: all of them
 * learn it at once.
 */
export const LEARNED_WITHIN_MS = 500;

/** A server's report about all servers. */
export interface PeerNews {
  readonly servers: readonly PeerServer[];
  readonly serverCount: number;
}

/** The facts that a link shows. */
export interface LinkPulse {
  /** `HOST:PORT` of the server. */
  readonly address: string;
  /** Such as `tunnel/0.1.0`; empty: the server does not say. */
  readonly software: string;
  /** By the clock. */
  readonly lastHeardMs: number;
  readonly roundTripMs: number | undefined;
  readonly conduits: number;
  readonly bulkConduits: number;
}

/** A link that is up, after both hellos. */
export interface ServerLink extends ServerName {
  /** How many servers there are, according to this one. */
  readonly serverCount: number;
  readonly carrier: Carrier;
  /**
   * Tells the server that this agent wants no new conduits.
   *
   * @param told Called when it has read that.
   */
  drain(told: () => void): void;
  /** Asks the server for a sign of life. */
  check?(): void;
  /** The present knowledge of it; absent: none. */
  view?(): LinkPulse;
  /** Sends what this node serves for others; absent where it cannot be sent. */
  announce?(services: readonly AnnouncedService[]): void;
  close(reason: string): void;
}

/** Events of an attempt, and of the link that it makes. */
export interface AttemptEvents {
  /**
   * A server has sent its hello: decides whether a link to it is wanted. If
   * not, the attempt ends, and its promise rejects.
   */
  claim(server: ServerName, carrier: Carrier): boolean;
  /** There is a link: what follows is about it. */
  linked?(link: ServerLink): void;
  /** Called once, for a link that was handed over. */
  closed(reason: string): void;
  /**
   * The server is leaving: it still serves new dials.
   *
   * @param spreadMs Its agents should link elsewhere within this time.
   */
  draining(spreadMs: number): void;
  /** The server tells the addresses of servers, in place of earlier ones. */
  peers?(news: PeerNews): void;
  /** The server owes a sign of life, or has given one. */
  doubted(isDoubted: boolean): void;
}

/** What happens to the links. For the log, the metrics and readiness. */
export interface LinkObserver {
  linked(link: ServerLink, address: string): void;
  lost(link: ServerLink, reason: string): void;
  /**
   * An attempt failed; the next one comes in `retryMs`.
   *
   * @param error What it rejected with.
   */
  failed(
    reason: string,
    retryMs: number,
    error: unknown,
    address: string,
  ): void;
  /** The number of distinct servers linked, or known, changed. */
  counted(linked: number, known: number): void;
  /** Two servers at these addresses say that they are the same one. */
  haveOneId?(serverId: string, addresses: readonly string[]): void;
}

/** An address of one server or several, and the way to link to it. */
export interface LinkAddress {
  /** Its name for people; no two have the same. */
  readonly name: string;
  /** Makes one link. Rejects with a sentence; must settle by itself. */
  connect(events: AttemptEvents, signal: AbortSignal): Promise<ServerLink>;
}

/** What `AgentLinks` needs from outside. */
export interface AgentLinksOptions {
  /** At least one. */
  readonly addresses: readonly LinkAddress[];
  /** How to link to an address that another server has told. */
  readonly learned?: {
    /** Absent: not at all. */
    addressOf(server: PeerServer): LinkAddress | undefined;
    /** From an earlier process. */
    readonly known?: readonly PeerServer[] | undefined;
    /** Others than before are known. */
    changed?(servers: readonly PeerServer[]): void;
  } | undefined;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Transport connections per server, in the streams carrier. */
  readonly linksPerServer: number;
  /** The first wait, when the user has set one; otherwise a short one. */
  readonly intervalMs?: number | undefined;
  /** Longest wait between attempts. */
  readonly intervalCapMs: number;
  /**
   * How many servers there are, given what the one that answered last says;
   * that itself when absent.
   */
  readonly serversWanted?: (reported: number) => number;
  /** Keep looking for servers beyond the count. */
  readonly forever: boolean;
  readonly observer: LinkObserver;
}

/** The links at one moment. */
export interface LinksView {
  readonly held: readonly {
    readonly link: ServerLink;
    /** The address by which it was made, as people know it. */
    readonly by: string;
    /** By the clock. */
    readonly sinceMs: number;
    readonly isDraining: boolean;
    readonly isDoubted: boolean;
  }[];
  readonly failing: readonly AddressTrouble[];
}

export class AgentLinks {
  readonly #held: HeldLinks;
  readonly #given: readonly AddressLinks[];
  readonly #servers: LearnedServers;
  /** Links of addresses that servers have said, and of those that were. */
  readonly #learned = new Map<string, AddressLinks>();
  readonly #forgotten = new Set<AddressLinks>();
  #isOver = false;
  /** Servers of one id, until it is clear that they are two. */
  readonly #suspects = new Map<string, Timer>();
  /** How many servers the one that answered last says there are. */
  #reported = 1;

  constructor(private readonly options: AgentLinksOptions) {
    this.#held = new HeldLinks(options.linksPerServer);
    this.#given = options.addresses.map((address) => this.#of(address));
    this.#servers = new LearnedServers(options.learned?.known);
  }

  /** Distinct servers linked now. */
  get linkedServers(): number {
    return this.#held.linked;
  }

  /** All servers have read that this agent is going. */
  get areTold(): boolean {
    return this.#held.areTold;
  }

  /** Links that stand, and addresses that lead nowhere and should. */
  view(): LinksView {
    const addresses = this.#addresses;
    const held = [...this.#held.standing()].map(({ link, owner, ...held }) => ({
      ...held,
      link,
      by: addresses.find((address) => address === owner)?.address ?? "",
    }));
    return { held, failing: addresses.flatMap(({ trouble }) => trouble ?? []) };
  }

  /** Begins with the first attempts, at once. */
  start(): void {
    for (const address of this.#given) address.start();
    this.#learn();
  }

  /** There may be more servers than were known, or fewer: look again. */
  reconsider(areMore = true): void {
    this.#count();
    this.#tellAll(areMore);
  }

  /**
   * The network may have changed, or the machine has slept: links are probed,
   * and waiting addresses are tried now.
   */
  recheck(): void {
    for (const link of this.#held.all()) link.check?.();
    for (const address of this.#addresses) address.hurry();
  }

  /** Announces the drain on every link and makes no new ones. */
  drain(): void {
    this.#stopTrying("draining");
    for (const link of this.#held.all()) this.#held.drain(link);
  }

  /** Tells every server what this node serves for others from now on. */
  announce(services: readonly AnnouncedService[]): void {
    for (const link of this.#held.all()) link.announce?.(services);
  }

  /** Closes everything. */
  stop(reason: string): void {
    this.#stopTrying("stopped");
    for (const link of [...this.#held.all()]) link.close(reason);
  }

  #stopTrying(kind: "draining" | "stopped"): void {
    this.#isOver = true;
    for (const address of this.#addresses) address.stopTrying(kind);
    for (const timer of this.#suspects.values()) timer.cancel();
    this.#suspects.clear();
  }

  get #addresses(): readonly AddressLinks[] {
    return [...this.#given, ...this.#learned.values(), ...this.#forgotten];
  }

  /** What servers say of servers has changed: addresses come and go with it. */
  #learn(before: ServersByAddress = new Map()): void {
    const { learned, addresses, random } = this.options;
    if (this.#isOver || learned === undefined) return;
    const { servers } = this.#servers;
    const given = new Set(addresses.map(({ name }) => name));
    for (const [name, links] of this.#learned) {
      if (servers.has(name)) continue;
      this.#learned.delete(name);
      links.stopTrying("forgotten");
      if (links.hasLinks) this.#forgotten.add(links);
    }
    for (const [name, there] of servers) {
      if (given.has(name)) continue;
      const known = this.#learned.get(name);
      if (known !== undefined) {
        const hasNew = there.some(({ instanceId }) =>
          before.get(name)?.every((old) => old.instanceId !== instanceId) ??
            true
        );
        if (!hasNew) known.reconsider(false);
        else known.startAfter(random() * LEARNED_WITHIN_MS);
        continue;
      }
      const address = learned.addressOf(there[0]!);
      if (address === undefined) continue;
      const links = this.#of(address, {
        servers: () => this.#servers.servers.get(name)?.length ?? 0,
        isCovered: () => this.#isCovered(name, links),
      });
      this.#learned.set(name, links);
      links.startAfter(random() * LEARNED_WITHIN_MS);
    }
  }

  /** Whether every server that is said to be there, or its successor, is linked. */
  #isCovered(address: string, links: AddressLinks): boolean {
    const servers = this.#servers.servers.get(address) ?? [];
    const { live } = this.#held;
    return servers.every(({ serverId, instanceId }) =>
      live.some((held) =>
        held.serverId === serverId &&
        (instanceId === "" || held.instanceId === "" ||
          held.instanceId === instanceId ||
          held.isLiveBy(links))
      )
    );
  }

  #told(link: ServerLink, { servers, serverCount }: PeerNews): void {
    const before = this.#servers.servers;
    this.#servers.note(link, servers);
    this.#reported = Math.max(1, serverCount);
    this.#learn(before);
    this.#changed("linked");
    if (haveSameKeys(before, this.#servers.servers)) return;
    this.options.learned?.changed?.(
      [...this.#servers.servers.values()].flat(),
    );
  }

  #of(
    { name, connect }: LinkAddress,
    learned?: AddressLinksOptions["learned"],
  ): AddressLinks {
    const { timers, random, intervalMs, intervalCapMs, observer } =
      this.options;
    const waits = new RetryWaits({
      random,
      searchCapMs: intervalCapMs,
      firstMs: intervalMs,
    });
    return new AddressLinks({
      address: name,
      connect,
      held: this.#held,
      waits,
      timers,
      isShort: () => this.options.forever || this.#missing > 0,
      isExplained: () => this.#promising >= this.#missing,
      learned,
      told: (link, news) => this.#told(link, news),
      changed: (news) => this.#changed(news),
      observer: {
        ...observer,
        linked: (link, address) => {
          this.#reported = Math.max(1, link.serverCount);
          observer.linked(link, address);
          this.#suspect(link.serverId);
        },
        lost: (link, reason) => {
          observer.lost(link, reason);
          for (const links of this.#forgotten) {
            if (!links.hasLinks) this.#forgotten.delete(links);
          }
          const before = this.#servers.servers;
          if (this.#servers.forget(link)) this.#learn(before);
        },
      },
    });
  }

  #changed(news: "linked" | "lost" | "other"): void {
    if (news !== "other") this.#count();
    this.#tellAll(news === "lost");
  }

  #tellAll(isNews: boolean): void {
    for (const address of this.#addresses) address.reconsider(isNews);
  }

  /** A link of this server is new: another server may have the same id. */
  #suspect(serverId: string): void {
    if (this.#suspects.has(serverId)) return;
    if (this.#addressesOf(serverId).length < 2) return;
    const timer = this.options.timers.after(SERVERS_ONE_ID_MS, () => {
      const addresses = this.#addressesOf(serverId);
      if (addresses.length < 2) return void this.#suspects.delete(serverId);
      // Reported once, and remembered: only a person can change it.
      this.options.observer.haveOneId?.(serverId, addresses);
    });
    this.#suspects.set(serverId, timer);
  }

  /** The addresses of servers with this id, when there are several. */
  #addressesOf(serverId: string): string[] {
    const servers = this.#held.live.filter((held) =>
      held.serverId === serverId
    );
    const owners = servers.flatMap((server) => [...server.owners]);
    return servers.length < 2 ? [] : this.#addresses
      .filter((address) => owners.includes(address))
      .map(({ address }) => address);
  }

  /** Wanted servers without a link. */
  get #missing(): number {
    return this.#wanted - this.#held.live.length;
  }

  /** Addresses that lead nowhere, and should lead to a server. */
  get #promising(): number {
    return this.#addresses.filter(({ isPromising }) => isPromising).length;
  }

  get #wanted(): number {
    return this.options.serversWanted?.(this.#reported) ?? this.#reported;
  }

  #count(): void {
    this.options.observer.counted(this.#held.linked, this.#wanted);
  }
}

function haveSameKeys(
  one: ReadonlyMap<string, unknown>,
  other: ReadonlyMap<string, unknown>,
): boolean {
  return one.size === other.size &&
    [...one.keys()].every((key) => other.has(key));
}

// The addresses of servers, from linked servers: an address counts while any of
// them reports it. When no server is linked, the last reports still count, so
// that an agent that has lost all servers knows where to look.
//
// A report proves nothing: a server at such an address must show the same
// certificate as at a configured one.

/**
 * Servers that are looked at. A service has a few; one that names more cannot
 * make an agent connect to all the world.
 */
export const LEARNED_MAX = 64;

/** By address; processes of one machine may share one. */
type ServersByAddress = ReadonlyMap<string, readonly PeerServer[]>;

/** Longest id of a server that is compared. */
const SERVER_ID_MAX = 253;

class LearnedServers {
  /** By the link that told them. */
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

  /** A server tells the addresses of the others, in place of earlier ones. */
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
