/**
 * Fields that a node puts into the metadata of a discovery stream that it
 * relays for a program on it; ours.
 *
 * @module
 */

/** Set (to `1`) by nodes that relay streams of programs on them. */
export const RELAY_FIELD = "tunnel-relay";

/** `IP:PORT` of the HTTP CONNECT proxy that a relay has for its programs. */
export const CONNECT_FIELD = "tunnel-connect";

/**
 * How many hosts of {@linkcode connectHost} it also listens on, at the same
 * port. grpc-go takes all endpoints behind one proxy's address for one and uses
 * only that (gRFC A86): so each endpoint gets a proxy address of its own.
 */
export const MORE_CONNECT_FIELD = "tunnel-connect-more";

/** As many as it listens on. */
export const MORE_CONNECT_MAX = 16;

/** @param number From 1 to {@linkcode MORE_CONNECT_MAX}. */
export function connectHost(number: number): string {
  return `127.84.0.${number}`;
}
