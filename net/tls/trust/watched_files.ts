/**
 * All files of one server or agent that may change while it runs: read, watched,
 * read again, and spoken of before they expire.
 *
 * @module
 */

import type { NamedTools } from "../../../platform/program/tools.ts";
import {
  type CredentialFiles,
  Credentials,
  type Renewal,
} from "./credentials.ts";
import { ExpiryWatch, type TermSource } from "./expiry.ts";
import { Reloads } from "../../../platform/reload/reloads.ts";

export class WatchedFiles extends Reloads {
  readonly #expiry: ExpiryWatch;

  /** @param written What is wrong with files that the program writes. */
  constructor(
    private readonly tools: NamedTools,
    private readonly written: () => readonly (string | undefined)[] = () => [],
  ) {
    const dated = { ...tools, now: Date.now };
    super(dated);
    this.#expiry = new ExpiryWatch(dated);
  }

  /**
   * Reads credentials, warns about problems in them, and follows changes of the
   * files.
   *
   * @throws {CredentialsError}
   */
  credentials(
    kind: string,
    files: CredentialFiles,
    renewal: Renewal = "by hand",
  ): Credentials {
    const credentials = Credentials.load(files, renewal);
    for (const warning of credentials.warnings) {
      this.tools.log.warn(warning, { code: "TUN203" });
    }
    this.add({
      kind,
      files: credentials.files,
      get warnings() {
        return credentials.warnings;
      },
      reload: () =>
        credentials.reload()
          ? "certificates reloaded, the next handshakes use them"
          : undefined,
    });
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

  /** @param onChange Called after every reload that changed something. */
  override start(onChange: () => void = this.onChange): void {
    this.onChange = onChange;
    this.#expiry.check();
    super.start();
  }

  /** Lists all credentials in use. */
  get certificates(): readonly TermSource[] {
    return this.#expiry.sources;
  }

  /** What is wrong with files, and which certificates expire soon. */
  override get notes(): readonly string[] {
    const written = this.written().filter((it) => it !== undefined);
    return [...super.notes, ...this.#expiry.notes, ...written];
  }

  override close(): void {
    super.close();
    this.#expiry.close();
  }
}
