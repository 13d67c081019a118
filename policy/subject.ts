/**
 * A target as rules see it: equal spellings get one form, and spellings that
 * hide their meaning are recognized. Also a caller by the names that its
 * certificate proves.
 *
 * @module
 */

import { domainToASCII } from "node:url";
import { splitAddress } from "./target_address.ts";
import { isNumericName } from "../proto/identity/node_name.ts";
import { DialError, type DialTarget } from "../proto/peer/dial_error.ts";
import {
  isAscii,
  isIpv4Lookalike,
  NAME_LENGTH_MAX,
  plainName,
} from "../proto/peer/host_port.ts";
import { type IpAddress, parseIpAddress } from "../proto/peer/ip_address.ts";
import { addressOf, nameKey } from "../proto/peer/normal_form.ts";
import type { PeerIdentity } from "../proto/peer/peer_identity.ts";

/** A target that was read, or why it cannot be. */
export type Subject =
  | {
    readonly kind: "endpoint";
    readonly protocol: "tcp" | "udp";
    readonly host: HostSubject;
    readonly port: number;
  }
  /** As requested. */
  | { readonly kind: "path"; readonly path: string }
  /** Nothing that a rule could be about, and why. */
  | { readonly kind: "unreadable"; readonly problem: string };

/** The address of an endpoint. */
export type HostSubject =
  /** Its addresses are known without a lookup. */
  | { readonly kind: "addresses"; readonly addresses: readonly IpAddress[] }
  /**
   * A name in lower case and ASCII, without a dot at the end; empty when no
   * pattern may fit it.
   */
  | { readonly kind: "name"; readonly name: string };

const IPV4_LOOPBACK: IpAddress = Uint8Array.of(127, 0, 0, 1);
const IPV6_LOOPBACK: IpAddress = Uint8Array.of(...Array(15).fill(0), 1);

/** Looks at a target through the eyes of rules. Never fails. */
export function subjectOf(target: DialTarget): Subject {
  const { protocol, address } = target;
  if (protocol === "unix") return { kind: "path", path: address };
  if (protocol !== "tcp" && protocol !== "udp") {
    // An agent of another make may know more networks than rules do.
    const problem = "its protocol is none of tcp, udp and unix";
    return { kind: "unreadable", problem };
  }
  try {
    const { host, port } = splitAddress(target);
    return { kind: "endpoint", protocol, host: hostSubject(host), port };
  } catch (error) {
    if (!(error instanceof DialError)) throw error;
    return { kind: "unreadable", problem: "it is not HOST:PORT" };
  }
}

function hostSubject(host: string): HostSubject {
  // Go and we dial this machine then.
  if (host === "") {
    return { kind: "addresses", addresses: [IPV4_LOOPBACK, IPV6_LOOPBACK] };
  }
  const address = effectiveAddress(host);
  if (address !== undefined) return { kind: "addresses", addresses: [address] };
  if (host.length > NAME_LENGTH_MAX + 1) return { kind: "name", name: "" };
  // Resolvers do the same, so rules compare what is looked up.
  const name = plainName(isAscii(host) ? host : domainToASCII(host));
  // Text that is not a name (`db.internal\0.example`, `a b`) must not look like
  // one.
  const isName = /^[0-9a-z._-]+$/.test(name) && !isIpv4Lookalike(name);
  return { kind: "name", name: isName ? name : "" };
}

/**
 * The address that a dial to `text` reaches, for rules.
 *
 * A zone is dropped, IPv4 in IPv6's clothes is IPv4, and the unspecified
 * address is loopback: that is where the kernel connects to.
 */
export function effectiveAddress(text: string): IpAddress | undefined {
  const address = parseIpAddress(text.split("%", 1)[0]!);
  if (address === undefined || !isUnspecified(address)) return address;
  return address.length === 4 ? IPV4_LOOPBACK : IPV6_LOOPBACK;
}

/** `0.0.0.0` and `::`. */
export function isUnspecified(address: IpAddress): boolean {
  return address.every((byte) => byte === 0);
}

/** Prefixes of a node's name in certificates: Kubernetes' and ours. */
const NAME_PREFIX = /^(?:system:node:|node:)/;

/** The common name, without the prefix of nodes' names. */
export function nodeNameOf({ commonName }: PeerIdentity): string {
  return commonName.replace(NAME_PREFIX, "");
}

/**
 * What the holder of a certificate may be called as a node: its common name
 * without the prefix of nodes' names, then its DNS names. An address among
 * these proves no address.
 *
 * @returns `undefined` without a certificate: a token may prove a name.
 */
export function provenNames(
  identity: PeerIdentity,
): readonly string[] | undefined {
  if (identity.kind === "anonymous") return undefined;
  const dns = valuesOf(identity, "DNS:").map((name) => name.toLowerCase())
    .filter((name) => !isNumericName(name));
  return [nodeNameOf(identity), ...dns].filter((name) => name !== "");
}

/** The addresses in a certificate; they are never used as names. */
export function provenAddresses(identity: PeerIdentity): readonly string[] {
  const common = nodeNameOf(identity);
  const inName = addressOf(common) === undefined ? [] : [nameKey(common)];
  return [...inName, ...valuesOf(identity, "IP Address:").map(nameKey)];
}

function valuesOf({ names }: PeerIdentity, kind: string): string[] {
  return names.filter((name) => name.startsWith(kind))
    .map((name) => name.slice(kind.length));
}
