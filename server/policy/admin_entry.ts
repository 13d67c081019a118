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
  DocumentMap,
  type DocumentPath,
  FieldError,
} from "../../platform/documents/document_map.ts";
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

export class AdminEntry {
  readonly role: AdminRole;
  readonly #names: ReadonlyMap<typeof NAMES[number], Wildcard>;
  readonly #uid: number | undefined;

  /** @throws {FieldError} */
  constructor(value: unknown, place: DocumentPath) {
    const known = [...NAMES, "uid", "role"];
    const fields = new DocumentMap(value, place, known).refuseEmpty();
    const role = fields.text("role");
    this.role = role === "view" || role === "operate"
      ? role
      : fields.refuse("role", 'wanted "view" or "operate"');
    this.#uid = fields.number("uid", 0, UID_MAX);
    this.#names = new Map(NAMES.flatMap((name) => {
      const text = fields.text(name);
      return text === undefined ? [] : [[name, new Wildcard(text)] as const];
    }));
    if (this.#uid === undefined && this.#names.size === 0) {
      throw new FieldError(
        place,
        `it says nobody; add uid, or one of ${NAMES.join(", ")}`,
      );
    }
    if (this.#uid !== undefined && this.#names.size > 0) {
      fields.refuse(
        "uid",
        "who comes by the socket shows no certificate; make two entries",
      );
    }
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
