/**
 * What a server publishes about itself, as a text.
 *
 * @module
 */

import { hostOf, isAddress } from "../../proto/peer/host_port.ts";
import { readInstanceId } from "../../proto/peer/peer_identity.ts";
import { readCertificates } from "../../platform/pki/certificate.ts";
import { PkiError } from "../../platform/pki/key_pair.ts";
import { authorityIdOf } from "../../proto/identity/enrolment.ts";
import { isLoopback } from "../../proto/peer/ip_address.ts";

/** One server, as it says itself. */
export interface MemberRecord {
  readonly serverId: string;
  /** Another one for each process; see `peer_identity.ts`. */
  readonly instanceId: string;
  /** `HOST:PORT` of its agent port as agents reach it; empty: it is not known. */
  readonly address: string;
  /** Milliseconds since 1970. */
  readonly startedMs: number;
  /** Its clock when it wrote this. */
  readonly nowMs: number;
  /** Ids of the authorities that it trusts; see `enrolment.ts`. */
  readonly authorities: readonly string[];
  /** Such as `tunnel/0.1.0`. */
  readonly software: string;
}

/** Longest id of a server; Kubernetes' names have 253 characters. */
const SERVER_ID_MAX = 253;

/** A change needs no more authorities than this. */
export const AUTHORITIES_MAX = 16;

/** Longest text that is read. */
export const RECORD_MAX = 8 * 1024;

export function formatMember(record: MemberRecord): string {
  return JSON.stringify(record);
}

/** Another server's record; `undefined` when the text is not one. */
export function parseMember(text: string): MemberRecord | undefined {
  if (text.length > RECORD_MAX) return undefined;
  const said = objectOf(text);
  const instanceId = readInstanceId(textOf(said["instanceId"]));
  const serverId = textOf(said["serverId"]);
  if (instanceId === undefined || serverId === "") return undefined;
  if (serverId.length > SERVER_ID_MAX) return undefined;
  const address = textOf(said["address"]);
  return {
    serverId,
    instanceId,
    address: isAddress(address) ? address : "",
    startedMs: numberOf(said["startedMs"]),
    nowMs: numberOf(said["nowMs"]),
    authorities: textsOf(said["authorities"]),
    software: textOf(said["software"]).slice(0, 100),
  };
}

function objectOf(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function textsOf(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, AUTHORITIES_MAX)
    .filter((item): item is string =>
      typeof item === "string" && /^[0-9a-f]{16}$/.test(item)
    );
}

// The facts that a server knows about itself without being told.

/**
 * The address at which agents reach a server that listens here; empty: only an
 * operator can know it. A wildcard address may be any address, and a loopback
 * address would lead an agent on another machine to itself.
 */
export function certainAddress(listening: string): string {
  const host = hostOf(listening);
  const isOpen = host === "0.0.0.0" || host === "::" || host === "";
  return isOpen || isLoopback(host) ? "" : listening;
}

/** Ids of the authorities in a bundle; none when they are very many. */
export function authorityIdsIn(pem: string): readonly string[] {
  try {
    const ids = readCertificates(pem).map(authorityIdOf);
    return ids.length > AUTHORITIES_MAX ? [] : [...new Set(ids)].sort();
  } catch (error) {
    // No authority: any peer may be an agent here.
    if (!(error instanceof PkiError)) throw error;
    return [];
  }
}
