/**
 * Where the servers of a stage keep what they share, and what stands in front of
 * it to be taken away.
 *
 * @module
 */

import { runOrThrow } from "./network.ts";
import type { StateKind } from "./topology.ts";

/** Enough for the identity of a small tunnel, and soon full. */
const DIRECTORY_SIZE = "8m";

/** See the module description. */
export class StateStore implements AsyncDisposable {
  private constructor(readonly kind: StateKind, readonly folder: string) {}

  static async open(kind: StateKind, folder: string): Promise<StateStore> {
    const store = new StateStore(kind, `${folder}/state`);
    await Deno.mkdir(store.folder, { recursive: true });
    await runOrThrow(
      ...["mount", "-t", "tmpfs", "-o", `size=${DIRECTORY_SIZE},mode=0700`],
      ...["none", store.folder],
    );
    return store;
  }

  /** Flags by which a server, or a command, finds the state. */
  // deno-lint-ignore no-unused-vars -- other kinds have a directory for each.
  stateFlags(server: string): readonly string[] {
    return [`--state-dir=${this.folder}`];
  }

  /** Takes all room that is left, or gives it back. */
  async fill(isFull: boolean): Promise<void> {
    const file = `${this.folder}/../state/filler`;
    if (!isFull) return await runOrThrow("rm", "-f", file).then(() => {});
    // Ends with an error when there is no more room: that is what is wanted.
    await runOrThrow("sh", "-c", `cat /dev/zero >"$0" || true`, file);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await runOrThrow("umount", "--lazy", this.folder);
  }
}
