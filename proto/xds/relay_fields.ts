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
 * At how many of {@linkcode connectHost} it is, too, at the same port. grpc-go
 * takes all endpoints behind one proxy's address for one, and uses that alone
 * (gRFC A86): there each endpoint gets a proxy of its own.
 */
export const MORE_CONNECT_FIELD = "tunnel-connect-more";

/** As many as are listened at. */
export const MORE_CONNECT_MAX = 16;

/** @param number From 1 to {@linkcode MORE_CONNECT_MAX}. */
export function connectHost(number: number): string {
  return `127.84.0.${number}`;
}
