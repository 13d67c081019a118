/**
 * The links of one address: when it is tried, and when it rests.
 *
 * A configured address is tried again as long as it leads to no server,
 * whatever other addresses do. If it leads to a server that another address
 * also leads to, it is an alias: it keeps no links. An alias is tried again
 * when that server is lost, and now and then, because it may be a load
 * balancer.
 *
 * It decides when to connect. `connect` knows how, and `HeldLinks` knows the
 * links of all addresses.
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { YOUNG_MS } from "../../platform/time/supervise.ts";
import { ConnectError } from "../../net/dial/server_connect.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type { Carrier } from "../../proto/link/link.ts";
import type {
  HeldLinks,
  HeldServer,
  LinkClaim,
  ServerName,
} from "./held_links.ts";
import type {
  AttemptEvents,
  LinkObserver,
  PeerNews,
  ServerLink,
} from "./agent_links.ts";
import type { RetryWaits } from "./retry_waits.ts";

/**
 * A learned address at which no server answered for this long after it was
 * reported most likely belongs to another network.
 */
const ANSWERED_MS = 60_000;

/** What one address needs from outside. */
export interface AddressLinksOptions {
  /** Its name for people. */
  readonly address: string;
  /** See `AgentLinksOptions.connect`. */
  connect(events: AttemptEvents, signal: AbortSignal): Promise<ServerLink>;
  readonly held: HeldLinks;
  readonly waits: RetryWaits;
  readonly timers: Timers;
  /** Whether more servers are wanted than are linked. */
  isShort(): boolean;
  /** Whether other addresses lead nowhere, to as many as are missing. */
  isExplained(): boolean;
  /**
   * Set when a server told the address, and not the user: further facts about
   * it.
   */
  readonly learned?: {
    /** How many servers are said to be there. */
    servers(): number;
    /** All servers are linked, by any address. */
    isCovered(): boolean;
  } | undefined;
  /** What is held has changed, by this address. */
  changed(news: "linked" | "lost" | "other"): void;
  /** A server says where servers are, and how many. */
  told(link: ServerLink, news: PeerNews): void;
  readonly observer: LinkObserver;
}

/**
 * When the network changes, an attempt of this age was made in the old network.
 */
const HURRIED_MS = 200;

/**
 * What the next attempt is for: a server, the successor of one that is going,
 * more links to the same one, servers beyond those that are linked, or another
 * look at what an alias leads to.
 */
type Goal = "server" | "successor" | "links" | "search" | "look";

/** An address that leads to no server, as shown to people. */
export interface AddressTrouble {
  readonly address: string;
  readonly isConnecting: boolean;
  /** When the next attempt begins (clock); absent: it is under way. */
  readonly nextMs?: number | undefined;
  /** Since when there is no link (clock). */
  readonly sinceMs: number;
  /** Attempts since then that failed. */
  readonly failures: number;
  /** Why the last one did, or why the link was lost. */
  readonly problem?: string;
}

/** The state of an address between attempts. */
type State =
  | {
    readonly kind: "waiting";
    readonly goal: Goal;
    readonly timer: Timer;
    /** When that is over (clock). */
    readonly untilMs: number;
  }
  | {
    readonly kind: "connecting";
    readonly goal: Goal;
    readonly attempt: Attempt;
  }
  | { readonly kind: "satisfied" }
  /** No more attempts; the result of the last one is still used. */
  | { readonly kind: "draining" }
  /** The same, and the agent goes on: no server says this address any more. */
  | { readonly kind: "forgotten" }
  | { readonly kind: "stopped" };

export class AddressLinks {
  #state: State = { kind: "satisfied" };
  /** Whose other address this is. */
  #alias: HeldServer | undefined;
  /** More than one has answered here. */
  #isBalancer = false;
  #lastServerId: string | undefined;
  /** When a server last answered here, and was last said to be here (clock). */
  #answeredMs = -Infinity;
  #saidMs = -Infinity;
  #hasFailed = false;
  /** Since when it leads nowhere, and the last error. */
  #trouble: { sinceMs: number; failures: number; problem?: string };

