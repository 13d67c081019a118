/**
 * Which servers are heard, where all that is seen of them is that they write
 * again and again. Nobody is silent while this server does not hear itself.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import { MEMBERS_MAX } from "./member_engine.ts";

/** Servers that are gone and remembered: what they have left is removed by then. */
const GONE_MAX = 1_024;

/** What `LiveMembers` needs from outside. */
export interface LiveMembersOptions {
  /** Of this server. */
  readonly instanceId: string;
  readonly timeoutMs: number;
  readonly timers: Timers;
}

export class LiveMembers {
  readonly #options: LiveMembersOptions;
  /** When each was heard last, in milliseconds (clock). */
  readonly #heard = new Map<string, number>();
  /** Since when each is not heard any more. */
  readonly #gone = new Map<string, number>();
  /** Since when nothing is followed. */
  #awayMs: number | undefined;
  #isRetired = false;
  #wasSilent = "";

  constructor(options: LiveMembersOptions) {
    this.#options = options;
  }

  /** Something is followed from now on, or nothing is. */
  follow(isFollowed: boolean): void {
    const now = this.#options.timers.now();
    if (!isFollowed) this.#awayMs ??= now;
    else if (this.#awayMs !== undefined) {
      // Nobody was heard meanwhile, whoever was there.
      for (const [id, ms] of this.#heard) {
        this.#heard.set(id, ms + now - this.#awayMs);
      }
      this.#awayMs = undefined;
    }
  }

  /** This server is not heard any more, as it is going. */
  retire(): void {
    this.#isRetired = true;
  }

  heard(instanceId: string): void {
    const isKnown = this.#heard.has(instanceId);
    if (!isKnown && this.#heard.size >= MEMBERS_MAX) return;
    this.#wasSilent = isKnown ? "" : instanceId;
    this.#heard.set(instanceId, this.#options.timers.now());
    this.#gone.delete(instanceId);
  }

  /** Whether it was silent, or unknown, until it was heard just now. */
  wasSilent(instanceId: string): boolean {
    return this.#wasSilent === instanceId;
  }

  gone(instanceId: string): void {
    this.#heard.delete(instanceId);
    this.left(instanceId);
  }

  /** Something of a server is there: it is gone from now on, unless it is heard. */
  left(instanceId: string): void {
    if (this.#heard.has(instanceId)) return;
    this.#gone.delete(instanceId);
    this.#gone.set(instanceId, this.#options.timers.now());
    const [oldest] = this.#gone.keys();
    if (this.#gone.size > GONE_MAX) this.#gone.delete(oldest!);
  }

  /** Since when it is not heard; `undefined`: it is, or was never. */
  goneMs(instanceId: string): number | undefined {
    return this.#gone.get(instanceId);
  }

  /** Those that have fallen silent; each is named once. */
  silent(): string[] {
    const { timers, timeoutMs, instanceId } = this.#options;
    if (this.#awayMs !== undefined) return [];
    const now = timers.now();
    const isSilent = (ms: number) => now - ms >= timeoutMs;
    const ownMs = this.#heard.get(instanceId) ?? -Infinity;
    if (!this.#isRetired && isSilent(ownMs)) return [];
    const silent = [...this.#heard].filter(([id, ms]) =>
      id !== instanceId && isSilent(ms)
    ).map(([id]) => id);
    for (const id of silent) this.gone(id);
    return silent;
  }
}
