/**
 * Keeps a certificate from the cluster valid: it requests the first one, the
 * next one when most of its life is over, and one at once when the stored one
 * has expired, is damaged, or is for another node.
 *
 * It decides when, and never gives up. `request` knows how. Standing links are
 * not affected.
 *
 * @module
 */

import { messageOf } from "../../../platform/errors/error_code.ts";
import { isSlip } from "../../../platform/errors/internal_errors.ts";
import {
  type CertificateSpec,
  CsrError,
} from "../../../neighbours/kubernetes/csr.ts";
import {
  type Next,
  type Run,
  supervise,
} from "../../../platform/time/supervise.ts";
import { isoDate } from "../../../platform/pki/certificate_words.ts";
import {
  type CertificateFacts,
  CLOCK_SKEW_MS,
} from "../../../platform/pki/certificate.ts";
import { certificateContents } from "../../../platform/pki/certificate_contents.ts";
import { lineKey } from "../../../platform/log/line_key.ts";
import type { Log } from "../../../platform/log/log.ts";
import { canonicalIp } from "../../../proto/peer/ip_address.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import {
  type ClockReading,
  hasExpired,
  type HeldCertificate,
  untilRenewal,
} from "../renewer.ts";
import type { CertificateFiles } from "./certificate_files.ts";

/** Between 70 and 90 % of a certificate's life, as in Kubernetes. */
const RENEWAL_TIME = { fraction: 0.7, spread: 0.2 };

/** The wall clock is looked at this often: it may have been set. */
const CSR_LOOK_MS = 60_000;

/** Longest wait between attempts. */
export const CSR_RETRY_CAP_MS = 30_000;

/** The first wait is half of it at least: a right is not granted in less. */
export const RETRY_FIRST_MS = 1_000;

const NOT_ASKED = "no certificate was asked for yet";

interface CsrCertificateOptions {
  readonly files: CertificateFiles;
  readonly spec: CertificateSpec;
  /**
   * Gets a certificate for these keys, leaf first. Rejects with a sentence.
   * `onPending` receives the name of the request that waits.
   */
  request(
    keys: CryptoKeyPair,
    signal: AbortSignal,
    onPending: (name: string) => void,
  ): Promise<readonly CertificateFacts[]>;
  /** A new one is in its file. */
  onKept(): void;
  readonly timers: Timers;
  /** Milliseconds since 1970, as the machine has it. */
  readonly now: () => number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Pick<Log, "event" | "info" | "warn">;
}

export class CsrCertificate {
  readonly #stopping = new AbortController();
  readonly #first = Promise.withResolvers<void>();
  #held: HeldCertificate | undefined;
  /** It is valid, but for another subject. */
  #isForOthers = false;
  #problem = NOT_ASKED;
  /** The key that certificates are asked for with was made by this process. */
  #madeKeys = false;
  #running: Promise<void> | undefined;

  constructor(private readonly options: CsrCertificateOptions) {}

  /** Whether a certificate was ever had. */
  get hasAny(): boolean {
    return this.#held !== undefined;
  }

  /** Why there is no usable certificate; `undefined` when there is one. */
  get problem(): string | undefined {
    const held = this.#held;
    if (held === undefined) return this.#problem;
    if (!hasExpired(held, this.#moment())) return undefined;
    return `the certificate expired on ${isoDate(held.facts.x509.validTo)}; ` +
      this.#problem;
  }

  /** Reads the stored certificate, and runs until `stop`. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Settles when no work is under way. */
  async stop(): Promise<void> {
    this.#stopping.abort(new CsrError("the agent is stopping"));
    await this.#running;
  }

  /** Resolves when there is a usable certificate; has no time limit. */
  first(): Promise<void> {
    return this.#first.promise;
  }

  async #run(): Promise<void> {
    const { timers, random, log } = this.options;
    await this.#load();
    await supervise<string>({
      timers,
      random,
      capMs: CSR_RETRY_CAP_MS,
      firstMs: RETRY_FIRST_MS,
      signal: this.#stopping.signal,
      run: (run) => this.#look(run),
      problemOf(error) {
        if (isSlip(error)) throw error;
        return messageOf(error);
      },
      onProblem: (problem, retryMs) => {
        this.#problem = problem;
        log.warn(
          `${problem}; trying again in ${Math.round(retryMs)} ms`,
          { code: "TUN202" },
          problem,
        );
      },
    });
  }

  /** Gets a certificate, if one is due. */
  async #look(run: Run): Promise<Next> {
    const waitMs = this.#untilDue();
    if (waitMs > 0) return { afterMs: Math.min(waitMs, CSR_LOOK_MS) };
    if (this.#problem === NOT_ASKED) {
      this.#problem = "the API server has not answered yet";
      this.options.log.event("asking the cluster for a certificate");
    }
    await this.#obtain();
    run.succeeded();
    return "again";
  }

