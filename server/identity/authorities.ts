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
import { removeFile, replaceFile } from "../../platform/files/atomic_file.ts";
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
} from "../../proto/identity/authority_ids.ts";
import {
  damaged,
  parseState,
  readState,
  type StateDirectory,
  StateError,
} from "./state_directory.ts";

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
  readonly next?: CertificateAuthority;
  /** Issued before; its key is gone. */
  readonly previous?: CertificateFacts;
  /** Whom to trust, PEM; `current` first, as agents expect. */
  readonly bundle: string;
  /**
   * What a server shows behind its leaf, PEM: for nodes that pin an authority,
   * and for nodes that slept through a change and know only the previous one.
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
 * Who of them issued a certificate; `undefined`: nobody.
 *
 * @param isVerified The handshake verified it against these authorities alone,
 *   so names distinguish them. Else the signature is checked again (1 ms),
 *   because anybody can make an authority by any name.
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

/** Makes the first authority. For a directory that is being made. */
export async function createAuthorities(state: StateDirectory): Promise<void> {
  const current = await newAuthority();
  const id = authorityIdOf(current.facts);
  await replaceFile(authorityPath(state, id), await current.export());
  await replaceRoles(state, { current: id });
  await replaceFile(state.path("ca/bundle.crt"), current.certificate, 0o644);
}

/**
 * Reads the authorities.
 *
 * @throws {StateError} Naming the file that is missing or damaged.
 */
export async function loadAuthorities(
  state: StateDirectory,
): Promise<Authorities> {
  const roles = await readRoles(state);
  const current = await loadAuthority(state, roles.current);
  const next = roles.next === undefined
    ? undefined
    : await loadAuthority(state, roles.next);
  let previous: CertificateFacts | undefined;
  let chain = current.certificate;
  if (roles.previous !== undefined) {
    const path = authorityPath(state, roles.previous);
    previous = readAuthority(path, await readState(path), roles.previous);
    const bridgeAt = bridgePath(state, roles.current);
    const bridge = readOrRefuse(bridgeAt, await readState(bridgeAt))[0]!.pem;
    // The bridge first: OpenSSL takes the first issuer that fits, and from the
    // authority itself no way leads to the one before.
    chain = bridge + current.certificate + previous.pem;
  }
  const bundle = [current.certificate, next?.certificate, previous?.pem]
    .filter((pem) => pem !== undefined).join("");
  return {
    current,
    ...(next === undefined ? {} : { next }),
    ...(previous === undefined ? {} : { previous }),
    bundle,
    chain,
  };
}

/** Writes `ca/bundle.crt` again if it is not what it should be. */
export async function repairBundle(
  state: StateDirectory,
  { bundle }: Authorities,
): Promise<void> {
  const path = state.path("ca/bundle.crt");
  const found = await Deno.readTextFile(path).catch(() => undefined);
  if (found !== bundle) await replaceFile(path, bundle, 0o644);
}

/**
 * Makes the next authority: trusted from now on, issuing after `activate`.
 *
 * @throws {StateError} When a change is under way already.
 */
export function rotateAuthority(state: StateDirectory): Promise<Authorities> {
  return state.exclusively(async () => {
    const roles = await readRoles(state);
    if (roles.next !== undefined) {
      throw new StateError(
        `Cannot rotate: authority ${roles.next} waits to be activated; run ` +
          "`tunnel ca activate` when all nodes know it",
      );
    }
    if (roles.previous !== undefined) {
      throw new StateError(
        `Cannot rotate: authority ${roles.previous} of the last change is ` +
          "still trusted; run `tunnel ca retire` first",
      );
    }
    const next = await newAuthority();
    const id = authorityIdOf(next.facts);
    await replaceFile(authorityPath(state, id), await next.export());
    const current = await loadAuthority(state, roles.current);
    const bridge = await current.vouchFor(next);
    await replaceFile(bridgePath(state, id), bridge);
    return await changeRoles(state, { current: roles.current, next: id });
  });
}

