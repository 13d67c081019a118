/**
 * Keeps links to as many distinct servers as there are said to be.
 *
 * Servers usually stand behind one address, so which one answers is chance: a
 * link to a server that is linked already is closed again and the next try
 * waits longer. Upstream retries once a second for ever in that case, which at
 * five thousand nodes was a storm (kubernetes#102791); here every wait grows to
 * the cap. A lost link is replaced at once, and a server that is being started
 * again is found soon.
 *
 * It decides when to connect. How is `connect`'s business.
 *
 * @module
 */

import { ConnectError } from "../../host/dial/agent_connect.ts";
import { Backoff } from "../../proto/sync/backoff.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type { AnnouncedService } from "../../proto/link/control_messages.ts";
import type { Carrier } from "../../proto/link/link.ts";

/**
 * A link that lives shorter than this was no success: what ended it would end
 * the next one too, so the waits go on growing.
 */
export const YOUNG_MS = 1_000;

/**
 * While a server's machine says that nothing listens there, it is probably being
 * started again: no wait is longer than this, so that all agents are back within
 * seconds. Each asks about once a second, and the kernel refuses it.
 */
export const RESTART_WAIT_MS = 1_500;

/** Away for longer, it is no restart, and waits grow on to the cap. */
export const RESTART_MS = 30_000;

/** A link that is up, after both hellos. */
export interface ServerLink {
  readonly serverId: string;
  /** How many servers there are, according to this one. */
  readonly serverCount: number;
  readonly carrier: Carrier;
  /** Tells the server that this agent wants no new conduits. */
  drain(): void;
  /** Tells it what this node serves for others; absent where none can be told. */
  announce?(services: readonly AnnouncedService[]): void;
  close(reason: string): void;
}

/** What happens to the links. For the log, the metrics and readiness. */
export interface LinkObserver {
  linked(link: ServerLink): void;
  lost(link: ServerLink, reason: string): void;
  /**
   * An attempt failed; the next one comes in `retryMs`.
   *
   * @param error What it rejected with; `undefined` when a link was lost early.
   */
  failed(reason: string, retryMs: number, error: unknown): void;
  /** The number of distinct servers linked, or known, changed. */
  counted(linked: number, known: number): void;
}

/** What `LinkKeeper` needs from outside. */
export interface LinkKeeperOptions {
  /**
   * Makes one link. Rejects with a sentence when it cannot; must settle by
   * itself. `onClosed` is called once for a link that was handed over.
   */
  connect(onClosed: (reason: string) => void): Promise<ServerLink>;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Transport connections per server, in the streams carrier. */
  readonly linksPerServer: number;
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

/** Where the keeper is between attempts. */
type State =
  | { readonly kind: "waiting"; readonly timer: Timer }
  | { readonly kind: "connecting" }
  | { readonly kind: "satisfied" }
  /** No attempts any more; what comes of the last one still serves. */
  | { readonly kind: "draining" }
  | { readonly kind: "stopped" };

/** See the module description. */
export class LinkKeeper {
  readonly #options: LinkKeeperOptions;
  readonly #backoff: Backoff;
  /** Waits after links that died young. */
  readonly #relapses: Backoff;
  /** All links, by server, and since when. */
  readonly #links = new Map<string, Map<ServerLink, number>>();
  #state: State = { kind: "satisfied" };
  /** Since when every attempt was refused by the server's machine. */
  #refusedSinceMs: number | undefined;
  /** How many servers the one that answered last says there are. */
  #reported = 1;

  constructor(options: LinkKeeperOptions) {
    this.#options = options;
    const { intervalCapMs: capMs, random } = options;
    this.#backoff = new Backoff({ capMs, random });
    this.#relapses = new Backoff({ capMs, random });
  }

  /** Distinct servers linked now. */
  get linkedServers(): number {
    return this.#links.size;
  }

  /** Begins with the first attempt, at once. */
  start(): void {
    void this.#attempt();
  }

