/**
 * The process at the other end of a unix socket (SO_PEERCRED of unix(7)).
 *
 * @module
 */

import type { LibC } from "./libc.ts";

const SOL_SOCKET = 1;
const SO_PEERCRED = 17;

/**
 * The process that made a unix connection, as the kernel saw it then (unix(7)).
 */
export interface PeerCredentials {
  /**
   * The process; it may have passed the connection on, or be gone. 0: it is none
   * that this process can see, as in another container.
   */
  readonly pid: number;
  readonly uid: number;
}

/** @returns `undefined` where it is unknown. */
export function peerCredentials(
  library: LibC,
  descriptor: number,
): PeerCredentials | undefined {
  length[0] = credentials.byteLength;
  const failed = library.getsockopt(
    descriptor,
    SOL_SOCKET,
    SO_PEERCRED,
    credentialsBytes,
    lengthBytes,
  );
  const [pid = 0, uid = 0] = credentials;
  return failed === 0 ? { pid, uid } : undefined;
}

// One for all, as each call is dealt with at once.
/** `struct ucred`: process, user, group. */
const credentials = new Uint32Array(3);
const credentialsBytes = new Uint8Array(credentials.buffer);
const length = new Uint32Array(1);
const lengthBytes = new Uint8Array(length.buffer);