  constructor(private readonly options: AddressLinksOptions) {
    this.#trouble = { sinceMs: options.timers.now(), failures: 0 };
  }

  /** Its name for people. */
  get address(): string {
    return this.options.address;
  }

  /** It leads to no server now, and should. */
  get isLost(): boolean {
    return !this.#hasServer && this.#alias === undefined &&
      this.options.learned?.isCovered() !== true;
  }

  /** The report about it while it is lost; otherwise empty. */
  get trouble(): AddressTrouble | undefined {
    const state = this.#state;
    if (state.kind !== "waiting" && state.kind !== "connecting") {
      return undefined;
    }
    return !this.isLost ? undefined : {
      address: this.address,
      isConnecting: state.kind === "connecting",
      nextMs: state.kind === "waiting" ? state.untilMs : undefined,
      ...this.#trouble,
    };
  }

  /** It is lost, and a server is likely to be found here. */
  get isPromising(): boolean {
    return this.isLost &&
      !(this.#hasFailed && this.#isStrangeSince(this.#answeredMs));
  }

  /** Whether a link that stands was made here. */
  get hasLinks(): boolean {
    return this.#isServerGoing || this.#hasServer;
  }

  /** The report that a server is here is old. */
  #isStrangeSince(lastMs: number): boolean {
    const { learned, timers } = this.options;
    return learned !== undefined && timers.now() - lastMs > ANSWERED_MS;
  }

