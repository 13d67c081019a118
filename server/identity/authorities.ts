/**
 * The authorities of a server: the one that issues, and during a change the
 * one that will, or the one that did.
 *
 *     steady     current                  rotate →
 *     announced  current, next            activate →   nodes trust both
 *     activated  current, previous        retire →     nodes get new leaves
 *
 * @module
 */

import type { X509Certificate } from "node:crypto";
import { keepFile } from "../../platform/files/atomic_file.ts";
import { CertificateAuthority } from "../../platform/pki/authority.ts";
import {
  type CertificateFacts,
  isNamedBy,
  isSignedBy,
  pinOf,
  readCertificates,
} from "../../platform/pki/certificate.ts";
import { PkiError } from "../../platform/pki/key_pair.ts";
import {
  AUTHORITY_ID_LENGTH,
  authorityIdOf,
} from "../../proto/identity/enrolment.ts";
import {
  AUTHORITY_ROLES,
  type DirectoryStore,
} from "../../neighbours/store/directory_store.ts";
import { makeFolder } from "../../neighbours/store/directory_content.ts";
import type {
  Records,
  Store,
  StoreTransaction,
} from "../../neighbours/store/store.ts";
import {
  damaged,
  needRecord,
  parseRecord,
  StoreError,
} from "../../neighbours/store/store_error.ts";

/** Ten years, as kubeadm's. */
const AUTHORITY_LIFE_MS = 10 * 365 * 24 * 3600_000;
const ID = /^[0-9a-f]{16}$/;

/** What `ca/roles.json` says, by id. */
interface Roles {
  readonly current: string;
  readonly next?: string;
  readonly previous?: string;
}

/** The authority that issues, and those that are trusted besides. */
export interface Authorities {
  /** Issues now. */
  readonly current: CertificateAuthority;
  /** Issues after `activate`. */
  readonly next?: CertificateAuthority | undefined;
  /** Issued before; its key is gone. */
  readonly previous?: CertificateFacts | undefined;
  /** Whom to trust, PEM; `current` first, as agents expect. */
  readonly bundle: string;
  /**
   * The certificates that follow a server's leaf, PEM: for nodes that pin an
   * authority, and for nodes that slept through a change and know only the
   * previous one.
   */
  readonly chain: string;
}

/** Those that are trusted, `current` first. */
export function trustedBy(authorities: Authorities): CertificateFacts[] {
  const { current, next, previous } = authorities;
  return [current.facts, next?.facts, previous]
    .filter((facts) => facts !== undefined);
}

/**
 * The authority that issued a certificate; `undefined`: none of these.
 *
 * @param isVerified The handshake verified it against these authorities alone,
 *   so names distinguish them. Else the signature is checked again (1 ms),
 *   because anyone can make an authority with any name.
 */
export function issuerOf(
  authorities: Authorities,
  certificate: X509Certificate,
  isVerified = false,
): CertificateFacts | undefined {
  return trustedBy(authorities).find(({ x509 }) =>
    isVerified ? isNamedBy(certificate, x509) : isSignedBy(certificate, x509)
  );
}

const BUNDLE = "ca/bundle.crt";

/** Makes the first authority. For a state that is being made. */
export async function createAuthorities(
  change: StoreTransaction,
): Promise<void> {
  const current = await newAuthority();
  const id = authorityIdOf(current.facts);
  await change.put(authorityKey(id), await current.export());
  await putRoles(change, { current: id });
  await change.put(BUNDLE, current.certificate);
}

/**
 * Reads the authorities.
 *
 * @throws {StoreError} Naming the record that is missing or damaged.
 */
export async function loadAuthorities(
  state: Records,
): Promise<Authorities> {
  const roles = await readRoles(state);
  const current = await loadAuthority(state, roles.current);
  const next = roles.next === undefined
    ? undefined
    : await loadAuthority(state, roles.next);
  let previous: CertificateFacts | undefined;
  let chain = current.certificate;
  if (roles.previous !== undefined) {
    const key = authorityKey(roles.previous);
    const pem = await needRecord(state, key);
    previous = await readAuthority(state, key, pem, roles.previous);
    const bridgeAt = bridgeKey(roles.current);
    const bridge = await needRecord(state, bridgeAt);
    // The bridge first: OpenSSL takes the first issuer that fits, and from the
    // authority itself no way leads to the one before.
    const [vouched] = await readOrRefuse(
      state,
      bridgeAt,
      () => readCertificates(bridge),
    );
    chain = vouched!.pem + current.certificate + previous.pem;
  }
  const bundle = [current.certificate, next?.certificate, previous?.pem]
    .filter((pem) => pem !== undefined).join("");
  return { current, next, previous, bundle, chain };
}

/** Writes this machine's `ca/bundle.crt` again if its content is wrong. */
export async function repairBundle(
  local: DirectoryStore,
  { bundle }: Authorities,
  warn: (line: string) => void,
): Promise<void> {
  await makeFolder(local.path("ca"));
  await keepFile(local.path(BUNDLE), bundle, warn, 0o644);
}

