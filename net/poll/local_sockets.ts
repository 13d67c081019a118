/**
 * Which sockets of this machine are in use, in words for the log.
 *
 * @module
 */

import { openLibc } from "../libc/libc.ts";
import { type Poller, sharedPoller, type Wakeup } from "./poller.ts";
import { type SocketChoice, SOCKETS } from "../libc/choices.ts";

const WAYS: Readonly<Record<Wakeup["kind"], string>> = {
  ring: "io_uring wakes the program",
  thread: "a thread waits for them, as io_uring is not allowed here",
  timer:
    "they are looked at every few milliseconds, because the platform has no other way to wait",
};

/** A sentence, once something is open. */
export function localSocketsInUse(): string {
  const [choice, poller] = [SOCKETS.word, sharedPoller()];
  if (poller === undefined) {
    const because = choice === "platform" && openLibc() !== undefined
      ? `$${SOCKETS.variable} says so`
      : "there is no C library that may be asked";
    return `Local sockets are the platform's: ${because}`;
  }
  return `Local sockets are the C library's: ${wayOf(poller, choice)}`;
}

function wayOf({ wakeupKind }: Poller, choice: SocketChoice | undefined) {
  if (wakeupKind === undefined) return "none is open yet";
  return wakeupKind === "thread" && choice === "thread"
    ? `a thread waits for them, as $${SOCKETS.variable} says`
    : WAYS[wakeupKind];
}