  /** Begins with the first attempt, at once. */
  start(): void {
    unawaited("link", this.#attempt("server"));
  }

  /**
   * A server says that one is here that was not: it is tried after that time,
   * which differs from agent to agent as all learn it at once.
   */
  startAfter(delayMs: number): void {
    const { waits, timers } = this.options;
    this.#saidMs = timers.now();
    this.#hasFailed = false;
    waits.saidAnew();
    if (this.#state.kind === "waiting") this.#state.timer.cancel();
    else if (this.#state.kind !== "satisfied") return;
    if (this.#goal() === "server") this.#wait("server", delayMs);
    else this.#aim(this.#goal());
  }

  /**
   * The held links have changed, by any address.
   *
   * @param isNews Servers may be found that could not be found before.
   */
  reconsider(isNews: boolean): void {
    if (this.#alias?.isComing === false) this.#alias = undefined;
    if (isNews) this.options.waits.news();
    const state = this.#state;
    if (state.kind !== "waiting" && state.kind !== "satisfied") return;
    const goal = this.#goal();
    if (state.kind === "waiting") {
      const isFresh = isNews && goal === "search";
      if (state.goal === goal && !isFresh) return;
      state.timer.cancel();
    }
    this.#aim(goal);
  }

  /**
   * The awaited server may be there now. A running attempt may have been lost
   * on the way: an old one is started again.
   */
  hurry(): void {
    const state = this.#state;
    const { waits, timers } = this.options;
    if (state.kind === "waiting") {
      if (state.goal === "search" || state.goal === "look") return;
      state.timer.cancel();
      waits.hurry();
      this.#wait(state.goal, this.#soonMs());
    } else if (state.kind === "connecting") {
      const { sinceMs, controller } = state.attempt;
      if (timers.now() - sinceMs >= HURRIED_MS) controller.abort();
    }
  }

  /** Makes no new links. */
  stopTrying(kind: "draining" | "stopped" | "forgotten"): void {
    if (this.#state.kind === "waiting") this.#state.timer.cancel();
    this.#state = { kind };
  }

  async #attempt(goal: Goal): Promise<void> {
    const { timers } = this.options;
    const attempt: Attempt = {
      sinceMs: timers.now(),
      controller: new AbortController(),
    };
    this.#state = { kind: "connecting", goal, attempt };
    let link: ServerLink;
    try {
      await this.options.connect({
        claim: (name, carrier) => this.#claim(attempt, name, carrier),
        linked: (made) => this.#linked(link = made, attempt),
        closed: (reason) => this.#lost(link, reason),
        draining: (spreadMs) => {
          this.options.waits.spread(spreadMs, timers.now());
          this.#drains(link);
        },
        peers: (news) => this.options.told(link, news),
        doubted: (isDoubted) => this.#doubts(link, isDoubted),
      }, attempt.controller.signal);
    } catch (error) {
      attempt.claim?.release();
      if (attempt.duplicateOf !== undefined) {
        return this.#duplicate(attempt.duplicateOf);
      }
      if (attempt.controller.signal.aborted) return this.#again();
      this.#failed(goal, error);
    }
  }

  /** An attempt was given up for a new one. */
  #again(): void {
    if (this.#isOver()) return;
    this.options.waits.hurry();
    const goal = this.#goal();
    if (goal === undefined) this.#state = { kind: "satisfied" };
    else this.#wait(goal, this.#soonMs());
  }

  /** A whole site may have its network back at once. */
  #soonMs(): number {
    return this.options.waits.lostMs(false);
  }

  #claim(attempt: Attempt, name: ServerName, carrier: Carrier): boolean {
    this.#isBalancer ||= this.#lastServerId !== undefined &&
      this.#lastServerId !== name.serverId;
    this.#lastServerId = name.serverId;
    this.#answeredMs = this.options.timers.now();
    const { held } = this.options;
    attempt.claim = held.claim(name, carrier);
    if (attempt.claim !== undefined) return true;
    attempt.duplicateOf = held.find(name);
    return false;
  }

  #linked(link: ServerLink, attempt: Attempt): void {
    const { held, waits, timers, observer } = this.options;
    if (this.#state.kind === "stopped") {
      attempt.claim?.release();
      return link.close("the agent is stopping");
    }
    this.#alias = undefined;
    waits.linked();
    this.#hasFailed = false;
    this.#trouble = { sinceMs: timers.now(), failures: 0 };
    held.add(attempt.claim!, link, this, timers.now());
    observer.linked(link, this.address);
    if (this.#state.kind === "draining") held.drain(link);
    else if (this.#state.kind !== "forgotten") {
      this.#state = { kind: "satisfied" };
    }
    this.options.changed("linked");
  }

  /** The server that answered has all the links that it can use. */
  #duplicate(server: HeldServer): void {
    if (this.#isOver()) return;
    const { waits } = this.options;
    if (this.#hasServer || server.isComing) {
      waits.answered();
      if (!this.#hasServer) this.#alias = server;
      this.#aim(this.#goal());
    } else {
      // It is going: its successor is not there yet.
      const nowMs = this.options.timers.now();
      this.#wait(this.#goal() ?? "server", waits.successorMs(nowMs));
    }
    this.options.changed("other");
  }

  #failed(goal: Goal, error: unknown): void {
    if (this.#isOver()) return;
    const { waits, timers, observer } = this.options;
    const reason = messageOf(error);
    // It no longer leads to its earlier server.
    this.#alias = undefined;
    this.#hasFailed = true;
    this.#trouble.failures++;
    this.#trouble.problem = reason;
    const isRefused = error instanceof ConnectError && error.isRefused;
    const next = this.#goal();
    const retryMs = goal === "search" && next === "search"
      ? waits.searchMs(this.#isExplained)
      : this.#isStrangeSince(Math.max(this.#answeredMs, this.#saidMs))
      ? waits.strangeMs()
      : waits.failedMs(isRefused, timers.now());
    if (next === undefined) this.#state = { kind: "satisfied" };
    else this.#wait(next, retryMs);
    observer.failed(reason, retryMs, error, this.address);
    this.options.changed("other");
  }

  #lost(link: ServerLink, reason: string): void {
    const { held, timers, observer, waits } = this.options;
    const sinceMs = held.remove(link);
    if (sinceMs === undefined) return;
    observer.lost(link, reason);
    this.#trouble = { sinceMs: timers.now(), failures: 0, problem: reason };
    const state = this.#state;
    if (state.kind === "waiting" || state.kind === "satisfied") {
      // This ends every kind of waiting.
      if (state.kind === "waiting") state.timer.cancel();
      // What ended it would end the next one too, so the waits go on growing.
      const wasYoung = timers.now() - sinceMs < YOUNG_MS;
      const lostMs = waits.lostMs(wasYoung);
      // As long as other servers serve this node, it comes in its turn.
      const spreadMs = held.live.length > 0
        ? waits.spreadLeftMs(timers.now())
        : 0;
      const retryMs = Math.max(lostMs, spreadMs);
      const goal = this.#goal();
      if (goal === undefined) this.#state = { kind: "satisfied" };
      else this.#wait(goal, retryMs);
    }
    this.options.changed("lost");
  }

  /** Another link may be better, while this one keeps its conduits. */
  #doubts(link: ServerLink, isDoubted: boolean): void {
    if (this.options.held.doubts(link, isDoubted)) {
      this.options.changed("other");
    }
  }

  #drains(link: ServerLink): void {
    if (this.options.held.drains(link)) this.options.changed("lost");
  }

  get #hasServer(): boolean {
    return this.options.held.live.some((server) => server.isLiveBy(this));
  }

  /** There is a server here, and it is going. */
  get #isServerGoing(): boolean {
    return [...this.options.held.servers].some(({ owners }) =>
      owners.has(this)
    );
  }

