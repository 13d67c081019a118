/**
 * All files of one server or agent that may change while it runs: read, watched,
 * read again, and spoken of before they expire.
 *
 * @module
 */

import type { Timers } from "../../../proto/sync/clock.ts";
import type { Log } from "../../../platform/log/log.ts";
import type { MetricRegistry } from "../../../platform/metrics/metrics.ts";
import {
  type CredentialFiles,
  Credentials,
  type Renewal,
} from "./credentials.ts";
import { ExpiryWatch, type TermSource } from "./expiry.ts";
import {
  type ReloadReport,
  Reloads,
  type ReloadSource,
} from "../../../platform/reload/reloads.ts";

/** What {@linkcode WatchedFiles} needs. */
export interface WatchedFilesOptions {
  readonly log: Log;
  readonly timers: Timers;
  readonly metrics: MetricRegistry;
  /** In front of the names of metrics. */
  readonly prefix: string;
}

export class WatchedFiles {
  readonly #log: Log;
  readonly #reloads: Reloads;
  readonly #expiry: ExpiryWatch;

  constructor(options: WatchedFilesOptions) {
    this.#log = options.log;
    const dated = { ...options, now: Date.now };
    this.#reloads = new Reloads(dated);
    this.#expiry = new ExpiryWatch(dated);
  }

  /**
   * Loads credentials and keeps them.
   *
   * @param kind What they are for: one of few words that the code knows.
   * @param renewal Of the certificate that is shown.
   * @throws {CredentialsError}
   */
  credentials(
    kind: string,
    files: CredentialFiles,
    renewal: Renewal = "by hand",
  ): Credentials {
    const credentials = Credentials.load(files, renewal);
    for (const warning of credentials.warnings) {
      this.#log.warn(warning, { code: "TUN203" });
    }
    this.#reloads.add(new CredentialSource(kind, credentials));
    credentials.onChange(() => this.#expiry.check());
    this.#expiry.add({
      kind,
      renewal,
      get terms() {
        return credentials.terms;
      },
    });
    return credentials;
  }

  /** Adds another source that is read from files. */
  add(source: ReloadSource): void {
    this.#reloads.add(source);
  }

  /** See {@linkcode Reloads.follow}. */
  follow(kind: string): ReloadReport {
    return this.#reloads.follow(kind);
  }

  /**
   * Starts to watch.
   *
   * @param onChange Something else is in use from now on.
   */
  start(onChange: () => void = () => {}): void {
    this.#reloads.onChange = onChange;
    this.#expiry.check();
    this.#reloads.start();
  }

  /** Reads everything again, on request, and reports the result. */
  reload(): void {
    this.#reloads.reloadAll();
  }

  /** Looks for changes now; reports nothing where there are none. */
  check(): void {
    this.#reloads.check();
  }

  /** Certificates in use, by what they are for. */
  get certificates(): readonly TermSource[] {
    return this.#expiry.sources;
  }

  /** For the detail of readiness. */
  get notes(): readonly string[] {
    return [...this.#reloads.notes, ...this.#expiry.notes];
  }

  close(): void {
    this.#reloads.close();
    this.#expiry.close();
  }
}

class CredentialSource implements ReloadSource {
  readonly #credentials: Credentials;

  constructor(readonly kind: string, credentials: Credentials) {
    this.#credentials = credentials;
  }

  get files(): readonly string[] {
    return this.#credentials.files;
  }

  get warnings(): readonly string[] {
    return this.#credentials.warnings;
  }

  reload(): string | undefined {
    return this.#credentials.reload()
      ? "certificates reloaded, the next handshakes use them"
      : undefined;
  }
}
