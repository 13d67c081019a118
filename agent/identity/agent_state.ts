/**
 * The directory in which an agent keeps the identity it has joined with.
 *
 *     key.pem    made here, and never sent anywhere; the name is bound to it
 *     ca.pem     whom to trust as the server's authority; the first one issues
 *     cert.pem   of the key; may be missing, the key gets a new one
 *     node.json  the node's name, and where it joined; written last
 *     servers.json  where servers are, as servers have said; may be missing
 *     lock       held by the process that renews: several may have this identity
 *
 * A key that was lost is a fault that a person must see: its name is taken, and
 * a new key would be an unknown node. So nothing but `key.pem` in an empty
 * directory is ever made without having been asked for.
 *
 * @module
 */

import {
  createFile,
  finishedFiles,
  replaceFile,
} from "../../platform/files/atomic_file.ts";
import { systemProblem } from "../../platform/files/file_error.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import {
  checkPrivate,
  PrivateFileError,
  privateFileError,
} from "../../platform/files/private_files.ts";
import {
  type CertificateFacts,
  readCertificates,
} from "../../platform/pki/certificate.ts";
import {
  exportPrivateKey,
  generateKeyPair,
  importKeyPair,
  PkiError,
  publicKeyInfo,
  sha256Hex,
} from "../../platform/pki/key_pair.ts";
import type { PeerServer } from "../../proto/link/link_messages.ts";
import type { ServerAddress } from "../../net/dial/server_addresses.ts";
import type { CredentialFiles } from "../../net/tls/trust/credentials.ts";
import type { Enrolment } from "../../proto/identity/identity_messages.ts";
import {
  formatJoinedNode,
  type JoinedNode,
  parseJoinedNode,
} from "./joined_node.ts";

const FILES = ["key.pem", "ca.pem", "cert.pem", "node.json"] as const;
type FileName = typeof FILES[number];
const LOCK = "lock";
/** Files that help while they exist, and whose loss does no harm. */
const SERVERS = "servers.json";
const KNOWN = new Set<string>([...FILES, LOCK, SERVERS, "lost+found"]);
/** A longer one is not ours. */
const SERVERS_MAX = 64;
const SERVERS_LENGTH_MAX = 64 * 1024;

/** The process that renews gets an answer sooner, or none at all. */
const LOCK_WAIT_MS = 15_000;
const LOCK_LOOK_MS = 50;

/** The content of a directory. */
export interface AgentIdentityFiles {
  readonly node: JoinedNode;
  readonly keys: CryptoKeyPair;
  readonly authorities: readonly CertificateFacts[];
  /** The leaf; absent when its file is. */
  readonly certificate?: CertificateFacts;
}

/**
 * Whether an agent has joined, by the file that is written last. Synchronous,
 * because command lines are read so.
 *
 * @throws {PrivateFileError} It is unknown: the directory belongs to another
 *   user, or is no directory. Joining again would be the wrong remedy.
 */
export function hasJoined(root: string): boolean {
  try {
    Deno.statSync(`${root}/node.json`);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw new PrivateFileError(
      `Cannot look for an identity in ${root}: ${systemProblem(error)}`,
      { cause: error },
    );
  }
}

/** The same where an identity is one way among others. */
export function hasUsableIdentity(root: string): boolean {
  try {
    return hasJoined(root);
  } catch (error) {
    if (!(error instanceof PrivateFileError)) throw error;
    return false;
  }
}

export class AgentState {
  private constructor(readonly root: string) {}

  /**
   * Opens a directory that is an agent's, or makes an empty one.
   *
   * @throws {PrivateFileError}
   */
  static async open(root: string): Promise<AgentState> {
    await privateFileError(root, async () => {
      await Deno.mkdir(root, { recursive: true, mode: 0o700 });
    });
    await checkPrivate(root, "change");
    const found = await privateFileError(root, () => finishedFiles(root));
    const foreign = found.filter((name) => !KNOWN.has(name));
    if (foreign.length > 0 && !found.includes("node.json")) {
      throw new PrivateFileError(
        `Cannot use state directory ${root}: it holds ` +
          `${foreign.slice(0, 5).join(", ")}${
            foreign.length > 5 ? ", …" : ""
          } ` +
          "and no identity of an agent; name an empty one with --state-dir",
      );
    }
    return new AgentState(root);
  }

