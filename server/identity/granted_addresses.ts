/**
 * The identifiers that joined nodes were granted beside their names, with their
 * owners. An unauthenticated agent must not announce one of them, or it would
 * receive connections meant for the node. A new node must not have one of them
 * as its name.
 *
 * Kept in memory, because all nodes' records would have to be read for each
 * unauthenticated agent. Records that change are read again when that is
 * noticed; links that were admitted meanwhile are authorized again then.
 *
 * @module
 */

import type { Log } from "../../platform/log/log.ts";
import {
  type Identifiers,
  IdentifiersError,
  NO_IDENTIFIERS,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import { type Authorizer, isAnonymous, refuse } from "../links/authorizer.ts";
import { type Claim, claimsOf, claimText, isInside } from "./claims.ts";
import type { Grants } from "./node_authorizer.ts";
import type { NodeStore } from "./node_store.ts";
import { logState, StoreError } from "../../neighbours/store/store_error.ts";

/** What it needs from outside. */
export interface GrantedAddressesOptions {
  readonly nodes: Pick<NodeStore, "names" | "read">;
  /** What nodes may claim besides what their records grant. */
  readonly grants: Grants;
  readonly log: Pick<Log, "error">;
}

/** A claim to an identifier of another node. */
export interface TakenClaim {
  /** Such as `ipv4=10.0.0.7`. */
  readonly claim: string;
  readonly node: string;
}

/** The grants of all joined nodes, in memory. */
export class GrantedAddresses {
  readonly #granted = new Map<string, Identifiers>();
  #loading: Promise<void> | undefined;
  /** Admitted without a certificate and without a token. */
  readonly #unauthenticated = new WeakSet<PeerIdentity>();

  constructor(private readonly options: GrantedAddressesOptions) {}

  /** It was asked for, so changes have to be noted. */
  get isWanted(): boolean {
    return this.#loading !== undefined;
  }

  /** Reads all records that can be read, if that was not done. */
  loaded(): Promise<void> {
    if (this.#loading === undefined) {
      this.#loading = this.load();
      // The next request tries again.
      this.#loading.catch(() => this.#loading = undefined);
    }
    return this.#loading;
  }

  /** Reads all records that can be read. */
  async load(): Promise<void> {
    const names = new Set(await this.options.nodes.names());
    for (const name of names) this.note(name);
    for (const name of this.#granted.keys()) {
      if (!names.has(name)) this.#granted.delete(name);
    }
  }

  /** A node's record was written or removed. */
  note(node: string): void {
    try {
      const record = this.options.nodes.read(node);
      if (record === undefined) return void this.#granted.delete(node);
      const granted = parseIdentifiers(record.identifiers, "server");
      this.#granted.set(node, granted);
    } catch (error) {
      const isKnown = error instanceof StoreError ||
        error instanceof IdentifiersError;
      if (!isKnown) throw error;
      // Its earlier grants stay.
      logState(this.options.log, error);
    }
  }

  /** The first of these that a joined node was granted. */
  taken(claimed: Identifiers): TakenClaim | undefined {
    const claims = claimsOf(claimed);
    if (claims.length === 0) return undefined;
    for (const [node, own] of this.#granted) {
      for (const granted of [own, this.options.grants(node)]) {
        if (granted === NO_IDENTIFIERS) continue;
        const rights = claimsOf(granted);
        const claim = claims.find((one) =>
          rights.some((right) => overlap(one, right))
        );
        if (claim !== undefined) return { claim: claimText(claim), node };
      }
    }
    return undefined;
  }

  /**
   * Refuses agents with neither certificate nor token that claim what a node
   * was granted. Asked after the authorizers that know tokens.
   */
  readonly authorize: Authorizer = ({ peer }) => {
    if (!isAnonymous(peer.identity)) return undefined;
    this.#unauthenticated.add(peer.identity);
    const taken = this.taken(peer.identifiers);
    if (taken === undefined) return undefined;
    return refuse(
      `Cannot admit this agent with the identifier ${taken.claim}: the node ` +
        `${taken.node} was granted that, and this agent showed no ` +
        "certificate; leave it out, or join with a token",
    );
  };

  /** The same about a link that stands. */
  readonly authorizeStanding: Authorizer = (candidate) =>
    this.#unauthenticated.has(candidate.peer.identity)
      ? this.authorize(candidate)
      : undefined;
}

/** A larger prefix takes as well as a smaller one: the longest match gets it. */
function overlap(one: Claim, other: Claim): boolean {
  return isInside(one, other) || isInside(other, one);
}
