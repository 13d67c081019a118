/**
 * Standard output and standard error, as files to which lines are appended.
 *
 * Whoever reads them may be slow, or gone: lines wait in bounded memory then, as
 * they do while a disk is full.
 *
 * @module
 */

import type { AuditFiles } from "./audit_file.ts";

/** What `path` means; `undefined`: a file. */
export function standardStreams(path: string): AuditFiles | undefined {
  if (path === "-") return filesOf(Deno.stdout);
  return path === "stderr" ? filesOf(Deno.stderr) : undefined;
}

function filesOf(
  stream: { write(bytes: Uint8Array): Promise<number> },
): AuditFiles {
  return {
    check() {},
    open: () =>
      Promise.resolve({
        bytes: 0,
        async write(bytes: Uint8Array) {
          for (let at = 0; at < bytes.length;) {
            at += await stream.write(bytes.subarray(at));
          }
        },
        // What has left cannot be taken back: it may stand there twice.
        cut: () => Promise.resolve(),
        close() {},
      }),
    putAside: () => Promise.resolve(),
  };
}
