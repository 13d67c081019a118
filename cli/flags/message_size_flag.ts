/**
 * `--message-size-limit`, which both ends have.
 *
 * @module
 */

import { bytesFlag, type Flag } from "./flag.ts";

/**
 * Go's gRPC refuses more than 4 MiB and drops the whole agent with it; its
 * `Write` does not split either, so a client may well send 5 MiB at once.
 */
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

/** Below this not even Konnectivity's own 4 KiB reads and their heads fit. */
const LEAST = 64 * 1024;

/** Above this one peer could take the process's memory with one message. */
const MOST = 256 * 1024 * 1024;

/** The flag, under the heading `group`. */
export function messageSizeFlag(group: string): Flag<number> {
  return bytesFlag(MESSAGE_BYTES_MAX, LEAST, MOST, {
    group,
    help: "Largest single message that a peer may send. Konnectivity: 4MiB.",
  });
}
