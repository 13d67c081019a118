/**
 * A list filtered and sorted by the user's choice, without jumps. Values change
 * in place; the order changes every few seconds, and not at all while the
 * pointer is over it, because the user would click a row that has just moved
 * there.
 *
 * @module
 */

import { type Signal, signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Column } from "../view/cells.ts";
import type { GridProps, Sorting } from "./virtual_grid.tsx";
import type { ListChange } from "../../proto/admin/list_answers.ts";

/** The order changes at most this often. */
const CALM_MS = 3_000;
/** A list that grows by a twentieth is sorted again at once. */
const SIZE_STEPS = 20;

/** The filter and the order of a list. */
interface Wanted<T> {
  /** Differs whenever `filter` or `compare` differs. */
  readonly key: string;
  filter(item: T): boolean;
  compare(a: T, b: T): number;
}

/** The parts of a sorted table. */
type SortedGrid<T> = Pick<
  GridProps<T>,
  "keys" | "get" | "sorting" | "onSort" | "onHold"
>;

/** A list as a table that is sorted by its rank, or by one of its columns. */
export function useSortedGrid<T>(
  list: KeyedList<T>,
  sorting: Signal<Sorting>,
  columns: readonly Column<T>[],
  { nameOf, rank, ...wanted }: Pick<Wanted<T>, "key" | "filter"> & {
    nameOf(item: T): string;
    rank(item: T): string;
  },
): SortedGrid<T> {
  const isHeld = useRef(false);
  const { column, isDown } = sorting.value;
  const sorted = columns.find(({ heading }) => heading === column);
  const keys = useOrdered(list, {
    key: JSON.stringify([wanted.key, column, isDown]),
    filter: wanted.filter,
    compare: by(sorted?.order ?? rank, isDown, nameOf),
  }, () => isHeld.current);
  return {
    keys,
    get: (key) => list.items.get(key),
    sorting: sorting.value,
    // Numbers are wanted with the biggest first.
    onSort: (heading) => {
      const isNumber = columns.find((one) => one.heading === heading)?.side;
      sorting.value = {
        column: heading,
        isDown: column === heading ? !isDown : isNumber !== undefined,
      };
    },
    onHold: (held) => isHeld.current = held,
  };
}

/**
 * @param isHeld The pointer is over the list.
 * @returns Keys in order.
 */
function useOrdered<T>(
  list: KeyedList<T>,
  wanted: Wanted<T>,
  isHeld: () => boolean,
): readonly string[] {
  const [turn, setTurn] = useState(0);
  const latest = useRef({ isHeld, version: -1 });
  latest.current.isHeld = isHeld;
  // It comes in pieces, and each is shown at once; some more or less is not.
  const { value: version } = list.version;
  const size = Math.round(Math.log(list.items.size + 1) * SIZE_STEPS);
  useEffect(() => {
    const timer = setInterval(() => {
      const { isHeld, version } = latest.current;
      if (isHeld() || version === list.version.peek()) return;
      setTurn((before) => before + 1);
    }, CALM_MS);
    return () => clearInterval(timer);
  }, [list]);
  const order = useMemo(() => {
    latest.current.version = list.version.peek();
    const found: [string, T][] = [];
    for (const entry of list.items) {
      if (wanted.filter(entry[1])) found.push(entry);
    }
    found.sort((a, b) => wanted.compare(a[1], b[1]));
    return found.map(([key]) => key);
  }, [list, wanted.key, turn, size]);
  // Removed items disappear at once.
  return useMemo(
    () =>
      order.every((key) => list.items.has(key))
        ? order
        : order.filter((key) => list.items.has(key)),
    [order, version],
  );
}

/** Compares by one field, and by the plain name where that is the same. */
function by<T>(
  value: (item: T) => string | number | undefined,
  isDown: boolean,
  name: (item: T) => string,
): (a: T, b: T) => number {
  const sign = isDown ? -1 : 1;
  return (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x !== y) {
      // Unknown values come last in either order.
      if (x === undefined) return 1;
      if (y === undefined) return -1;
      if (typeof x === "number" && typeof y === "number") return sign * (x - y);
      if (typeof x === "string" && typeof y === "string") {
        return sign * compareNames(x, y);
      }
    }
    const [one, other] = [name(a), name(b)];
    return one === other ? 0 : one < other ? -1 : 1;
  };
}

/** `edge-2` before `edge-10`, and fast: ten thousand are sorted while one looks. */
const NAMES = new Intl.Collator("en", { numeric: true });

/** In natural order: numbers inside names count as numbers. */
function compareNames(a: string, b: string): number {
  return a === b ? 0 : NAMES.compare(a, b);
}

// A list that a server tells changes of: items by key, and a number that says
// that something is different.

export class KeyedList<T> {
  readonly items: Map<string, T> = new Map<string, T>();
  /** Another one after each change. */
  readonly version: Signal<number> = signal(0);
  /** Everything has been told at least once. */
  readonly isKnown: Signal<boolean> = signal(false);

  constructor(private readonly keyOf: (item: T) => string) {}

  /** The server's message. */
  apply(change: ListChange<T>): void {
    if (change.isWhole) this.items.clear();
    for (const item of change.changed) this.items.set(this.keyOf(item), item);
    for (const key of change.gone) this.items.delete(key);
    this.#changed();
  }

  /** Newer items of those that are there, and others beside them. */
  merge(items: readonly T[]): void {
    for (const item of items) this.items.set(this.keyOf(item), item);
    this.#changed();
  }

  remove(key: string): void {
    if (this.items.delete(key)) this.#changed();
  }

  #changed(): void {
    this.isKnown.value = true;
    this.version.value++;
  }
}
