/**
 * Names of nodes, and the one name of every server.
 *
 * A name becomes a file name, a certificate's subject and a DNS name, so its
 * alphabet is what all three have in common.
 *
 * @module
 */

/**
 * The name that an agent with a joined identity expects of its server, whatever
 * address it dials: every server certificate of our own CA is for this name.
 */
export const TUNNEL_SERVER_NAME = "tunnel-server";

/**
 * Prefix of a node's name in its certificate's common name, so that no common
 * name is a host.
 */
export const NODE_SUBJECT_PREFIX = "node:";

/** Leaves room for suffixes in a file name of 255 bytes. */
export const NODE_NAME_BYTES_MAX = 200;

/** Lower case only: two names must never meet in one file. */
const NODE_NAME = /^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?$/;

/** RFC 1123 §2.1, lower case. */
const DNS_NAME =
  /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/;

/**
 * Whether there may be a node called that. The servers' own name is no node's.
 * What reads as an address may be the name of a node from former times; no node
 * joins by one (`isJoinableName`).
 */
export function isNodeName(text: string): boolean {
  return text.length <= NODE_NAME_BYTES_MAX && NODE_NAME.test(text) &&
    text !== TUNNEL_SERVER_NAME;
}

/**
 * Whether a node may join by that name. One that reads as an address would get
 * the connections to the address, which has to be granted.
 */
export function isJoinableName(text: string): boolean {
  return isNodeName(text) && !isNumericName(text);
}

/**
 * Whether a name consists of numbers only, as inet_aton reads them: some
 * readers take it for an address, in one spelling or another (`1.2.3.4.5`,
 * `08`).
 */
export function isNumericName(text: string): boolean {
  return NUMERIC.test(text);
}

const NUMERIC = /^(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+))*\.*$/i;

/** Whether a certificate may call it a DNS name. */
export function isDnsName(text: string): boolean {
  return DNS_NAME.test(text);
}

/** The rule for people. */
export const NODE_NAME_RULE =
  `lower-case letters, digits, ".", "_" and "-", at most ` +
  `${NODE_NAME_BYTES_MAX}, with a letter or digit at both ends, and ` +
  `not "${TUNNEL_SERVER_NAME}"`;

/** The same for joining nodes. */
export const JOINABLE_NAME_RULE =
  `${NODE_NAME_RULE}, and nothing that reads as an IP address`;