  async #load(): Promise<void> {
    const { files, spec, random } = this.options;
    const stored = await files.read();
    if (stored.kind === "none") return;
    if (stored.kind === "damaged") {
      return this.#warn(`${stored.why}; asking for a new certificate`);
    }
    const { leaf } = stored;
    const strange = differenceOf(leaf, spec);
    if (strange !== undefined) {
      this.#isForOthers = true;
      this.#warn(
        `the certificate in ${files.current} ${strange}; asking for a new one`,
      );
    }
    this.#hold({ facts: leaf, share: random() });
  }

  #warn(message: string): void {
    this.options.log.warn(message, { code: "TUN906" }, lineKey(message));
  }

  #hold(held: HeldCertificate): void {
    this.#held = held;
    if (hasExpired(held, this.#moment())) return;
    this.options.onKept();
    this.#first.resolve();
  }

  #untilDue(): number {
    if (this.#held === undefined || this.#isForOthers) return 0;
    return untilRenewal(this.#held, this.#moment(), RENEWAL_TIME);
  }

  async #obtain(): Promise<void> {
    const { files, request, random, log } = this.options;
    const { keys, isNew } = await files.pendingKeys();
    this.#madeKeys ||= isNew;
    let chain: readonly CertificateFacts[];
    try {
      chain = await request(keys, this.#stopping.signal, (name) => {
        this.#problem = `CertificateSigningRequest ${name} waits for approval`;
        log.event("a certificate was requested; an operator must approve it", {
          request: name,
        });
      });
      // A certificate for a new key cannot be old, whatever the clock here
      // says.
      const found = { facts: chain[0]!, share: 0 };
      if (!this.#madeKeys && hasExpired(found, this.#moment())) {
        throw new CsrError(
          "Cannot use the certificate that was issued earlier: it expired on " +
            `${isoDate(found.facts.x509.validTo)}; asking for another one`,
          true,
        );
      }
    } catch (error) {
      const isSpent = error instanceof CsrError && error.needsNewKey;
      if (isSpent) await files.forgetPendingKeys();
      throw error;
    }
    const [leaf] = chain;
    await files.keep(chain, keys);
    this.#isForOthers = false;
    const obtained = this.#moment();
    this.#hold({
      facts: issuedNow(leaf!, obtained),
      obtained,
      share: random(),
    });
    log.info("the cluster has issued a certificate", {
      until: new Date(leaf!.notAfterMs).toISOString(),
    });
  }

  #moment(): ClockReading {
    const { timers, now } = this.options;
    return { wallMs: now(), elapsedMs: timers.now() };
  }
}

/**
 * A cluster's certificates begin some minutes before they are issued, which is a
 * good part of short ones. What counts is the time from now on, if this
 * machine's clock can be believed at all.
 */
function issuedNow(
  facts: CertificateFacts,
  at: ClockReading,
): CertificateFacts {
  const { notBeforeMs, notAfterMs } = facts;
  const isPlausible = notBeforeMs <= at.wallMs && at.wallMs < notAfterMs;
  if (!isPlausible) return facts;
  return { ...facts, notBeforeMs: at.wallMs - CLOCK_SKEW_MS };
}

/** @returns What a certificate lacks, as the end of a sentence. */
function differenceOf(
  { x509 }: CertificateFacts,
  spec: CertificateSpec,
): string | undefined {
  const { commonNames, organizations, names } = certificateContents(
    new Uint8Array(x509.raw),
  );
  const isForUs = commonNames.length === 1 &&
    commonNames[0] === spec.commonName &&
    spec.organizations.every((name) => organizations.includes(name));
  if (!isForUs) {
    const subject = [
      ...organizations.map((name) => `O=${name}`),
      ...commonNames.map((name) => `CN=${name ?? "?"}`),
    ];
    return `is for ${subject.join(", ") || "nobody"}`;
  }
  const lacking = [
    ...spec.dnsNames.map((name) => `DNS:${name}`),
    ...spec.ipAddresses.map((ip) => `IP Address:${canonicalIp(ip)}`),
  ].find((name) => !names.includes(name));
  return lacking === undefined ? undefined : `does not say ${lacking}`;
}
