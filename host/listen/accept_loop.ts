/**
 * Accepts connections for as long as a listener lives, whatever happens.
 *
 * @module
 */

import { guarded } from "../process/internal_errors.ts";
import { codeOf } from "../sockets/octet_socket.ts";

/** How long accepting rests when the process has no descriptor left. */
export const ACCEPT_PAUSE_MS = 100;

/** Who hears of an accept loop. */
export interface AcceptEvents<Conn> {
  onConnection(conn: Conn): void;
  /** One line per burst of failures; accepting goes on. */
  onProblem(line: string): void;
}

/** Returns when `listener` was closed. */
export async function acceptLoop<Conn extends { close(): void }>(
  listener: { accept(): Promise<Conn>; acceptNow?(): Conn | undefined },
  name: string,
  events: AcceptEvents<Conn>,
): Promise<void> {
  let isFailing = false;
  for (;;) {
    try {
      const conn = listener.acceptNow?.() ?? await listener.accept();
      isFailing = false;
      // What becomes of one is no reason to accept no more.
      guarded(
        "accept",
        () => events.onConnection(conn),
        () => conn.close(),
      );
    } catch (error) {
      if (
        error instanceof Deno.errors.BadResource ||
        error instanceof Deno.errors.Interrupted
      ) return;
      if (!isTransient(error)) throw error;
      if (!isFailing) {
        events.onProblem(
          `Cannot accept a connection on ${name}: ` +
            `${(error as Error).message}; trying again`,
        );
      }
      isFailing = true;
      await new Promise((resolve) => setTimeout(resolve, ACCEPT_PAUSE_MS));
    }
  }
}

/** Failures of `accept(2)` that say nothing about the listener. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  "EMFILE",
  "ENFILE",
  "ENOBUFS",
  "ENOMEM",
  "ECONNABORTED",
  "ECONNRESET",
  // The platform asks who came, and they have gone again with a reset.
  "ENOTCONN",
  "EPROTO",
  "EPERM",
]);

function isTransient(error: unknown): boolean {
  return TRANSIENT_CODES.has(codeOf(error));
}
