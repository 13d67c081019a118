/**
 * A list of anything: a field that searches it, choices of a state, the table,
 * and beside it the one that is open. The open item and the chosen state are in
 * the page's address.
 *
 * @module
 */

import { signal } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { countText } from "../../platform/text/quantities.ts";
import { useAsked } from "./server_state.ts";
import { type FilterChoice, Filters, Search } from "./filters.tsx";
import { KeyedList, useSortedGrid } from "./ordered.ts";
import { peerText } from "./units.ts";
import { goTo, place } from "./place.ts";
import { type GridProps, type Sorting, VirtualGrid } from "./virtual_grid.tsx";

/** What a list is of; how its items are found and shown. */
interface ListLook<T, Answer> extends Pick<GridProps<T>, "columns" | "narrow"> {
  /** Its name in the page's address. */
  readonly view: string;
  readonly title: string;
  /** The words for a search: `a node`, by `name, address`. */
  readonly find: readonly [what: string, by: string];
  choices(): readonly FilterChoice[];
  /** The items that the server tells changes of; absent: of none. */
  readonly followed?: KeyedList<T>;
  /** How all items are asked for, again and again; absent: never. */
  readonly asked?: {
    readonly path: string;
    readonly everyMs: number;
    items(answer: Answer): readonly T[];
  };
  nameOf(item: T): string;
  /** The greatest last, until a column is chosen; absent: by name. */
  rank?(item: T): string;
  readonly sorting?: Sorting;
  /** Whether it is one of those that a choice shows. */
  isLike(item: T, state: string): boolean;
  /** What else the page's address asks for. */
  isWanted?(item: T, query: URLSearchParams): boolean;
  /** The fields that a search reads. */
  words(item: T): readonly (string | undefined)[];
  tools?(query: URLSearchParams): ComponentChildren;
  /** @param item Absent: it is not there, or not yet. */
  panel(name: string, item: T | undefined): VNode;
  /** Shown when no item matches. */
  none(): string;
}

/** @returns The view of such a list. */
export function listView<T, Answer = never>(
  look: ListLook<T, Answer>,
): () => VNode {
  const { view, title, columns, nameOf, followed, rank = nameOf } = look;
  const { path, everyMs = 0, items } = look.asked ?? {};
  const search = signal("");
  const sorting = signal(look.sorting ?? { column: "", isDown: false });
  const list = followed ?? new KeyedList<T>(nameOf);
  return function List(): VNode {
    const { name, query } = place.value;
    const kept = Object.fromEntries(query);
    const state = query.get("state") ?? "";
    const text = search.value.trim().toLowerCase();
    const asked = useAsked<Answer>(
      path,
      everyMs,
      (answer) =>
        list.apply({ isWhole: true, changed: items!(answer), gone: [] }),
    );
    const grid = useSortedGrid(list, sorting, columns, {
      ...{ nameOf, rank },
      key: JSON.stringify([kept, text, asked.kind]),
      filter: (item) =>
        (state === "" || look.isLike(item, state)) &&
        (look.isWanted?.(item, query) ?? true) &&
        (text === "" ||
          look.words(item).some((word) => word?.toLowerCase().includes(text))),
    });
    const waiting = asked.kind === "failed"
      ? peerText(asked.message)
      : "Waiting for the server …";
    return (
      <SplitView
        title={title}
        isOpen={name !== ""}
        panel={name === "" ? null : look.panel(name, list.items.get(name))}
        onClose={() => goTo(view, "", kept)}
        tools={
          <>
            <Search
              label={`Find ${look.find[0]}`}
              hint={look.find[1]}
              text={search}
            />
            <Filters label="State" choices={look.choices()} chosen={state} />
            {look.tools?.(query)}
            <p class="tally" role="status">
              {countText(grid.keys.length)} of {countText(list.items.size)}
            </p>
          </>
        }
      >
        <VirtualGrid<T>
          {...grid}
          label={title}
          columns={columns}
          narrow={look.narrow}
          onOpen={(key) => goTo(view, key, kept)}
          openKey={name}
          empty={list.isKnown.value ? look.none() : waiting}
        />
      </SplitView>
    );
  };
}

/**
 * A list, and beside it (over it where there is no room) the one that is open.
 * Escape closes it, and the focus goes back to its row.
 */
function SplitView(
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
