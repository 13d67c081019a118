/**
 * Separates the processes that speak for one node: each agent makes an instance
 * id when it starts, and sends it on all of its links.
 *
 * It proves nothing: a process with a node's key can send any id. But it does
 * not know the id of a process that runs elsewhere, so a second process with
 * the same key cannot pass for the first one.
 *
 * @module
 */

/** The metadata field of the packets carrier; Go peers ignore it. */
export const INSTANCE_FIELD = "tunnel-instance";

/** Bytes of randomness in an id: it cannot be guessed, and no two are alike. */
const INSTANCE_ID_BYTES = 16;

/** Longer ones are no ids: they are kept for each link, and shown. */
const INSTANCE_ID = /^[0-9A-Za-z_-]{8,64}$/;

/** An id for a process that starts. */
export function newInstanceId(
  randomness: (bytes: Uint8Array<ArrayBuffer>) => void,
): string {
  const bytes = new Uint8Array(INSTANCE_ID_BYTES);
  randomness(bytes);
  return bytes.toHex();
}

/** The id that a peer sent; `undefined` when it sent none, or nonsense. */
export function readInstanceId(text: string | undefined): string | undefined {
  return text !== undefined && INSTANCE_ID.test(text) ? text : undefined;
}
