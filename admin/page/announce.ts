/**
 * Announcements for screen readers, which are also shown for a moment. An
 * announcement never repeats, and there is at most one in ten seconds, unless
 * the user did something.
 *
 * @module
 */

import { type Signal, signal } from "@preact/signals";
import type { Warning } from "../../proto/admin/status_answer.ts";
import { peerText } from "./units.ts";
import { counted } from "../../platform/text/quantities.ts";

/** Results of the user's actions; shown and announced. */
export const notice: Signal<
  { readonly text: string; readonly isBad: boolean } | undefined
> = signal(undefined);
/** Only said. */
export const said: Signal<string> = signal("");

const QUIET_MS = 10_000;
const NOTICE_MS = 8_000;

let known: ReadonlySet<string> | undefined;
let lastSaidMs = -QUIET_MS;
let hiding: ReturnType<typeof setTimeout> | undefined;

/** Shows and announces the result of an action. */
export function tell(text: string, isBad = false): void {
  clearTimeout(hiding);
  notice.value = { text: peerText(text), isBad };
  hiding = setTimeout(() => notice.value = undefined, NOTICE_MS);
}

/** Says which warnings are new; those of the first look are on the screen. */
export function hearWarnings(
  warnings: readonly Warning[],
  nowMs: number,
): void {
  const grave = warnings.filter(({ severity }) => severity !== "notice");
  const keys = new Set(grave.map(keyOf));
  if (known === undefined) {
    known = keys;
    return;
  }
  if (nowMs - lastSaidMs < QUIET_MS) return;
  const fresh = grave.filter((warning) => !known!.has(keyOf(warning)));
  known = keys;
  if (fresh.length === 0) return;
  lastSaidMs = nowMs;
  said.value = fresh.length === 1
    ? `New warning: ${peerText(fresh[0]!.message)}`
    : `${counted(fresh.length, "new warning")}`;
}

/** Without the message: numbers in it change each second. */
function keyOf({ code, severity, node, message }: Warning): string {
  return JSON.stringify([
    severity,
    node,
    code ?? message.replaceAll(/\d+/g, "0"),
  ]);
}