  /** For TLS; see `Credentials`. */
  get files(): Required<CredentialFiles> {
    return {
      cert: this.#path("cert.pem"),
      key: this.#path("key.pem"),
      ca: this.#path("ca.pem"),
    };
  }

  /**
   * The node's key, made when there has never been one.
   *
   * @throws {PrivateFileError}
   */
  async keys(): Promise<CryptoKeyPair> {
    const path = this.#path("key.pem");
    if (!await exists(path)) {
      if (hasJoined(this.root)) throw this.#lost("key.pem", "is missing");
      const { privateKey } = await generateKeyPair();
      const pem = await exportPrivateKey(privateKey);
      // When two processes join at once, both go on with the same key.
      await privateFileError(path, () => createFile(path, pem));
    }
    await checkPrivate(path, "read");
    return await this.#reading("key.pem", importKeyPair);
  }

  /**
   * Everything, checked; `undefined` before the node has joined.
   *
   * @throws {PrivateFileError} Naming the file and what to do.
   */
  async read(): Promise<AgentIdentityFiles | undefined> {
    if (!hasJoined(this.root)) return undefined;
    const node = await this.#reading("node.json", parseJoinedNode);
    const keys = await this.keys();
    const authorities = await this.#reading("ca.pem", readCertificates);
    const identity = { node, keys, authorities };
    if (!await exists(this.#path("cert.pem"))) return identity;
    const certificate = await this.#reading("cert.pem", async (pem) => {
      const [leaf] = readCertificates(pem);
      if (await belongs(leaf!, keys)) return leaf!;
      throw new PkiError("it is of another key than key.pem");
    });
    return { ...identity, certificate };
  }

  /**
   * Saves what a server has issued, in an order that may be interrupted at any
   * point.
   *
   * @throws {PkiError} When it is not for our key; then nothing is saved.
   */
  async keep(
    enrolment: Enrolment,
    servers: readonly ServerAddress[],
  ): Promise<Required<AgentIdentityFiles>> {
    const decoder = new TextDecoder();
    const keys = await this.keys();
    const authorities = decoder.decode(enrolment.authorities);
    const certificate = decoder.decode(enrolment.certificate);
    const identity = {
      node: {
        name: enrolment.node,
        identifiers: enrolment.identifiers,
        servers,
      },
      keys,
      authorities: readCertificates(authorities),
      certificate: readCertificates(certificate)[0]!,
    };
    if (!await belongs(identity.certificate, keys)) {
      throw new PkiError(
        "Cannot use the server's answer: its certificate is of another key",
      );
    }
    await this.#replace("ca.pem", authorities);
    await this.#replace("cert.pem", certificate);
    await this.#replace("node.json", formatJoinedNode(identity.node));
    return identity;
  }

  /**
   * The addresses of servers, from servers; empty when the file cannot be read.
   */
  async readServers(): Promise<readonly PeerServer[]> {
    try {
      const path = this.#path(SERVERS);
      await checkPrivate(path, "change");
      const text = await Deno.readTextFile(path);
      if (text.length > SERVERS_LENGTH_MAX) return [];
      const found: unknown = JSON.parse(text);
      return Array.isArray(found)
        ? found.slice(0, SERVERS_MAX).filter(isPeerServer)
        : [];
    } catch {
      // They are learned again.
      return [];
    }
  }

  /** @throws {PrivateFileError} */
  async keepServers(servers: readonly PeerServer[]): Promise<void> {
    const path = this.#path(SERVERS);
    const text = JSON.stringify(servers, undefined, 2) + "\n";
    await privateFileError(path, () => replaceFile(path, text));
  }