  get #isExplained(): boolean {
    const { learned, isExplained } = this.options;
    // A server that was said to be here is not, because another one answers.
    if (learned !== undefined) return learned.servers() < 2;
    return !this.#isBalancer && isExplained();
  }

  /** Nothing: there is peace. */
  #goal(): Goal | undefined {
    const { held, isShort } = this.options;
    if (this.isLost) return this.#isServerGoing ? "successor" : "server";
    if (held.lacksLinksBy(this)) return "links";
    // The address leads to a few servers only: no others can be found.
    const { learned } = this.options;
    if (learned !== undefined) {
      return learned.isCovered() ? undefined : "search";
    }
    if (isShort()) return "search";
    return this.#alias === undefined ? undefined : "look";
  }

  #aim(goal: Goal | undefined): void {
    if (goal === undefined) this.#state = { kind: "satisfied" };
    else this.#wait(goal, this.#waitMs(goal));
  }

  #waitMs(goal: Goal): number {
    const { waits } = this.options;
    switch (goal) {
      // Further links to this server are no search: the server that answers next is
      // probably the same one, and if not, the wait comes then.
      case "links":
        return 0;
      case "server":
        return waits.lostMs(false);
      case "successor":
        return waits.successorMs(this.options.timers.now());
      case "search":
        return waits.searchMs(this.#isExplained);
      case "look":
        return waits.lookMs();
    }
  }

  #wait(goal: Goal, delayMs: number): void {
    const timer = this.options.timers.after(
      delayMs,
      () => unawaited("link", this.#attempt(goal)),
    );
    const untilMs = this.options.timers.now() + delayMs;
    this.#state = { kind: "waiting", goal, timer, untilMs };
  }

  // A function, because TypeScript's narrowing would outlive changes during an
  // await.
  #isOver(): boolean {
    const { kind } = this.#state;
    return kind === "stopped" || kind === "draining" || kind === "forgotten";
  }
}

/** What is known of one attempt before its outcome is. */
interface Attempt {
  readonly sinceMs: number;
  readonly controller: AbortController;
  claim?: LinkClaim | undefined;
  /** The server that answered, if there was no place for another link to it. */
  duplicateOf?: HeldServer | undefined;
}