  /** There may be more servers than were known: look again. */
  reconsider(): void {
    this.#count();
    if (this.#state.kind === "satisfied") return this.#next();
    // It may be a long wait that grew when nobody else was to be found.
    if (this.#state.kind !== "waiting" || this.#links.size === 0) return;
    this.#state.timer.cancel();
    this.#backoff.reset();
    this.#next();
  }

  /** Announces the drain on every link and makes no new ones. */
  drain(): void {
    this.#stopTrying("draining");
    for (const link of this.#all()) link.drain();
  }

  /** Tells every server what this node serves for others from now on. */
  announce(services: readonly AnnouncedService[]): void {
    for (const link of this.#all()) link.announce?.(services);
  }

  /** Closes everything. */
  stop(reason: string): void {
    this.#stopTrying("stopped");
    for (const link of this.#all()) link.close(reason);
  }

  *#all(): Iterable<ServerLink> {
    for (const links of this.#links.values()) yield* links.keys();
  }

  #stopTrying(kind: "draining" | "stopped"): void {
    if (this.#state.kind === "waiting") this.#state.timer.cancel();
    this.#state = { kind };
  }

  async #attempt(): Promise<void> {
    this.#state = { kind: "connecting" };
    // The link may be closed before its promise is looked at.
    let link: ServerLink | undefined;
    let closedReason: string | undefined;
    try {
      link = await this.#options.connect((reason) => {
        closedReason = reason;
        if (link !== undefined) this.#onClosed(link, reason);
      });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return this.#onFailed(reason, error);
    }
    if (closedReason !== undefined) return this.#onFailed(closedReason);
    this.#onLinked(link);
  }

  #onFailed(reason: string, error?: unknown): void {
    if (this.#isStopped()) return;
    const retryMs = this.#backoff.nextMs(
      this.#isRestarting(error) ? RESTART_WAIT_MS : Infinity,
    );
    this.#options.observer.failed(reason, retryMs, error);
    this.#wait(retryMs);
  }

  #isRestarting(error: unknown): boolean {
    if (!(error instanceof ConnectError && error.isRefused)) {
      this.#refusedSinceMs = undefined;
      return false;
    }
    const now = this.#options.timers.now();
    this.#refusedSinceMs ??= now;
    return now - this.#refusedSinceMs < RESTART_MS;
  }

  #onLinked(link: ServerLink): void {
    this.#refusedSinceMs = undefined;
    if (this.#state.kind === "draining") return this.#keepDraining(link);
    if (this.#isStopped()) return link.close("the agent is stopping");
    this.#reported = Math.max(1, link.serverCount);
    if (!this.#keep(link)) {
      link.close("this server is linked already");
      this.#count();
      this.#next();
      return;
    }
    this.#options.observer.linked(link);
    this.#count();
    this.#backoff.reset();
    // Further links to this server are no search: whoever answers next is
    // probably the same one, and if not, the wait comes then.
    if (this.#lacksLinks(this.#links.get(link.serverId)!)) this.#wait(0);
    else this.#next();
  }

  /** Its server has taken it for a fresh one, and may be dialing on it. */
  #keepDraining(link: ServerLink): void {
    if (!this.#keep(link)) return link.close("this server is linked already");
    this.#options.observer.linked(link);
    this.#count();
    link.drain();
  }

  #lacksLinks(links: ReadonlyMap<ServerLink, number>): boolean {
    const [first] = links.keys();
    return first !== undefined && links.size < this.#capacity(first);
  }

  #keep(link: ServerLink): boolean {
    const links = this.#links.get(link.serverId);
    const sinceMs = this.#options.timers.now();
    if (links === undefined) {
      this.#links.set(link.serverId, new Map([[link, sinceMs]]));
      return true;
    }
    if (links.size >= this.#capacity(link)) return false;
    links.set(link, sinceMs);
    return true;
  }

  /** One stream carries everything in the packets carrier: a second is useless. */
  #capacity(link: ServerLink): number {
    return link.carrier === "streams" ? this.#options.linksPerServer : 1;
  }

  #onClosed(link: ServerLink, reason: string): void {
    const links = this.#links.get(link.serverId);
    const sinceMs = links?.get(link);
    if (links === undefined || sinceMs === undefined) return;
    links.delete(link);
    if (links.size === 0) this.#links.delete(link.serverId);
    this.#options.observer.lost(link, reason);
    this.#count();
    if (this.#state.kind === "connecting" || this.#isStopped()) return;
    // Whatever the search for further servers was waiting for, this is news.
    if (this.#state.kind === "waiting") this.#state.timer.cancel();
    this.#backoff.reset();
    if (this.#options.timers.now() - sinceMs < YOUNG_MS) {
      return this.#wait(this.#relapses.nextMs());
    }
    this.#relapses.reset();
    this.#next();
  }

  #next(): void {
    const isWanting = this.#links.size < this.#wanted ||
      [...this.#links.values()].some((links) => this.#lacksLinks(links));
    if (isWanting || this.#options.forever) this.#wait(this.#backoff.nextMs());
    else this.#state = { kind: "satisfied" };
  }

  #wait(delayMs: number): void {
    const timer = this.#options.timers.after(
      delayMs,
      () => void this.#attempt(),
    );
    this.#state = { kind: "waiting", timer };
  }

  get #wanted(): number {
    return this.#options.serversWanted?.(this.#reported) ?? this.#reported;
  }

  #count(): void {
    this.#options.observer.counted(this.#links.size, this.#wanted);
  }

  // A call, because narrowing would outlive what happens during an await.
  #isStopped(): boolean {
    return this.#state.kind === "stopped" || this.#state.kind === "draining";
  }
}
