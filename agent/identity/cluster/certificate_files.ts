/**
 * The files of a certificate from the cluster, in the layout of Kubernetes' own
 * components: `<component>-current.pem` is a link to a dated file that holds
 * chain and key. So a node can change from their agent to ours and back.
 *
 * It is a cache: for any fault a new certificate is requested. Beside it lies
 * the key of a pending request, so that a restart finds the same request again.
 *
 * @module
 */

import { createPrivateKey } from "node:crypto";
import {
  removeFile,
  replaceFile,
  syncDirectory,
} from "../../../platform/files/atomic_file.ts";
import { ifThere } from "../../../platform/files/file_error.ts";
import { privateFileError } from "../../../platform/files/private_files.ts";
import {
  type CertificateFacts,
  readCertificates,
} from "../../../platform/pki/certificate.ts";
import {
  exportPrivateKey,
  generateKeyPair,
  importKeyPair,
  PkiError,
} from "../../../platform/pki/key_pair.ts";

/** Dated files that stay: the current one, and its predecessor. */
const KEPT = 2;

/** PKCS #8, or as Go's standard library writes keys of this kind. */
const KEY_BLOCK =
  /-----BEGIN (?:EC )?PRIVATE KEY-----[^-]*-----END (?:EC )?PRIVATE KEY-----/;

/** The result of a look at the files. */
type StoredCertificate =
  | { readonly kind: "none" }
  | { readonly kind: "good"; readonly leaf: CertificateFacts }
  /** `why` is a sentence that names the file. */
  | { readonly kind: "damaged"; readonly why: string };

export class CertificateFiles {
  /**
   * @param component Such as `yurttunnel-agent`; begins every name.
   * @param now Milliseconds since 1970.
   */
  constructor(
    private readonly directory: string,
    private readonly component: string,
    private readonly now: () => number,
  ) {}

  /** Chain and key in one, PEM; there once something was kept. */
  get current(): string {
    return this.#path("current.pem");
  }

  /** Authorities to verify servers with, PEM. */
  get authorities(): string {
    return this.#path("ca.pem");
  }

  /** Makes the directory. @throws {PrivateFileError} */
  async open(): Promise<void> {
    const mode = 0o700;
    await privateFileError(
      this.directory,
      () => Deno.mkdir(this.directory, { recursive: true, mode }),
    );
  }

  async read(): Promise<StoredCertificate> {
    let pem: string;
    try {
      pem = await Deno.readTextFile(this.current);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return { kind: "none" };
      return this.#damaged(error as Error);
    }
    try {
      const [leaf] = readCertificates(pem);
      const key = createPrivateKey(KEY_BLOCK.exec(pem)?.[0] ?? "");
      if (leaf!.x509.checkPrivateKey(key)) {
        return { kind: "good", leaf: leaf! };
      }
      throw new PkiError("its key is not the certificate's");
    } catch (error) {
      // Readers of PEM throw errors of many classes.
      return this.#damaged(error as Error);
    }
  }

  /**
   * Puts a new certificate in the place of the old one, which stays beside.
   *
   * @throws {PrivateFileError} With the old one still in place.
   */
  async keep(
    chain: readonly CertificateFacts[],
    keys: CryptoKeyPair,
  ): Promise<void> {
    await privateFileError(this.current, () => this.#replace(chain, keys));
  }

  async #replace(
    chain: readonly CertificateFacts[],
    keys: CryptoKeyPair,
  ): Promise<void> {
    const date = new Date(this.now()).toISOString()
      .replace(/\.\d+Z$/, "").replaceAll(/[T:]/g, "-");
    const dated = `${this.component}-${date}.pem`;
    const pem = chain.map(({ pem }) => pem).join("") +
      await exportPrivateKey(keys.privateKey);
    await replaceFile(`${this.directory}/${dated}`, pem);
    const updated = this.#path("updated.pem");
    await removeFile(updated);
    await Deno.symlink(dated, updated);
    await Deno.rename(updated, this.current);
    await syncDirectory(this.directory);
    await removeFile(this.#pending);
    await this.#removeOld();
  }

  /** @returns `undefined` when none were kept. */
  async readAuthorities(): Promise<string | undefined> {
    return await ifThere(Deno.readTextFile(this.authorities));
  }

  async keepAuthorities(pem: string): Promise<void> {
    await replaceFile(this.authorities, pem, 0o644);
  }

  /**
   * The key to ask for a certificate with: the same until that was kept.
   *
   * @throws {PrivateFileError} When it cannot be kept.
   */
  async pendingKeys(): Promise<
    { readonly keys: CryptoKeyPair; readonly isNew: boolean }
  > {
    try {
      const pem = await Deno.readTextFile(this.#pending);
      return { keys: await importKeyPair(pem), isNew: false };
    } catch (error) {
      const isMissing = error instanceof Deno.errors.NotFound ||
        error instanceof PkiError;
      if (!isMissing) throw error;
    }
    const keys = await generateKeyPair();
    const pem = await exportPrivateKey(keys.privateKey);
    await privateFileError(
      this.#pending,
      () => replaceFile(this.#pending, pem),
    );
    return { keys, isNew: true };
  }

  /** The next request uses a new key. */
  async forgetPendingKeys(): Promise<void> {
    await removeFile(this.#pending);
  }

  get #pending(): string {
    return this.#path("pending.key");
  }

  #path(name: string): string {
    return `${this.directory}/${this.component}-${name}`;
  }

  #damaged({ message }: Error): StoredCertificate {
    return { kind: "damaged", why: `Cannot use ${this.current}: ${message}` };
  }

  async #removeOld(): Promise<void> {
    const dated: string[] = [];
    for await (const { name } of Deno.readDir(this.directory)) {
      const rest = name.startsWith(`${this.component}-`)
        ? name.slice(this.component.length + 1)
        : "";
      if (/^\d{4}(?:-\d{2}){5}\.pem$/.test(rest)) dated.push(name);
    }
    for (const name of dated.sort().slice(0, -KEPT)) {
      await removeFile(`${this.directory}/${name}`);
    }
  }
}
