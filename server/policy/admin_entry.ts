/**
 * An entry of a policy's `admins`: who may ask a server about itself, or operate
 * it, from another machine by certificate, or by its socket as a user of this
 * one.
 *
 * @module
 */

import type { AdminRole } from "../../proto/admin/api.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import {
  as,
  FULL_TEXT,
  map,
  type MeaningOf,
  number,
  type Shape,
  word,
} from "../../platform/documents/shape.ts";
import { Wildcard } from "../../policy/wildcard.ts";

const NAMES = ["commonName", "organization", "subjectAltName"] as const;

/** More users than a machine can have. */
export const UID_MAX = 2 ** 32 - 1;

/** Whom an entry may be about. */
export interface AdminCandidate {
  readonly identity?: PeerIdentity;
  /** Of a process that opened the socket. */
  readonly uid?: number;
}

const ADMIN = map({
  commonName: FULL_TEXT,
  organization: FULL_TEXT,
  subjectAltName: FULL_TEXT,
  uid: number(0, UID_MAX),
  role: word<AdminRole>(["view", "operate"]),
}, {
  isStrict: true,
  required: { role: 'wanted "view" or "operate"' },
  someOf: [[
    ["uid", ...NAMES],
    `it says nobody; add uid, or one of ${NAMES.join(", ")}`,
  ]],
  apart: [[
    "uid",
    NAMES,
    "who comes by the socket shows no certificate; make two entries",
  ]],
});

/** One entry as it is written. */
export const ADMIN_ENTRY: Shape<AdminEntry> = as(
  ADMIN,
  (given) => new AdminEntry(given),
);

export class AdminEntry {
  readonly role: AdminRole;
  readonly #names: ReadonlyMap<typeof NAMES[number], Wildcard>;
  readonly #uid: number | undefined;

  constructor({ role, uid, ...names }: MeaningOf<typeof ADMIN>) {
    this.role = role;
    this.#uid = uid;
    this.#names = new Map(NAMES.flatMap((name) => {
      const text = names[name];
      return text === undefined ? [] : [[name, new Wildcard(text)] as const];
    }));
  }

  /** Whether all that it says of one fits. */
  isAbout({ identity, uid }: AdminCandidate): boolean {
    if (this.#uid !== undefined) return uid === this.#uid;
    if (identity?.kind !== "certificate") return false;
    const values = {
      commonName: [identity.commonName],
      organization: identity.certificate?.organizations ?? [],
      subjectAltName: identity.names,
    };
    return [...this.#names].every(([name, pattern]) =>
      values[name].some((value) => pattern.matches(value))
    );
  }
}
