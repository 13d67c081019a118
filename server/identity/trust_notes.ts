/**
 * Writes down which authorities nodes trust, while these are being changed: so
 * that a person can see when the next step is safe.
 *
 * In between nothing is written: everybody trusts the only one there is.
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

/** See the module description. */
export class TrustNotes {
  readonly #options: TrustNotesOptions;

  constructor(options: TrustNotesOptions) {
    this.#options = options;
  }

  /**
   * A node says whom it trusts. Who speaks with a key that was revoked, or that
   * the name had before, says nothing of the node that a person waits for.
   *
   * @param publicKeySha256 Of the key that was proven.
   * @param said Its words, whatever they are.
   * @throws {StateError} When it cannot be written down.
   */
  async note(
    node: string,
    publicKeySha256: string,
    said: readonly string[],
  ): Promise<void> {
    const { nodes, authorities } = this.#options;
    const { next, previous } = authorities();
    if (next === undefined && previous === undefined) return;
    const trusts = readAuthorityIds(said);
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
