/**
 * Asks before an action, does it, and reports the result. Only users with the
 * right see the buttons; the server decides in any case.
 *
 * @module
 */

import { type Signal, signal } from "@preact/signals";
import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ActionAnswer, AdminRole } from "../../proto/admin/api.ts";
import { tell } from "./announce.ts";
import { act } from "./ask.ts";
import { peerText } from "./units.ts";

/** Something that may be done. */
export interface Action {
  /** The button: `Drain`. */
  readonly verb: string;
  /** `Drain edge-7?` */
  readonly question: string;
  /** What follows from it, one sentence. */
  readonly consequence: string;
  readonly path: string;
  readonly isGrave?: boolean;
  readonly asksReason?: boolean;
  onDone?(): void;
}

/** What the login allows; the page says it, see `shell.ts`. */
export const role: AdminRole =
  document.documentElement.dataset["role"] === "operate" ? "operate" : "view";

const asked: Signal<Action | undefined> = signal(undefined);

/** A button for users with the right. */
export function ActionButton(
  { action, isSkipped = false }: {
    readonly action: Action;
    /** Not in the order of Tab. */
    readonly isSkipped?: boolean;
  },
): VNode | null {
  if (role !== "operate") return null;
  return (
    <button
      type="button"
      class={`button${action.isGrave ? " is-grave" : ""}`}
      {...(isSkipped ? { tabIndex: -1 } : {})}
      onClick={(event) => {
        event.stopPropagation();
        // A new one each time: the one before may be about to be forgotten.
        asked.value = { ...action };
      }}
    >
      {action.verb}
    </button>
  );
}

/** The question; one for the whole page. */
export function ConfirmDialog(): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const action = asked.value;
  const opener = useRef<Element | null>(null);
  useLayoutEffect(() => {
    if (action === undefined) return;
    opener.current = document.activeElement;
    dialog.current!.showModal();
  }, [action]);
  const close = () => {
    // The event comes late on a busy page, and it may be open for the next one.
    if (dialog.current?.open) return;
    asked.value = undefined;
    // The row may have been replaced meanwhile; then the main part gets the
    // focus.
    const { current: back } = opener;
    const target = back instanceof HTMLElement && back.isConnected
      ? back
      : document.getElementById("main");
    target?.focus();
  };
  return (
    <dialog
      ref={dialog}
      class="confirm"
      aria-labelledby="confirm-title"
      aria-describedby="confirm-text"
      onClose={close}
    >
      {action && <Question {...{ action }} dialog={dialog} />}
    </dialog>
  );
}

function Question(
  { action, dialog }: {
    readonly action: Action;
    readonly dialog: { readonly current: HTMLDialogElement | null };
  },
): VNode {
  const [reason, setReason] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    const isGood = await perform(action, reason.trim());
    dialog.current?.close();
    if (isGood) action.onDone?.();
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <h2 id="confirm-title">{peerText(action.question)}</h2>
      <p id="confirm-text">{peerText(action.consequence)}</p>
      {action.asksReason && (
        <label class="reason">
          Reason, for the audit log
          <input
            value={reason}
            maxLength={200}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
      )}
      <div class="buttons">
        <button
          type="button"
          class="button"
          onClick={() => dialog.current?.close()}
        >
          Cancel
        </button>
        <button
          type="submit"
          class={`button is-chosen${action.isGrave ? " is-grave" : ""}`}
          aria-disabled={isBusy}
        >
          {isBusy ? "…" : action.verb}
        </button>
      </div>
    </form>
  );
}

async function perform(action: Action, reason: string): Promise<boolean> {
  try {
    const body = action.asksReason && reason !== "" ? { reason } : {};
    const { message } = await act<ActionAnswer>(action.path, body);
    tell(message || "Done");
    return true;
  } catch (error) {
    tell((error as Error).message, true);
    return false;
  }
}
