/**
 * What expires, and when: certificates in use, authorities, nodes.
 *
 * @module
 */

import {
  certificatesInUse,
  expiryOf,
  problemAt,
} from "../../net/admin/own_facts.ts";
import type { CertificatesAnswer } from "../../proto/admin/list_answers.ts";
import type { Expiry } from "../../proto/admin/status_answer.ts";
import type { NodeView } from "./node_view.ts";
import type { ServerParts } from "../../server/assembly/server_admin_port.ts";

/** Of a status. */
const EXPIRIES_MAX = 10;

/** Nodes whose certificates are listed: the soonest to expire. */
const NODES_LISTED_MAX = 100;

/** What expires next is looked for no sooner than after this. */
const NEXT_AGE_MS = 5_000;

type Listed = CertificatesAnswer["certificates"][number];

/** See the module description. */
export class Expiries {
  #next: readonly Expiry[] = [];
  #lookedMs = -Infinity;

  constructor(private readonly facts: ServerParts) {}

  /** The soonest first; looked for again when some seconds have passed. */
  next(view: NodeView): readonly Expiry[] {
    const { timers } = this.facts;
    if (timers.now() - this.#lookedMs < NEXT_AGE_MS) return this.#next;
    this.#lookedMs = timers.now();
    return this.#next = this.#look(view);
  }

  #look(view: NodeView): readonly Expiry[] {
    const { certificates } = this.facts.files;
    const own = certificatesInUse(certificates).map(expiryOf);
    // Nodes that were given up long ago would always come first.
    const after = new Date().toISOString();
    const soonest = soonestNodes(view, EXPIRIES_MAX, after);
    const nodes = soonest.map(({ name, until }) => ({
      what: `certificate of node ${name}`,
      at: until,
      renewal: "by itself" as const,
    }));
    const seen = new Set<string>();
    return [...own, ...nodes].sort((a, b) => a.at < b.at ? -1 : 1)
      .filter(({ what }) => !seen.has(what) && seen.add(what))
      .slice(0, EXPIRIES_MAX);
  }

  /** For `/v1/certificates`. */
  certificates(view: NodeView): CertificatesAnswer {
    const nowMs = Date.now();
    const nodes = soonestNodes(view, NODES_LISTED_MAX)
      .map(({ name, from, until }): Listed => ({
        use: `node ${name}`,
        subject: `node:${name}`,
        issuer: "this server's authority",
        notBefore: from,
        notAfter: until,
        renewal: "by itself",
        problem: problemAt(Date.parse(until), nowMs),
      }));
    return {
      certificates: [
        ...certificatesInUse(this.facts.files.certificates, nowMs),
        ...nodes,
      ]
        .sort((a, b) => a.notAfter < b.notAfter ? -1 : 1),
    };
  }
}

interface NodeTerm {
  readonly name: string;
  readonly from: string;
  readonly until: string;
}

/** The soonest to expire of those that may link. */
function soonestNodes(
  { nodes }: NodeView,
  most: number,
  after = "",
): readonly NodeTerm[] {
  const found: NodeTerm[] = [];
  for (const { name, joined } of nodes.values()) {
    const { certificate } = joined ?? {};
    if (certificate === undefined || joined?.state !== "approved") continue;
    const { issuedAt: from, expiresAt: until } = certificate;
    if (until <= after) continue;
    // Thousands are looked at, and few are kept.
    const last = found.at(-1);
    if (found.length === most && last !== undefined && until >= last.until) {
      continue;
    }
    const at = found.findIndex((other) => until < other.until);
    found.splice(at === -1 ? found.length : at, 0, { name, from, until });
    if (found.length > most) found.pop();
  }
  return found;
}