  /**
   * Writes the key of a running agent again, when its file is gone or damaged:
   * otherwise the next start would find the identity lost. A different valid
   * key is left alone, because an operator has put it there; so is an emptied
   * directory, which is meant for a new join.
   *
   * @returns Whether it was written.
   * @throws {PrivateFileError} When it cannot be written.
   */
  async restoreKey({ privateKey }: CryptoKeyPair): Promise<boolean> {
    if (!hasJoined(this.root)) return false;
    const path = this.#path("key.pem");
    try {
      await importKeyPair(await Deno.readTextFile(path));
      return false;
    } catch (error) {
      const isDamaged = error instanceof PkiError ||
        error instanceof Deno.errors.NotFound;
      // What cannot be read now may be whole.
      if (!isDamaged) return false;
    }
    const pem = await exportPrivateKey(privateKey);
    await privateFileError(path, () => replaceFile(path, pem));
    return true;
  }

  /** Whether a certificate of this key is kept; its file may be anything. */
  async holdsCertificate(keys: CryptoKeyPair): Promise<boolean> {
    try {
      const [leaf] = readCertificates(
        await Deno.readTextFile(this.#path("cert.pem")),
      );
      return await belongs(leaf!, keys);
    } catch {
      // For any fault the key gets a new certificate.
      return false;
    }
  }

  /**
   * Runs `act` while no other process does such work with this directory.
   *
   * @throws {PrivateFileError} When the lock is not free; else what `act`
   *   throws.
   */
  async exclusively<Result>(
    act: () => Promise<Result>,
    waitMs: number = LOCK_WAIT_MS,
  ): Promise<Result> {
    const path = this.#path(LOCK);
    const options = { read: true, write: true, create: true, mode: 0o600 };
    using file = await privateFileError(path, () => Deno.open(path, options));
    const untilMs = systemTimers.now() + waitMs;
    while (!await privateFileError(path, () => file.tryLock(true))) {
      if (systemTimers.now() >= untilMs) {
        throw new PrivateFileError(
          `Cannot use ${path}: another process of this node has held it for ` +
            `${waitMs / 1_000} s; look whether one hangs`,
        );
      }
      await new Promise<void>((resolve) => {
        systemTimers.after(LOCK_LOOK_MS, resolve);
      });
    }
    return await act();
  }

  /** Saves the authorities to trust from now on. @param pem Already parsed. */
  keepAuthorities(pem: string): Promise<void> {
    return this.#replace("ca.pem", pem);
  }

  /** Replaces a file unless it says that already. */
  async #replace(name: FileName, text: string): Promise<void> {
    const path = this.#path(name);
    await privateFileError(path, async () => {
      const before = await Deno.readTextFile(path).catch(() => undefined);
      if (before !== text) await replaceFile(path, text);
    });
  }

  async #reading<Result>(
    name: FileName,
    read: (text: string) => Result | Promise<Result>,
  ): Promise<Result> {
    const path = this.#path(name);
    if (!await exists(path)) throw this.#lost(name, "is missing");
    const text = await privateFileError(path, () => Deno.readTextFile(path));
    if (text === "") throw this.#lost(name, "is empty");
    try {
      return await read(text);
    } catch (error) {
      if (!(error instanceof PkiError)) throw error;
      throw this.#lost(name, `cannot be used: ${error.message}`);
    }
  }

  #lost(name: FileName, seen: string): PrivateFileError {
    const remedy = name === "cert.pem"
      ? "remove it, and the agent gets a new one with its key"
      : "restore it from a backup; or `tunnel node forget` this node on the " +
        "server, empty the directory, and join with a new token";
    return new PrivateFileError(
      `Cannot use the agent's state: ${this.#path(name)} ${seen}; ${remedy}`,
    );
  }

  #path(name: FileName | typeof LOCK | typeof SERVERS): string {
    return `${this.root}/${name}`;
  }
}

async function belongs(
  { publicKeySha256 }: CertificateFacts,
  { publicKey }: CryptoKeyPair,
): Promise<boolean> {
  return publicKeySha256 === sha256Hex(await publicKeyInfo(publicKey));
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    return true;
  }
}

function isPeerServer(found: unknown): found is PeerServer {
  const { serverId, instanceId, address } = Object(found);
  return [serverId, instanceId, address].every((text) =>
    typeof text === "string"
  );
}
