/**
 * Renews a node's certificate: at two thirds of its life, when another
 * authority issues, and after it has expired.
 *
 * It decides when, and by which proof. `renew` requests and saves; standing
 * links are not affected.
 *
 * @module
 */

import { isDefinite, sentenceOf } from "./enrolment_error.ts";
import {
  type CertificateFacts,
  CLOCK_SKEW_MS,
  isSignedBy,
  RENEWAL_FRACTION,
} from "../../platform/pki/certificate.ts";
import type { Log } from "../../platform/log/log.ts";
import { Backoff } from "../../proto/sync/backoff.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { keyOf, type ResolvedServer } from "../../net/dial/server_addresses.ts";

/** The wall clock is looked at this often: it may have been set. */
export const RENEWAL_LOOK_MS = 60_000;
/** Nodes that receive another authority at once spread over this. */
const REISSUE_SPREAD_MS = 10_000;
/** Longest wait between attempts. */
const RETRY_CAP_MS = 60_000;
/**
 * After a refusal it asks this seldom: only an operator can change the outcome.
 */
export const REFUSED_RETRY_MS = 15 * 60_000;
/**
 * A server that does not accept a certificate which looks valid is asked for
 * another one at most this often. A server that refused a renewal is not asked
 * again sooner either.
 */
export const DOUBT_MS = 60_000;

/** How a node proves its identity for a renewal. */
export type RenewalMeans = "certificate" | "proof";

/** What `Renewer` needs from outside. */
interface RenewerOptions {
  readonly timers: Timers;
  /** Milliseconds since 1970, as the machine has it. */
  readonly now: () => number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly certificate: CertificateFacts;
  readonly authorities: readonly CertificateFacts[];
  /**
   * Gets, keeps and uses a new one. Rejects with a sentence.
   *
   * @param at The one server to ask; absent: any.
   */
  renew(means: RenewalMeans, at?: ResolvedServer): Promise<Renewed>;
  readonly log: Pick<Log, "event" | "warn">;
  /** The node's name, for the log. */
  readonly node: string;
}

/** The result of a renewal. */
export interface Renewed {
  /** Another process with this identity was first. */
  readonly isOthers?: boolean;
  readonly certificate: CertificateFacts;
  readonly authorities: readonly CertificateFacts[];
}

export class Renewer {
  readonly #backoff: Backoff;
  #held: HeldCertificate;
  #authorities: readonly CertificateFacts[];
  /** When to renew because of another authority, elapsed time. */
  #reissueMs: number | undefined;
  /** When to renew because the stored files are damaged, in elapsed time. */
  #replaceMs: number | undefined;
  /** When to try again after a failure, elapsed time. */
  #retryMs: number | undefined;
  /** The server's last word, when it was a refusal. */
  #refusal: { readonly error: unknown; readonly sinceMs: number } | undefined;
  /** What a server did not accept, and which server, where that is known. */
  #doubt: { readonly by: ResolvedServer | undefined } | undefined;
  /** By server, when it was asked because it did not accept a certificate. */
  readonly #askedMs = new Map<string, number>();
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  #isStopped = true;

  constructor(private readonly options: RenewerOptions) {
    const { random, certificate, authorities } = options;
    this.#backoff = new Backoff({ capMs: RETRY_CAP_MS, random });
    this.#held = { facts: certificate, share: random() };
    this.#authorities = authorities;
  }

