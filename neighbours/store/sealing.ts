/**
 * Keys of authorities, encrypted in the store: a user who can read the state
 * cannot issue certificates with it.
 *
 * AES-256-GCM, with a key that HKDF makes of a file. A record names its key, so
 * that a wrong file is told from damage, and it is bound to its place: no other
 * record's can be put there.
 *
 * @module
 */

import {
  checkPrivate,
  PrivateFileError,
} from "../../platform/files/private_files.ts";
import { systemProblem } from "../../platform/files/file_error.ts";
import type { SealingKeySource } from "./store_connection.ts";
import type { Records } from "./store.ts";
import { damaged, StoreError } from "./store_error.ts";

/**
 * Fewer bytes in the key file would be easier to guess than the keys that they
 * protect.
 */
export const KEY_FILE_BYTES_MIN = 32;

/** A longer file is no key but another file. */
export const KEY_FILE_BYTES_MAX = 1024 * 1024;

/** Records that may hold a private key. */
const SEALED_KEYS = /^ca\/[0-9a-f]{16}\.pem$/;

/** Records that must not be stored unencrypted. */
const SECRET = "PRIVATE KEY";

const ALGORITHM = "A256GCM";
const NONCE_BYTES = 12;

/** The stored form of a record. */
interface Sealed {
  readonly sealed: string;
  /** Id of the key. */
  readonly key: string;
  /** Base64. */
  readonly nonce: string;
  readonly text: string;
}

/** What records are encrypted with. */
export interface SealingKey {
  /** A hash of its bytes, which reveals nothing about them. */
  readonly id: string;
  readonly key: CryptoKey;
  /** The file, for sentences. */
  readonly path: string;
}

/**
 * Reads the file.
 *
 * @returns `undefined` when encryption is off.
 * @throws {StoreError} When it is no key.
 */
export async function readSealingKey(
  source: SealingKeySource | undefined,
): Promise<SealingKey | undefined> {
  if (source === undefined || source.kind === "none") return undefined;
  const { path } = source;
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    await checkPrivate(path, "read");
    bytes = await Deno.readFile(path);
  } catch (error) {
    if (error instanceof PrivateFileError) {
      throw new StoreError(error.message);
    }
    throw new StoreError(
      `Cannot use --state-key-file ${path}: ${systemProblem(error)}`,
    );
  }
  const { length } = bytes;
  if (length < KEY_FILE_BYTES_MIN || length > KEY_FILE_BYTES_MAX) {
    throw new StoreError(
      `Cannot use --state-key-file ${path}: it has ${length} bytes, wanted ` +
        `${KEY_FILE_BYTES_MIN} random ones (head -c 32 /dev/urandom > FILE)`,
    );
  }
  return await sealingKey(bytes, path);
}

/** @param path For sentences. */
export async function sealingKey(
  bytes: Uint8Array<ArrayBuffer>,
  path: string,
): Promise<SealingKey> {
  const secret = await crypto.subtle.importKey("raw", bytes, "HKDF", false, [
    "deriveKey",
    "deriveBits",
  ]);
  const hkdf = (info: string) => ({
    ...{ name: "HKDF", hash: "SHA-256", salt: new Uint8Array(32) },
    info: new TextEncoder().encode(info),
  });
  const id = await crypto.subtle
    .deriveBits(hkdf("tunnel state key id"), secret, 64);
  const key = await crypto.subtle.deriveKey(
    hkdf("tunnel state key"),
    secret,
    { name: "AES-GCM", length: 256 },
    false,
    ["encrypt", "decrypt"],
  );
  return { id: new Uint8Array(id).toHex(), key, path };
}

/** The stored form of a record's text. */
export async function sealText(
  key: SealingKey | undefined,
  record: string,
  text: string,
): Promise<string> {
  const isSecret = SEALED_KEYS.test(record) && text.includes(SECRET);
  if (key === undefined || !isSecret) return text;
  const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
  const bytes = await crypto.subtle.encrypt(
    { name: "AES-GCM", iv: nonce, additionalData: placeOf(record) },
    key.key,
    new TextEncoder().encode(text),
  );
  const sealed: Sealed = {
    sealed: ALGORITHM,
    key: key.id,
    nonce: nonce.toBase64(),
    text: new Uint8Array(bytes).toBase64(),
  };
  return JSON.stringify(sealed, null, 2) + "\n";
}

/**
 * The text of a stored record.
 *
 * @throws {StoreError} When the key is another one, or when there is a key and
 *   the record is not encrypted.
 */
export async function openText(
  key: SealingKey | undefined,
  records: Pick<Records, "noun" | "where">,
  record: string,
  text: string,
): Promise<string> {
  if (!SEALED_KEYS.test(record)) return text;
  const where = records.where(record);
  if (!text.startsWith("{")) {
    if (key === undefined || !text.includes(SECRET)) return text;
    throw new StoreError(
      `Cannot use ${where}: it is not encrypted, and --state-key-file says ` +
        "that it should be; `tunnel state copy` into an empty place encrypts it",
    );
  }
  const sealed = parsed(text);
  if (sealed === undefined) {
    throw damaged(records, record, "it is no whole encrypted key");
  }
  const kept = sealed.key.slice(0, 32);
  if (key === undefined) {
    throw new StoreError(
      `Cannot use ${where}: it is encrypted with the key ${kept}; give ` +
        "--state-key-file, the same file as on the other servers",
    );
  }
  if (key.id !== sealed.key) {
    throw new StoreError(
      `Cannot use ${where}: it is encrypted with the key ${kept}, and ` +
        `${key.path} is the key ${key.id}; give --state-key-file the same ` +
        "file as on the other servers",
    );
  }
  try {
    const bytes = await crypto.subtle.decrypt(
      {
        name: "AES-GCM",
        iv: Uint8Array.fromBase64(sealed.nonce),
        additionalData: placeOf(record),
      },
      key.key,
      Uint8Array.fromBase64(sealed.text),
    );
    return new TextDecoder().decode(bytes);
  } catch {
    throw damaged(records, record, "it was changed since it was encrypted");
  }
}

function parsed(text: string): Sealed | undefined {
  try {
    const found = Object(JSON.parse(text)) as Partial<Sealed>;
    const isWhole = found.sealed === ALGORITHM &&
      [found.key, found.nonce, found.text].every((it) =>
        typeof it === "string"
      );
    return isWhole ? found as Sealed : undefined;
  } catch {
    return undefined;
  }
}

/** The context that the encryption is bound to: the record's name. */
function placeOf(record: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`tunnel state record ${record}`);
}
