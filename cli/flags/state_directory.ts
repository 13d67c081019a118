/**
 * The default state directory of a server, an agent or a proxy.
 *
 * @module
 */

import { UsageError } from "./usage_error.ts";
import { type Flag, flag } from "./flag.ts";
import { kindAt } from "../../platform/files/kind_at.ts";

/** In a server's directory: the default socket for frontends. */
export const FRONTEND_SOCKET = "frontend.sock";

/** `--state-dir`, for every command that has one. */
export function stateDirectoryFlag(owner: "server" | "agent"): Flag<string> {
  return flag.word("DIRECTORY", {
    isCommon: true,
    help: owner === "server"
      ? "Where the server keeps its CA, tokens and nodes."
      : "Where the agent keeps its key and certificate.",
    defaultText: `/var/lib/tunnel/${owner} for root, else ` +
      `~/.local/state/tunnel/${owner}`,
  });
}

/**
 * The directory when no flag names one (XDG Base Directory Specification).
 * Never one that depends on where the program was started. A proxy has one
 * beside the agent's, which must contain no other files.
 *
 * @param isRoot Whether the process may write to `/var/lib`.
 */
export function defaultStateDirectory(
  owner: "server" | "agent" | "proxy",
  environment: (name: string) => string | undefined,
  isRoot: boolean = Deno.uid() === 0,
): string {
  if (isRoot) return `/var/lib/tunnel/${owner}`;
  const home = environment("HOME");
  const base = environment("XDG_STATE_HOME") ||
    (home ? `${home}/.local/state` : "/var/lib");
  return `${base}/tunnel/${owner}`;
}

/**
 * For commands that only a server can answer, when no flag names one.
 *
 * @throws {UsageError} When this machine has joined as a node, and has never
 *   had a server.
 */
export function refuseOnNode(
  environment: (name: string) => string | undefined,
): void {
  const directory = defaultStateDirectory("agent", environment);
  const server = defaultStateDirectory("server", environment);
  // What must not be looked at is there.
  const isThere = (path: string) => kindAt(path) !== "absent";
  if (!isThere(`${directory}/node.json`) || isThere(server)) return;
  throw new UsageError(
    `Cannot ask a server here: this machine is an agent (${directory}); run ` +
      "this on the server's machine, or name the server: --server HOST:PORT " +
      "of its --admin-remote-port",
    "TUN121",
  );
}
