/**
 * What is kept of nodes whose identity was seen twice, for `tunnel node list`:
 * a record for each in the state, `duplicates/NAME.json`, written by the server
 * that sees it. It is there until a person has dealt with the node.
 *
 * Nothing depends on it: who may link says the node's own record.
 *
 * @module
 */

import { nodeOfFile } from "./node_store.ts";
import type { Store } from "../../neighbours/store/store.ts";

const FOLDER = "duplicates";

/** A server writes each of them again this often while it lasts. */
export const REWRITTEN_MS = 60_000;

/** Times are ISO 8601, UTC. */
export interface DuplicateRecord {
  readonly node: string;
  readonly since: string;
  readonly lastSeen: string;
  /** Only one was left then. */
  readonly isOver: boolean;
  readonly instances: readonly {
    readonly address: string;
    readonly instance: string;
    readonly since: string;
  }[];
}

/** The records of a state. */
export class DuplicateRecords {
  constructor(private readonly state: Store) {}

  async write(record: DuplicateRecord): Promise<void> {
    const text = JSON.stringify(record, null, 2) + "\n";
    await this.state.transact((change) => change.put(keyOf(record.node), text));
  }

  /** A person has dealt with the node. */
  async remove(node: string): Promise<void> {
    // Nearly always there is none, and nothing to wait for.
    if (await this.state.look(keyOf(node)) === undefined) return;
    await this.state.transact((change) => change.remove(keyOf(node)));
  }

  /** Of all nodes that have one; what cannot be read is left out. */
  async list(): Promise<ReadonlyMap<string, DuplicateRecord>> {
    const found = new Map<string, DuplicateRecord>();
    for (const file of await this.state.list(FOLDER)) {
      const node = nodeOfFile(file);
      if (node === undefined) continue;
      try {
        const text = await this.state.look(keyOf(node));
        const record = JSON.parse(text ?? "null") as
          | Partial<DuplicateRecord>
          | null;
        if (isWhole(record)) found.set(node, record);
      } catch {
        // Removed just now, or not ours: a list goes without it.
      }
    }
    return found;
  }
}

function keyOf(node: string): string {
  return `${FOLDER}/${node}.json`;
}

/** Whether it was so a moment ago, as far as the server could say. */
export function isNow(
  { isOver, lastSeen }: DuplicateRecord,
  nowMs: number,
): boolean {
  return !isOver && nowMs - Date.parse(lastSeen) < 2 * REWRITTEN_MS + 10_000;
}

function isWhole(
  record: Partial<DuplicateRecord> | null,
): record is DuplicateRecord {
  const { since, lastSeen, isOver, instances } = record ?? {};
  return !Number.isNaN(Date.parse(since ?? "")) &&
    !Number.isNaN(Date.parse(lastSeen ?? "")) &&
    typeof isOver === "boolean" && Array.isArray(instances) &&
    instances.every((one) =>
      typeof one?.address === "string" && typeof one.instance === "string"
    );
}
