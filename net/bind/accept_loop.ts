/**
 * Accepts connections as long as a listener lives, whatever errors occur.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { guarded } from "../../platform/errors/internal_errors.ts";
import {
  type DescriptorUse,
  keepSpareDescriptor,
  mayTakeDescriptor,
  withSpareDescriptor,
} from "../libc/descriptors.ts";
import { codeOf, messageOf } from "../../platform/errors/error_code.ts";

/** How long accepting rests when the process has no descriptor left. */
export const ACCEPT_PAUSE_MS = 100;

/** Events of an accept loop. */
export interface AcceptEvents<Conn> {
  onConnection(conn: Conn): void;
  /**
   * One line per burst of failures; accepting goes on.
   *
   * @param code Absent: descriptors are what lacks (`TUN513`).
   */
  onProblem(line: string, code?: Code): void;
  /** Other uses of descriptors go first; default: `caller`. */
  readonly use?: DescriptorUse;
  /**
   * Connections in the kernel's queue are accepted even when the listener is
   * being closed; otherwise the kernel would reset them.
   */
  readonly isPatient?: boolean;
}

/** Returns when `listener` was closed. */
export async function acceptLoop<Conn extends { close(): void }>(
  listener: {
    accept(hasTried?: boolean): Promise<Conn>;
    acceptNow?(): Conn | undefined;
  },
  name: string,
  events: AcceptEvents<Conn>,
): Promise<void> {
  const { use = "caller" } = events;
  const problems = new AcceptProblems(name, events.onProblem);
  keepSpareDescriptor();
  for (;;) {
    try {
      const conn = listener.acceptNow?.() ??
        await listener.accept(listener.acceptNow !== undefined);
      if (!mayTakeDescriptor(use)) {
        conn.close();
        problems.refused();
        continue;
      }
      problems.over();
      // The fate of one connection must not stop later ones.
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
      problems.failed(error);
      if (refuseWaiting(listener, error)) continue;
      await new Promise((resolve) => setTimeout(resolve, ACCEPT_PAUSE_MS));
    }
  }
}

/** For the log: one line per burst. */
export class AcceptProblems {
  #isFailing = false;

  constructor(
    private readonly name: string,
    private readonly tell: (line: string) => void,
  ) {}

  over(): void {
    this.#isFailing = false;
  }

  refused(): void {
    this.#say(
      `Refusing connections on ${this.name}: there are only as many ` +
        "descriptors left as health, administration and links need; raise " +
        '"ulimit -n"',
    );
  }

  failed(error: unknown): void {
    this.#say(
      `Cannot accept a connection on ${this.name}: ${messageOf(error)}; ` +
        "trying again",
    );
  }

  #say(line: string): void {
    if (!this.#isFailing) this.tell(line);
    this.#isFailing = true;
  }
}

/**
 * Without a descriptor there is one for this: a waiting client is closed at
 * once, and can try elsewhere.
 *
 * @returns Whether there was one.
 */
function refuseWaiting<Conn extends { close(): void }>(
  listener: { acceptNow?(): Conn | undefined },
  error: unknown,
): boolean {
  if (!SHORT_CODES.has(codeOf(error))) return false;
  try {
    return withSpareDescriptor(() => {
      const conn = listener.acceptNow?.();
      conn?.close();
      return conn !== undefined;
    });
  } catch {
    return false; // Another process was quicker, or the client has gone.
  }
}

/** There is no descriptor left, for this process or for the system. */
const SHORT_CODES: ReadonlySet<string> = new Set(["EMFILE", "ENFILE"]);

/** Failures of `accept(2)` that are not about the listener. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  "EMFILE",
  "ENFILE",
  "ENOBUFS",
  "ENOMEM",
  "ECONNABORTED",
  "ECONNRESET",
  // The platform asks for the peer's address, and the peer has gone with a
  // reset.
  "ENOTCONN",
  "EPROTO",
  "EPERM",
]);

function isTransient(error: unknown): boolean {
  return TRANSIENT_CODES.has(codeOf(error));
}
