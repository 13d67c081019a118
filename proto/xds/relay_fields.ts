/**
 * What a node says in the metadata of a discovery stream that it passes on for
 * a program on it; ours.
 *
 * @module
 */

/** Set (to `1`) by nodes that pass on what programs on them say. */
export const RELAY_FIELD = "tunnel-relay";

/** `IP:PORT` of the HTTP CONNECT proxy that a relay has for its programs. */
export const CONNECT_FIELD = "tunnel-connect";
