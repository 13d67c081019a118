/**
 * The id by which logs, audit logs and the admin API of all programs know one
 * connection: 64 bits as 16 hexadecimal digits. The first program that sees a
 * connection makes the id; every hop takes it over (SPEC.md, "Connection ids").
 *
 * It is a name for people and proves nothing: a caller can send any id. When a
 * server already has a connection with that id, it makes a new id for the next
 * one.
 *
 * @module
 */

/** 16 lower-case hexadecimal digits, the first 8 of them not all zero. */
export type ConnectionId = string;

/** Among the headers of a CONNECT request; ours. gRPC has it in DIAL_REQ. */
export const CONNECTION_ID_FIELD = "tunnel-connection-id";

/** Ids that are made of one piece of randomness: no system call for each. */
const IDS_AT_ONCE = 64;
const ID_BYTES = 8;

/**
 * Smaller ones are no ids: peers that know of none count their dials.
 */
const CONNECTION_ID = /^(?!0{8})[0-9a-f]{16}$/;

/**
 * The id that a peer sent; `undefined` when it sent none, or an invalid one.
 */
export function readConnectionId(
  text: string | undefined,
): ConnectionId | undefined {
  return text !== undefined && CONNECTION_ID.test(text) ? text : undefined;
}

/** Makes ids: random, so that those of two processes never meet. */
export class ConnectionIds {
  readonly #bytes = new Uint8Array(IDS_AT_ONCE * ID_BYTES);
  #at: number = this.#bytes.length;

  /** @param randomness Such as `crypto.getRandomValues`: a Go server wants it. */
  constructor(
    private readonly randomness: (bytes: Uint8Array<ArrayBuffer>) => unknown,
  ) {}

  /** A fresh id, below 2^63 as Go's `rand.Int63()` is. */
  next(): ConnectionId {
    if (this.#at === this.#bytes.length) {
      this.randomness(this.#bytes);
      this.#at = 0;
    }
    const begin = this.#at;
    this.#at += ID_BYTES;
    this.#bytes[begin]! &= 0x7f;
    const id = this.#bytes.subarray(begin, this.#at).toHex();
    // One of 2^31 looks like a count.
    return CONNECTION_ID.test(id) ? id : this.next();
  }
}
