/**
 * Notices what `tunnel node` and `tunnel ca` change in the state directory.
 *
 * A hint, never the truth: files are read when it matters. Where the platform
 * cannot watch (some network file systems), SIGHUP has the same effect.
 *
 * @module
 */

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

/** Changes of one command come together; they are looked at once. */
const SETTLE_MS = 50;

/** Starts to watch. @returns How to end it. */
export function watchState(
  state: StateDirectory,
  events: StateWatchEvents,
): () => void {
  let watcher: Deno.FsWatcher;
  try {
    watcher = Deno.watchFs([state.path("nodes"), state.path("ca")], {
      recursive: false,
    });
  } catch (error) {
    events.onProblem(unwatched(state, error));
    return () => {};
  }
  let settling: ReturnType<typeof setTimeout> | undefined;
  const onAuthorities = () => {
    clearTimeout(settling);
    settling = setTimeout(() => events.onAuthorities(), SETTLE_MS);
  };
  const onEvent = ({ kind, paths, flag }: Deno.FsEvent) => {
    if (kind === "access") return;
    if (flag === "rescan") {
      // More has changed at once than the platform could note down.
      events.onNode();
      onAuthorities();
    }
    for (const path of paths) {
      const [folder, file] = path.split("/").slice(-2);
      const node = folder === "nodes" ? nodeOfFile(file!) : undefined;
      if (node !== undefined) events.onNode(node);
      if (folder === "ca" && file === "roles.json") onAuthorities();
    }
  };
  const run = async () => {
    const changes = watcher[Symbol.asyncIterator]();
    while (true) {
      let change: IteratorResult<Deno.FsEvent>;
      try {
        change = await changes.next();
      } catch (error) {
        return events.onProblem(unwatched(state, error));
      }
      if (change.done) return;
      onEvent(change.value);
    }
  };
  void run();
  return () => {
    clearTimeout(settling);
    watcher.close();
  };
}

function unwatched({ root }: StateDirectory, error: unknown): string {
  const seen = error instanceof Error ? error.message : String(error);
  return `Cannot watch ${root}: ${seen}; send SIGHUP after \`tunnel node\` ` +
    "and `tunnel ca`";
}
