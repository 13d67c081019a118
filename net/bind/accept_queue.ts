/**
 * How many connections wait in the kernel for a listener to accept them.
 *
 * Asked of the listening socket itself (TCP_INFO, tcp(7)): that needs neither a
 * free descriptor, of which there may be none just then, nor the permission to
 * read `/proc`, and costs the same however many connections there are.
 *
 * @module
 */

import { inetDescriptors, type LibC, nameOf, openLibc } from "../libc/libc.ts";

const IPPROTO_TCP = 6;
const TCP_INFO = 11;

/** `struct tcp_info`: the state is its first byte. */
const TCP_LISTEN = 10;

/** Of a listening socket, `tcpi_unacked` is the length of the accept queue. */
const UNACKED_AT = 24;

const info = new Uint8Array(UNACKED_AT + 4);
const infoLength = new Uint32Array(1);
const infoLengthBytes = new Uint8Array(infoLength.buffer);

/** Where each port's listener was found last. */
const descriptors = new Map<number, number>();

/** The queue of the listener on `port`; 0 where nothing is known. */
export function acceptQueueLength(port: number): number {
  const library = openLibc();
  if (library === undefined) return 0;
  const known = descriptors.get(port);
  // Descriptors are reused, so what was remembered is checked before use.
  if (known !== undefined && listensOn(library, known, port)) return queued();
  descriptors.delete(port);
  for (const { descriptor, local } of inetDescriptors(library)) {
    if (local.port !== port || !isListening(library, descriptor)) continue;
    descriptors.set(port, descriptor);
    return queued();
  }
  return 0;
}

function listensOn(library: LibC, descriptor: number, port: number): boolean {
  return nameOf(library.getsockname, descriptor)?.port === port &&
    isListening(library, descriptor);
}

/** Leaves what it learned in `info`. */
function isListening(library: LibC, descriptor: number): boolean {
  infoLength[0] = info.length;
  return library.getsockopt(
        descriptor,
        IPPROTO_TCP,
        TCP_INFO,
        info,
        infoLengthBytes,
      ) === 0 && info[0] === TCP_LISTEN;
}

function queued(): number {
  return new Uint32Array(info.buffer, UNACKED_AT, 1)[0]!;
}
