/**
 * A list, and beside it (over it where there is no room) the one that is open.
 * Escape closes it, and the focus goes back to its row.
 *
 * @module
 */

import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** See the module description. */
export function SplitView(
  { title, isOpen, panel, tools, children, onClose }: {
    readonly title: string;
    readonly isOpen: boolean;
    readonly panel: ComponentChildren;
    readonly tools: ComponentChildren;
    readonly children: ComponentChildren;
    onClose(): void;
  },
): VNode {
  const whole = useRef<HTMLDivElement>(null);
  const aside = useRef<HTMLElement>(null);
  const wasOpen = useRef(false);
  useEffect(() => {
    if (isOpen) aside.current?.focus({ preventScroll: true });
    else if (wasOpen.current) {
      whole.current?.querySelector<HTMLElement>('[role="row"][tabindex="0"]')
        ?.focus({ preventScroll: true });
    }
    wasOpen.current = isOpen;
  }, [isOpen]);
  return (
    <div
      class={`split${isOpen ? " has-panel" : ""}`}
      ref={whole}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !isOpen || event.defaultPrevented) return;
        onClose();
      }}
    >
      <div class="split-list">
        <h1 class="unseen">{title}</h1>
        <div class="tools">{tools}</div>
        {children}
      </div>
      {isOpen && (
        <aside
          class="split-panel"
          ref={aside}
          tabIndex={-1}
          aria-label={`${title}: details`}
        >
          <button
            type="button"
            class="button close"
            onClick={onClose}
            aria-label="Close details"
          >
            ✕
          </button>
          {panel}
        </aside>
      )}
    </div>
  );
}
