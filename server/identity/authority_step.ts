/**
 * How far a change of the certificate authority is: which nodes would be locked
 * out by the next step.
 *
 * @module
 */

import {
  authorityIdOf,
  readAuthorityIds,
} from "../../proto/identity/enrolment.ts";
import type { Authorities } from "./authorities.ts";
import type { NodeRecord, NodeStore } from "./node_store.ts";
import { standingProblem } from "./node_authorizer.ts";

/** The next step of a change. */
export interface AuthorityStep {
  /** Nodes that could be locked out. */
  readonly concerned: readonly NodeRecord[];
  /** Those for which the step is not safe yet. */
  readonly lacking: readonly NodeRecord[];
  /** What the other servers do or have. */
  readonly done: string;
  readonly command: string;
}

export function stepOf(
  { next, previous }: Authorities,
  nodes: readonly NodeRecord[],
): AuthorityStep {
  const concerned = certified(nodes);
  if (next !== undefined) {
    const knowers = new Set(knowersOf(authorityIdOf(next.facts), concerned));
    return {
      concerned,
      lacking: concerned.filter((node) => !knowers.has(node)),
      done: "know the new authority",
      command: "tunnel ca activate",
    };
  }
  return {
    concerned,
    lacking: previous === undefined
      ? []
      : holdersOf(authorityIdOf(previous), concerned),
    done: "have a certificate of the new authority",
    command: "tunnel ca retire",
  };
}

/** Those that could be locked out. */
export function certified(nodes: readonly NodeRecord[]): NodeRecord[] {
  return nodes.filter(({ state, certificate }) =>
    state !== "revoked" && certificate !== undefined
  );
}

/** Nodes that would be locked out without it. Revoked ones are already. */
export function holdersOf(
  authority: string,
  nodes: readonly NodeRecord[],
): NodeRecord[] {
  return certified(nodes)
    .filter(({ certificate }) => certificate?.authority === authority);
}

/**
 * Nodes that report that they trust an authority. A node that has reported nothing
 * since the change began trusts the issuer of its certificate.
 */
export function knowersOf(
  authority: string,
  nodes: readonly NodeRecord[],
): NodeRecord[] {
  return nodes.filter(({ state, certificate, trusts }) =>
    state !== "revoked" &&
    (trusts?.includes(authority) || certificate?.authority === authority)
  );
}

/**
 * Records which authorities a node says it trusts, while authorities are being
 * changed, so that an operator can see when the next step is safe. At other
 * times nothing is recorded: all nodes trust the only authority.
 *
 * An announcement with a key that was revoked, or that the name had before, is
 * not that node's.
 *
 * @param publicKeySha256 Hash of the key that was proven.
 * @param announced What it sent, unchecked.
 * @throws {StoreError} When it cannot be recorded.
 */
export async function noteTrust(
  { nodes, authorities }: {
    readonly nodes: NodeStore;
    readonly authorities: () => Authorities;
  },
  node: string,
  publicKeySha256: string,
  announced: readonly string[],
): Promise<void> {
  const { next, previous } = authorities();
  if (next === undefined && previous === undefined) return;
  const trusts = readAuthorityIds(announced);
  if (trusts === undefined) return;
  const known = nodes.read(node);
  if (standingProblem(node, known, publicKeySha256) !== undefined) return;
  if (known!.trusts?.join() === trusts.join()) return;
  await nodes.change(node, (record) => ({ ...record, trusts }));
}
