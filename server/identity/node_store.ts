/**
 * The nodes that joined: one file each, which binds a name to a key.
 *
 * Read synchronously and without a cache when a link is authorized, so that there
 * is no moment at which a revoked node is still known as a good one.
 *
 * @module
 */

import {
  finishedFiles,
  removeFile,
  replaceFile,
} from "../../platform/files/atomic_file.ts";
import { isNodeName } from "../../proto/identity/node_name.ts";
import { damaged, parseState, type StateDirectory } from "./state_directory.ts";
import type { TokenStore } from "./token_store.ts";

/** Whether a node may link. */
export type NodeState = "approved" | "pending" | "revoked";

/** A node as it is kept. */
export interface NodeRecord {
  readonly name: string;
  readonly state: NodeState;
  /** Of the key it joined with, hex. Another key is another node. */
  readonly publicKeySha256: string;
  /** What it may call itself besides its name: a URL query. */
  readonly identifiers: string;
  /** ISO 8601, UTC. */
  readonly joinedAt: string;
  /** The token it joined with. */
  readonly tokenId: string;
  /** Where it joined from. */
  readonly joinedFrom: string;
  /** Its newest certificate; absent while it waits for approval. */
  readonly certificate?: {
    readonly serialNumber: string;
    /** Id of the authority. */
    readonly authority: string;
    readonly issuedAt: string;
    readonly expiresAt: string;
  };
  /**
   * Ids of the authorities that it trusts, as it announced last while they were
   * being changed; sorted.
   */
  readonly trusts?: readonly string[];
  /** Why it was revoked. */
  readonly reason?: string;
}

/** The records of nodes in a state directory. */
export class NodeStore {
  readonly #state: StateDirectory;

  constructor(state: StateDirectory) {
    this.#state = state;
  }

  /** The folder, to be watched. */
  get folder(): string {
    return this.#state.path("nodes");
  }

  /** @returns `undefined` for a node nobody knows. @throws {StateError} */
  read(name: string): NodeRecord | undefined {
    if (!isNodeName(name)) return undefined;
    const path = this.#path(name);
    let text: string;
    try {
      text = Deno.readTextFileSync(path);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      throw damaged(path, error instanceof Error ? error.message : `${error}`);
    }
    const record = parseState(path, text) as Partial<NodeRecord>;
    const isWhole = record?.name === name &&
      STATES.has(record.state ?? "") &&
      /^[0-9a-f]{64}$/.test(record.publicKeySha256 ?? "") &&
      typeof record.identifiers === "string" &&
      typeof record.joinedAt === "string" &&
      typeof record.joinedFrom === "string";
    if (!isWhole) throw damaged(path, "it is no whole node");
    return record as NodeRecord;
  }

  /** Of all nodes, whose records may be damaged. */
  async names(): Promise<string[]> {
    const files = await finishedFiles(this.folder);
    return files.flatMap((file) => nodeOfFile(file) ?? []);
  }

  /** All nodes, by name. @throws {StateError} */
  async list(): Promise<NodeRecord[]> {
    const nodes: NodeRecord[] = [];
    for (const name of await this.names()) {
      const record = this.read(name);
      if (record !== undefined) nodes.push(record);
    }
    return nodes;
  }

  /** Puts a record in place. For use inside `StateDirectory.exclusively`. */
  write(record: NodeRecord): Promise<void> {
    const text = JSON.stringify(record, null, 2) + "\n";
    return replaceFile(this.#path(record.name), text);
  }

  /**
   * Changes a node's record.
   *
   * @returns The changed one; `undefined` for a node nobody knows.
   */
  change(
    name: string,
    change: (record: NodeRecord) => NodeRecord,
  ): Promise<NodeRecord | undefined> {
    return this.#state.exclusively(async () => {
      const record = this.read(name);
      if (record === undefined) return undefined;
      const changed = change(record);
      await this.write(changed);
      return changed;
    });
  }

  /**
   * Forgets that the name was ever bound. Works for damaged records too.
   *
   * @param tokens Where the token is that the node joined with: it must not
   *   come again by that.
   * @returns Whether there was such a node.
   */
  forget(name: string, tokens: Pick<TokenStore, "spend">): Promise<boolean> {
    if (!isNodeName(name)) return Promise.resolve(false);
    return this.#state.exclusively(async () => {
      await tokens.spend(name);
      return await removeFile(this.#path(name));
    });
  }

  #path(name: string): string {
    return `${this.folder}/${name}.json`;
  }
}

const STATES: ReadonlySet<string> = new Set(["approved", "pending", "revoked"]);

/** The node that a file in the folder is about. */
export function nodeOfFile(file: string): string | undefined {
  const name = /^(.+)\.json$/.exec(file)?.[1];
  return name !== undefined && isNodeName(name) ? name : undefined;
}
