/**
 * A list of anything: a field that searches it, choices of a state, the table,
 * and beside it the one that is open. The open item and the chosen state are in
 * the page's address.
 *
 * @module
 */

import { type Signal, signal } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { countText } from "../../platform/text/quantities.ts";
import { useAsked } from "./server_state.ts";
import { type FilterChoice, Filters, Search } from "./filters.tsx";
import { Nothing } from "./marks.tsx";
import { compareNames } from "./ordered.ts";
import { peerText } from "./units.ts";
import { goTo, place } from "./place.ts";
import { type GridProps, VirtualGrid } from "./virtual_grid.tsx";

/** The common part of all lists. */
interface ListLook<T> extends
  Pick<
    GridProps<T>,
    "columns" | "keys" | "get" | "narrow" | "empty" | "sorting" | "onSort"
  > {
  /** Its name in the page's address. */
  readonly view: string;
  readonly title: string;
  /** The words for a search: `a node`, by `name, address`. */
  readonly find: readonly [what: string, by: string];
  readonly search: Signal<string>;
  readonly choices: readonly FilterChoice[];
  /** How many there are, however few are shown. */
  readonly total: number;
  readonly tools?: ComponentChildren;
  readonly onHold?: GridProps<T>["onHold"];
  panel(name: string): VNode;
}

/** See the module description. */
export function ListView<T>(list: ListLook<T>): VNode {
  const { view, title, find: [what, by], keys } = list;
  const { name, query } = place.value;
  const kept = Object.fromEntries(query);
  return (
    <SplitView
      title={title}
      isOpen={name !== ""}
      panel={name === "" ? null : list.panel(name)}
      onClose={() => goTo(view, "", kept)}
      tools={
        <>
          <Search label={`Find ${what}`} hint={by} text={list.search} />
          <Filters
            label="State"
            choices={list.choices}
            chosen={query.get("state") ?? ""}
          />
          {list.tools}
          <p class="tally" role="status">
            {countText(keys.length)} of {countText(list.total)}
          </p>
        </>
      }
    >
      <VirtualGrid<T>
        {...list}
        label={title}
        onOpen={(key) => goTo(view, key, kept)}
        openKey={name}
      />
    </SplitView>
  );
}

/** A list that is requested as a whole. */
interface AskedLook<T, Answer> extends
  Pick<
    ListLook<T>,
    "view" | "title" | "find" | "choices" | "columns" | "narrow"
  > {
  readonly path: string;
  readonly everyMs: number;
  items(answer: Answer): readonly T[];
  nameOf(item: T): string;
  /** Whether it is one of those that a choice shows. */
  isLike(item: T, state: string): boolean;
  /** The fields that a search reads. */
  words(item: T): string;
  /** The greatest last; absent: by name. */
  rank?(item: T): number | string;
  panel(item: T): VNode;
  /** Shown when no item matches. */
  readonly none: string;
}

/** @returns The view of such a list. */
export function askedList<T, Answer>(
  look: AskedLook<T, Answer>,
): () => VNode {
  const search = signal("");
  const { nameOf, rank = () => 0 } = look;
  return function AskedList(): VNode {
    const asked = useAsked<Answer>(look.path, look.everyMs);
    const answer = asked.kind === "known" ? asked.answer : undefined;
    const state = place.value.query.get("state") ?? "";
    const text = search.value.trim().toLowerCase();
    const items = useMemo(
      () =>
        new Map(
          (answer === undefined ? [] : look.items(answer))
            .map((item) => [nameOf(item), item] as const),
        ),
      [answer],
    );
    const keys = useMemo(() =>
      [...items.values()]
        .filter((item) =>
          (state === "" || look.isLike(item, state)) &&
          (text === "" || look.words(item).toLowerCase().includes(text))
        )
        .sort((a, b) => {
          const [x, y] = [rank(a), rank(b)];
          return x < y ? -1 : x > y ? 1 : compareNames(nameOf(a), nameOf(b));
        })
        .map(nameOf), [items, state, text]);
    const { panel, ...shown } = look;
    return (
      <ListView<T>
        {...shown}
        keys={keys}
        get={(key) => items.get(key)}
        search={search}
        total={items.size}
        panel={(name) => {
          const item = items.get(name);
          return item === undefined
            ? <Nothing>There is none of that name any more.</Nothing>
            : panel(item);
        }}
        empty={asked.kind === "failed"
          ? peerText(asked.message)
          : asked.kind === "waiting"
          ? "Waiting for the server …"
          : look.none}
      />
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
