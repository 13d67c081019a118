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
  number,
  type Shape,
  word,
} from "../../platform/documents/shape.ts";
import { CERTIFICATE_FIELDS, certificateTest } from "./caller.ts";

const NAMES = CERTIFICATE_FIELDS;

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

/** An entry of `admins`. */
export interface AdminEntry {
  readonly role: AdminRole;
  /** Whether all that it says of one fits. */
  isAbout(candidate: AdminCandidate): boolean;
}

/** One entry as it is written. */
export const ADMIN_ENTRY: Shape<AdminEntry> = as(
  ADMIN,
  ({ role, uid: wanted, ...patterns }) => {
    const fits = certificateTest(patterns);
    return {
      role,
      isAbout: ({ identity, uid }) =>
        wanted === undefined
          ? identity !== undefined && fits(identity)
          : uid === wanted,
    };
  },
);