/**
 * Lets the next authority issue; the one before stays trusted, its key goes.
 *
 * @throws {StateError} When there is no next one.
 */
export function activateAuthority(state: StateDirectory): Promise<Authorities> {
  return state.exclusively(async () => {
    const roles = await readRoles(state);
    if (roles.next === undefined) {
      throw new StateError(
        "Cannot activate: there is no next authority; `tunnel ca rotate` " +
          "makes one",
      );
    }
    const previous = await loadAuthority(state, roles.current);
    const changed = await changeRoles(state, {
      current: roles.next,
      previous: roles.current,
    });
    // Last: until here a crash leaves the old authority able to issue.
    await replaceFile(
      authorityPath(state, roles.current),
      previous.certificate,
    );
    return changed;
  });
}

/**
 * Trusts the previous authority no more. Whether that is wise yet is for the
 * caller to find out.
 *
 * @throws {StateError} When there is none.
 */
export function retireAuthority(state: StateDirectory): Promise<Authorities> {
  return state.exclusively(async () => {
    const { current, previous } = await readRoles(state);
    if (previous === undefined) {
      throw new StateError(
        "Cannot retire: no previous authority is trusted; a change goes " +
          "`tunnel ca rotate`, `tunnel ca activate`, `tunnel ca retire`",
      );
    }
    const changed = await changeRoles(state, { current });
    await removeFile(authorityPath(state, previous));
    await removeFile(bridgePath(state, current));
    return changed;
  });
}

async function changeRoles(
  state: StateDirectory,
  roles: Roles,
): Promise<Authorities> {
  await replaceRoles(state, roles);
  const authorities = await loadAuthorities(state);
  await repairBundle(state, authorities);
  return authorities;
}

function newAuthority(): Promise<CertificateAuthority> {
  return CertificateAuthority.create({
    commonName: (hash) => `tunnel CA ${hash.slice(0, AUTHORITY_ID_LENGTH)}`,
    notAfter: new Date(Date.now() + AUTHORITY_LIFE_MS),
  });
}

async function loadAuthority(
  state: StateDirectory,
  id: string,
): Promise<CertificateAuthority> {
  const path = authorityPath(state, id);
  const pem = await state.readSecret(`ca/${id}.pem`);
  readAuthority(path, pem, id);
  try {
    return await CertificateAuthority.load(pem);
  } catch (error) {
    if (!(error instanceof PkiError)) throw error;
    throw damaged(path, error.message);
  }
}

function readAuthority(path: string, pem: string, id: string) {
  const [facts] = readOrRefuse(path, pem);
  if (authorityIdOf(facts!) === id) return facts!;
  throw damaged(path, "it holds another authority than its name says");
}

function readOrRefuse(path: string, pem: string): CertificateFacts[] {
  try {
    return readCertificates(pem);
  } catch (error) {
    if (!(error instanceof PkiError)) throw error;
    throw damaged(path, error.message);
  }
}

async function readRoles(state: StateDirectory): Promise<Roles> {
  const path = state.path("ca/roles.json");
  const roles = parseState(path, await readState(path)) as Partial<Roles>;
  const ids = [roles?.current, roles?.next, roles?.previous];
  const isWhole = typeof roles?.current === "string" &&
    ids.every((id) => id === undefined || ID.test(id));
  if (!isWhole) throw damaged(path, "it does not name the authorities");
  return roles as Roles;
}

function replaceRoles(state: StateDirectory, roles: Roles): Promise<void> {
  return replaceFile(
    state.path("ca/roles.json"),
    JSON.stringify(roles, null, 2) + "\n",
  );
}

function authorityPath(state: StateDirectory, id: string): string {
  return state.path(`ca/${id}.pem`);
}

function bridgePath(state: StateDirectory, id: string): string {
  return state.path(`ca/${id}.bridge.pem`);
}

/** How join tokens name the authority that issues. */
export function pinOfCurrent({ current }: Authorities): string {
  return pinOf(current.facts);
}
