/**
 * Paths of unix sockets as the kernel takes them: `struct sockaddr_un`.
 *
 * @module
 */

const AF_UNIX = 1;
const FAMILY_BYTES = 2;

/** `sun_path` (unix(7)), its final zero included. */
const PATH_BYTES = 108;

/** @returns `undefined` when the path is empty, too long or has a zero in it. */
export function encodeUnixAddress(
  path: string,
): Uint8Array<ArrayBuffer> | undefined {
  const name = new TextEncoder().encode(path);
  if (name.length === 0 || name.length >= PATH_BYTES || name.includes(0)) {
    return undefined;
  }
  const address = new Uint8Array(FAMILY_BYTES + name.length + 1);
  address[0] = AF_UNIX; // In host order: little-endian.
  address.set(name, FAMILY_BYTES);
  return address;
}

/** In front of a name of the abstract namespace. */
export const ABSTRACT = "@";

/**
 * A path, or a name of the abstract namespace (unix(7)): it belongs to the
 * network namespace as ports do, needs no folder, and is gone with the process
 * that bound it.
 *
 * @returns `undefined` when it is empty or too long.
 */
export function encodeUnixName(
  name: string,
): Uint8Array<ArrayBuffer> | undefined {
  if (!name.startsWith(ABSTRACT)) return encodeUnixAddress(name);
  const text = new TextEncoder().encode(name.slice(ABSTRACT.length));
  if (text.length === 0 || text.length >= PATH_BYTES) return undefined;
  // For a path that begins with a zero byte; without a zero byte at its end.
  const address = new Uint8Array(FAMILY_BYTES + 1 + text.length);
  address[0] = AF_UNIX;
  address.set(text, FAMILY_BYTES + 1);
  return address;
}
