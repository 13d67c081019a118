/**
 * Notices what `tunnel node` and `tunnel ca`, or other servers, change in the
 * state.
 *
 * A hint, never the truth: records are read when it matters.
 *
 * @module
 */

import { AUTHORITY_ROLES } from "../../neighbours/store/directory_store.ts";
import type { Store } from "../../neighbours/store/store.ts";
import { nodeOfFile } from "./node_store.ts";

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
  state: Store,
  events: StateWatchEvents,
): () => void {
  return state.watch({
    onChange: (folder, names) => {
      if (folder === "ca") {
        // What every change of authorities writes.
        const isMeant = names?.includes(ROLES_NAME) ?? true;
        if (isMeant) events.onAuthorities();
        return;
      }
      if (names === undefined) return events.onNode();
      for (const name of names) {
        const node = nodeOfFile(name);
        if (node !== undefined) events.onNode(node);
      }
    },
    onProblem: events.onProblem,
  });
}

const ROLES_NAME = AUTHORITY_ROLES.slice(AUTHORITY_ROLES.indexOf("/") + 1);