  /** Begins to look after the certificate. */
  start(): void {
    this.#isStopped = false;
    this.#expectReissue();
    this.#look();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /**
   * The trusted authorities have changed; if another one issues, it is asked
   * soon.
   */
  authoritiesChanged(authorities: readonly CertificateFacts[]): void {
    this.#authorities = authorities;
    this.#expectReissue();
    if (!this.#isStopped) this.#look();
  }

  /**
   * Another program has installed another certificate, and perhaps other
   * authorities: plans for the earlier certificate are dropped.
   */
  adopt({ certificate, authorities }: Renewed): void {
    const before = this.#held.facts;
    this.#authorities = authorities;
    if (certificate.x509.fingerprint256 !== before.x509.fingerprint256) {
      const isNewer = certificate.notBeforeMs > before.notBeforeMs;
      this.#held = {
        facts: certificate,
        obtained: isNewer ? this.#moment() : undefined,
        share: this.options.random(),
      };
      this.#settled();
    }
    this.#expectReissue();
    if (!this.#isStopped) this.#look();
  }

  /**
   * The stored certificate is damaged or gone. A new one is requested at once,
   * but not sooner than {@linkcode DOUBT_MS} after the last: the cause of the
   * damage may still be active.
   *
   * @returns `false` when that was known.
   */
  replace(): boolean {
    if (this.#replaceMs !== undefined) return false;
    const { elapsedMs: lastMs = -Infinity } = this.#held.obtained ?? {};
    this.#replaceMs = Math.max(this.options.timers.now(), lastMs + DOUBT_MS);
    if (!this.#isStopped) this.#look();
    return true;
  }

  /**
   * The server ended a link attempt without a word, as it does when it does not
   * take the certificate: by its clock it may have expired.
   *
   * @param by Which server it was; absent: not known.
   */
  doubt(by?: ResolvedServer): void {
    this.#doubt = { by };
  }

  /**
   * Sees to it that the certificate is good to be shown. Resolves at once when
   * it is.
   *
   * @throws {Error} One sentence, when it is not and cannot be renewed.
   */
  async ready(): Promise<void> {
    const at = this.#moment();
    const { elapsedMs } = at;
    if (hasExpired(this.#held, at)) {
      const { error, sinceMs = -Infinity } = this.#refusal ?? {};
      // Each refusal costs the server, and all who share our address.
      if (elapsedMs - sinceMs < DOUBT_MS) throw error;
      return await this.#run("proof");
    }
    const by = this.#doubtedBy(elapsedMs);
    if (by === undefined) return;
    try {
      await this.#run("proof", by.server);
    } catch (error) {
      // The server's word about this node; of the connection the link will tell.
      if (isDefinite(error)) throw error;
    }
  }

  /**
   * The server to ask for a certificate that it accepts: itself, as its clock
   * is what counts. Where servers' clocks differ by days, what one gives
   * another may refuse; so each is asked, and each seldom: servers that hang up
   * because they have too much to do must not get more of it.
   */
  #doubtedBy(
    nowMs: number,
  ): { server: ResolvedServer | undefined } | undefined {
    if (this.#doubt === undefined) return undefined;
    const { by: server } = this.#doubt;
    for (const [key, atMs] of this.#askedMs) {
      if (nowMs - atMs >= DOUBT_MS) this.#askedMs.delete(key);
    }
    const key = server === undefined ? "" : keyOf(server);
    if (this.#askedMs.has(key)) return undefined;
    this.#doubt = undefined;
    this.#askedMs.set(key, nowMs);
    return { server };
  }

  /**
   * Renews now if that is due, without the usual spread: for a program that
   * runs for a moment. The next program tries again after a failure.
   */
  async renewDue(): Promise<void> {
    const at = this.#moment();
    const isDue = !isOfFirst(this.#held.facts, this.#authorities) ||
      untilRenewal(this.#held, at) <= 0;
    if (!isDue || at.elapsedMs < (this.#retryMs ?? -Infinity)) return;
    await this.#run("certificate").catch(() => {});
  }

  #moment(): ClockReading {
    const { timers, now } = this.options;
    return { wallMs: now(), elapsedMs: timers.now() };
  }

  #expectReissue(): void {
    const { timers, random } = this.options;
    if (isOfFirst(this.#held.facts, this.#authorities)) {
      this.#reissueMs = undefined;
    } else {
      this.#reissueMs ??= timers.now() + random() * REISSUE_SPREAD_MS;
    }
  }

  #look(): void {
    this.#timer?.cancel();
    if (this.#isStopped || this.#running !== undefined) return;
    const at = this.#moment();
    const dueMs = Math.min(
      untilRenewal(this.#held, at),
      (this.#reissueMs ?? Infinity) - at.elapsedMs,
      (this.#replaceMs ?? Infinity) - at.elapsedMs,
    );
    const waitMs = Math.max(
      dueMs,
      (this.#retryMs ?? -Infinity) - at.elapsedMs,
    );
    if (waitMs > 0) {
      const lookMs = Math.min(waitMs, RENEWAL_LOOK_MS);
      this.#timer = this.options.timers.after(lookMs, () => this.#look());
      return;
    }
    this.#renewBySchedule(at);
  }

  #renewBySchedule(at: ClockReading): void {
    const isExpired = hasExpired(this.#held, at);
    this.#run(isExpired ? "proof" : "certificate").catch((error) => {
      const retryMs = this.#retryMs! - this.options.timers.now();
      const reason = sentenceOf(error);
      this.options.log.warn(
        `${reason}; trying again in ${Math.ceil(retryMs / 1000)} s`,
        { code: "TUN202" },
        `renewal ${reason}`,
      );
    });
  }

  /** One at a time: callers that come meanwhile wait for the same one. */
  #run(means: RenewalMeans, at?: ResolvedServer): Promise<void> {
    return this.#running ??= this.#renew(means, at).catch((error) => {
      const isRefused = isDefinite(error);
      const now = this.options.timers.now();
      this.#refusal = isRefused ? { error, sinceMs: now } : undefined;
      this.#retryMs = now +
        (isRefused ? REFUSED_RETRY_MS : this.#backoff.nextMs());
      throw error;
    }).finally(() => {
      this.#running = undefined;
      this.#look();
    });
  }

  async #renew(means: RenewalMeans, at?: ResolvedServer): Promise<void> {
    const { renew, random, log, node } = this.options;
    let used = means;
    let renewed: Renewed;
    try {
      renewed = await renew(means, at);
    } catch (error) {
      // The key is what counts; a server that has moved its clock, or restored
      // a backup, may not take the certificate.
      if (means === "proof") throw error;
      used = "proof";
      renewed = await renew("proof");
    }
    this.#held = {
      facts: renewed.certificate,
      obtained: this.#moment(),
      share: random(),
    };
    this.#authorities = renewed.authorities;
    this.#settled();
    this.#expectReissue();
    if (renewed.isOthers) return;
    log.event("certificate renewed", { node, by: used });
  }

  /** There is a new certificate: plans for the earlier one are dropped. */
  #settled(): void {
    this.#reissueMs = undefined;
    this.#replaceMs = undefined;
    this.#retryMs = undefined;
    this.#refusal = undefined;
    this.#doubt = undefined;
    this.#backoff.reset();
  }
}

/** The part over which nodes that joined at the same time spread out. */
const RENEWAL_SPREAD = 1 / 15;

/** Both clocks. */
export interface ClockReading {
  /** Milliseconds since 1970, as the machine has it. */
  readonly wallMs: number;
  /** Never goes back, and may stop while the machine sleeps. */
  readonly elapsedMs: number;
}

/** Facts about a certificate in use. */
export interface HeldCertificate {
  readonly facts: CertificateFacts;
  /** When this process got it; absent: it was there at the start. */
  readonly obtained?: ClockReading | undefined;
  /** Uniform in [0, 1): where in the spread this one stands. */
  readonly share: number;
}

/** Parts of a certificate's life. */
const OWN_TIME = { fraction: RENEWAL_FRACTION, spread: RENEWAL_SPREAD };

/** Milliseconds until it is to be renewed; not above zero: now. */
export function untilRenewal(
  held: HeldCertificate,
  at: ClockReading,
  { fraction, spread }: typeof OWN_TIME = OWN_TIME,
): number {
  // It was good once: the clock has gone back, and can say nothing.
  if (held.obtained === undefined && at.wallMs < held.facts.notBeforeMs) {
    return 0;
  }
  const part = fraction + spread * held.share;
  return lifeMs(held.facts) * part - ageMs(held, at);
}

/** Whether servers would refuse it. */
export function hasExpired(held: HeldCertificate, at: ClockReading): boolean {
  return ageMs(held, at) >= lifeMs(held.facts);
}

/**
 * Its age by the clock that has advanced more. A certificate that came just now
 * is new, whatever this machine's date is: with a wrong clock, its dates would
 * cause one renewal after another.
 */
function ageMs({ facts, obtained }: HeldCertificate, at: ClockReading): number {
  if (obtained === undefined) return at.wallMs - issuedAt(facts);
  return Math.max(
    at.wallMs - obtained.wallMs,
    at.elapsedMs - obtained.elapsedMs,
  );
}

function lifeMs(facts: CertificateFacts): number {
  return facts.notAfterMs - issuedAt(facts);
}

/** Whether it is of the authority that issues now: the first of a bundle. */
function isOfFirst(
  { x509 }: CertificateFacts,
  [first]: readonly CertificateFacts[],
): boolean {
  return first === undefined || isSignedBy(x509, first.x509);
}

/** Certificates begin in the past, because clocks differ. */
function issuedAt({ notBeforeMs, notAfterMs }: CertificateFacts): number {
  const issuedMs = notBeforeMs + CLOCK_SKEW_MS;
  return issuedMs < notAfterMs ? issuedMs : notBeforeMs;
}