/**
 * Makes the next authority: trusted from now on, issuing after `activate`.
 *
 * @throws {StoreError} When a change is under way already.
 */
export function rotateAuthority(state: Store): Promise<Authorities> {
  return state.transact(async (change) => {
    const roles = await readRoles(change);
    if (roles.next !== undefined) {
      throw new StoreError(
        `Cannot rotate: authority ${roles.next} waits to be activated; run ` +
          "`tunnel ca activate` when all nodes know it",
        "TUN327",
      );
    }
    if (roles.previous !== undefined) {
      throw new StoreError(
        `Cannot rotate: authority ${roles.previous} of the last change is ` +
          "still trusted; run `tunnel ca retire` first",
        "TUN327",
      );
    }
    const next = await newAuthority();
    const id = authorityIdOf(next.facts);
    await change.put(authorityKey(id), await next.export());
    const current = await loadAuthority(change, roles.current);
    const bridge = await current.vouchFor(next);
    await change.put(bridgeKey(id), bridge);
    return await changeRoles(change, { current: roles.current, next: id });
  });
}

/**
 * Lets the next authority issue; the one before stays trusted, its key goes.
 *
 * @throws {StoreError} When there is no next one.
 */
export function activateAuthority(state: Store): Promise<Authorities> {
  return state.transact(async (change) => {
    const roles = await readRoles(change);
    if (roles.next === undefined) {
      throw new StoreError(
        "Cannot activate: there is no next authority; `tunnel ca rotate` " +
          "makes one",
        "TUN327",
      );
    }
    const previous = await loadAuthority(change, roles.current);
    const changed = await changeRoles(change, {
      current: roles.next,
      previous: roles.current,
    });
    // Last: until here a crash leaves the old authority able to issue.
    await change.put(authorityKey(roles.current), previous.certificate);
    return changed;
  });
}

/**
 * Ends the trust in the previous authority. The caller must check first that no
 * node needs it.
 *
 * @throws {StoreError} When there is no previous authority.
 */
export function retireAuthority(state: Store): Promise<Authorities> {
  return state.transact(async (change) => {
    const { current, previous } = await readRoles(change);
    if (previous === undefined) {
      throw new StoreError(
        "Cannot retire: no previous authority is trusted; a change goes " +
          "`tunnel ca rotate`, `tunnel ca activate`, `tunnel ca retire`",
        "TUN327",
      );
    }
    const changed = await changeRoles(change, { current });
    await change.remove(authorityKey(previous));
    await change.remove(bridgeKey(current));
    return changed;
  });
}

async function changeRoles(
  change: StoreTransaction,
  roles: Roles,
): Promise<Authorities> {
  await putRoles(change, roles);
  const authorities = await loadAuthorities(change);
  await change.put(BUNDLE, authorities.bundle);
  return authorities;
}

function newAuthority(): Promise<CertificateAuthority> {
  return CertificateAuthority.create({
    commonName: (hash) => `tunnel CA ${hash.slice(0, AUTHORITY_ID_LENGTH)}`,
    notAfter: new Date(Date.now() + AUTHORITY_LIFE_MS),
  });
}

async function loadAuthority(
  state: Records,
  id: string,
): Promise<CertificateAuthority> {
  const key = authorityKey(id);
  const pem = await needRecord(state, key, "secret");
  await readAuthority(state, key, pem, id);
  return await readOrRefuse(state, key, () => CertificateAuthority.load(pem));
}

async function readAuthority(
  state: Records,
  key: string,
  pem: string,
  id: string,
): Promise<CertificateFacts> {
  const [facts] = await readOrRefuse(state, key, () => readCertificates(pem));
  if (authorityIdOf(facts!) === id) return facts!;
  throw damaged(state, key, "it holds another authority than its name says");
}

async function readOrRefuse<Content>(
  state: Records,
  key: string,
  read: () => Content | Promise<Content>,
): Promise<Content> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof PkiError)) throw error;
    throw damaged(state, key, error.message);
  }
}

async function readRoles(state: Records): Promise<Roles> {
  const text = await needRecord(state, AUTHORITY_ROLES);
  const roles = parseRecord(state, AUTHORITY_ROLES, text) as Partial<Roles>;
  const ids = [roles?.current, roles?.next, roles?.previous];
  const isWhole = typeof roles?.current === "string" &&
    ids.every((id) => id === undefined || ID.test(id));
  if (!isWhole) {
    throw damaged(state, AUTHORITY_ROLES, "it does not name the authorities");
  }
  return roles as Roles;
}

function putRoles(change: StoreTransaction, roles: Roles): Promise<void> {
  return change.put(AUTHORITY_ROLES, JSON.stringify(roles, null, 2) + "\n");
}

function authorityKey(id: string): string {
  return `ca/${id}.pem`;
}

function bridgeKey(id: string): string {
  return `ca/${id}.bridge.pem`;
}

/** How join tokens name the authority that issues. */
export function pinOfCurrent({ current }: Authorities): string {
  return pinOf(current.facts);
}
