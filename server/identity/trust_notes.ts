/**
 * Writes down which authorities nodes trust, while these are being changed: so
 * that a person can see when the next step is safe.
 *
 * In between nothing is written: all nodes trust the only one there is.
 *
 * @module
 */

import { readAuthorityIds } from "../../proto/identity/authority_ids.ts";
import type { Authorities } from "./authorities.ts";
import { standingProblem } from "./node_authorizer.ts";
import type { NodeRecord, NodeStore } from "./node_store.ts";

/** What it needs from outside. */
export interface TrustNotesOptions {
  readonly nodes: NodeStore;
  readonly authorities: () => Authorities;
}

/** Records in nodes' records which authorities they trust. */
export class TrustNotes {
  constructor(private readonly options: TrustNotesOptions) {}

  /**
   * A node announces which authorities it trusts. An announcement with a key that
   * was revoked, or that the name had before, is not that node's.
   *
   * @param publicKeySha256 Of the key that was proven.
   * @param announced What it sent, whatever it is.
   * @throws {StoreError} When it cannot be written down.
   */
  async note(
    node: string,
    publicKeySha256: string,
    announced: readonly string[],
  ): Promise<void> {
    const { nodes, authorities } = this.options;
    const { next, previous } = authorities();
    if (next === undefined && previous === undefined) return;
    const trusts = readAuthorityIds(announced);
    if (trusts === undefined) return;
    const known = nodes.read(node);
    if (standingProblem(node, known, publicKeySha256) !== undefined) return;
    if (isSame(known!, trusts)) return;
    await nodes.change(node, (record) => ({ ...record, trusts }));
  }
}

function isSame({ trusts }: NodeRecord, now: readonly string[]): boolean {
  return trusts?.join() === now.join();
}
