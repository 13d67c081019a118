/**
 * The nodes that joined: one record each, which binds a name to a key.
 *
 * Read synchronously when a link is authorized: from its file, or, if the state
 * is not on this machine, from the last report of the watch.
 *
 * @module
 */

import { isNodeName } from "../../proto/identity/node_name.ts";
import type { Store, StoreTransaction } from "../../neighbours/store/store.ts";
import { damaged, parseRecord } from "../../neighbours/store/store_error.ts";
import type { TokenStore } from "./token_store.ts";

/** Whether a node may link. */
export type NodeState = "approved" | "pending" | "revoked";

/** The stored form of a node. */
export interface NodeRecord {
  readonly name: string;
  readonly state: NodeState;
  /**
   * SHA-256 of the key that it joined with, in hex. Another key means another
   * node.
   */
  readonly publicKeySha256: string;
  /** The identifiers that it may announce beside its name: a URL query. */
  readonly identifiers: string;
  /** ISO 8601, UTC. */
  readonly joinedAt: string;
  /** The token it joined with. */
  readonly tokenId: string;
  /** The address that it joined from. */
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

const FOLDER = "nodes";

/** The records of nodes in a state. */
export class NodeStore {
  constructor(private readonly state: Store) {}

  /** Others may have changed a node, and `read` not know it yet. */
  get mayLag(): boolean {
    return this.state.mayLag;
  }

  /** @returns `undefined` for an unknown node. @throws {StoreError} */
  read(name: string): NodeRecord | undefined {
    if (!isNodeName(name)) return undefined;
    return this.#parse(name, this.state.peek(nodeKey(name)));
  }

  /**
   * The same inside a change, or read from the store now; `read` returns it
   * from then on.
   *
   * @throws {StoreError}
   */
  async readNow(
    name: string,
    records: Pick<StoreTransaction, "read"> = this.state,
  ): Promise<NodeRecord | undefined> {
    if (!isNodeName(name)) return undefined;
    return this.#parse(name, await records.read(nodeKey(name)));
  }

  /** Records of all nodes; some may be damaged. */
  async names(): Promise<string[]> {
    const files = await this.state.list(FOLDER);
    return files.flatMap((file) => nodeOfFile(file) ?? []);
  }

  /** All nodes, by name. @throws {StoreError} */
  async list(): Promise<NodeRecord[]> {
    const nodes: NodeRecord[] = [];
    for (const name of await this.names()) {
      const record = this.read(name);
      if (record !== undefined) nodes.push(record);
    }
    return nodes;
  }

  /** Puts a record in place, as a part of a change. */
  write(record: NodeRecord, change: StoreTransaction): Promise<void> {
    const text = JSON.stringify(record, null, 2) + "\n";
    return change.put(nodeKey(record.name), text);
  }

  /**
   * Changes a node's record.
   *
   * @returns The changed record; `undefined` for an unknown node.
   */
  change(
    name: string,
    change: (record: NodeRecord) => NodeRecord,
  ): Promise<NodeRecord | undefined> {
    return this.state.transact(async (transaction) => {
      const record = await this.readNow(name, transaction);
      if (record === undefined) return undefined;
      const changed = change(record);
      await this.write(changed, transaction);
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
    return this.state.transact(async (change) => {
      await tokens.spend(name, change);
      return await change.remove(nodeKey(name));
    });
  }

  #parse(name: string, text: string | undefined): NodeRecord | undefined {
    if (text === undefined) return undefined;
    const key = nodeKey(name);
    const state = this.state;
    const record = parseRecord(state, key, text) as Partial<NodeRecord>;
    const isWhole = record?.name === name &&
      STATES.has(record.state ?? "") &&
      /^[0-9a-f]{64}$/.test(record.publicKeySha256 ?? "") &&
      typeof record.identifiers === "string" &&
      typeof record.joinedAt === "string" &&
      typeof record.joinedFrom === "string";
    if (!isWhole) throw damaged(state, key, "it is no whole node");
    return record as NodeRecord;
  }
}

function nodeKey(name: string): string {
  return `${FOLDER}/${name}.json`;
}

const STATES: ReadonlySet<string> = new Set(["approved", "pending", "revoked"]);

/** The node that a file in the folder is about. */
export function nodeOfFile(file: string): string | undefined {
  const name = /^(.+)\.json$/.exec(file)?.[1];
  return name !== undefined && isNodeName(name) ? name : undefined;
}
