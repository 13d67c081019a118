/**
 * Notices what `tunnel node` and `tunnel ca` change in the state directory.
 *
 * A hint, never the truth: files are read when it matters.
 *
 * @module
 */

import { watchFiles } from "../../platform/files/watch_files.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { nodeOfFile } from "./node_store.ts";
import type { StateDirectory } from "./state_directory.ts";

/** What is noticed. */
export interface StateWatchEvents {
  /** A node's record was written or removed; all may be, without a name. */
  onNode(name?: string): void;
  /** Something about the authorities; several files change at once. */
  onAuthorities(): void;
  /** Watching is not possible, or has ended. */
  onProblem(line: string): void;
}

/** Starts to watch. @returns How to end it. */
export function watchState(
  state: StateDirectory,
  events: StateWatchEvents,
): () => void {
  const watch = watchFiles({
    // The file that a change of authorities ends with.
    files: [state.path("ca/roles.json")],
    directories: [state.path("nodes")],
    timers: systemTimers,
    onFiles: () => events.onAuthorities(),
    onEntries: (_directory, entries) => {
      if (entries === undefined) return events.onNode();
      for (const entry of entries) {
        const node = nodeOfFile(entry);
        if (node !== undefined) events.onNode(node);
      }
    },
    onProblem: events.onProblem,
  });
  return () => watch.close();
}
