/**
 * A table of any length, of which only the visible rows exist. Its rows are
 * walked with the arrow keys (one of them has the focus, as in the ARIA grid
 * pattern) and opened with Enter. Columns that do not fit are left out, the
 * least important first, so that the page never scrolls sideways.
 *
 * @module
 */

import type { ComponentChildren, VNode } from "preact";
import {
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "preact/hooks";
import type { Column } from "../view/cells.ts";
import { CellText, titleOf } from "./cell.tsx";
import { clock } from "./server_state.ts";

/** One column. */
interface GridColumn<T> extends Column<T> {
  /** In pixels; for columns that grow, the least width. */
  readonly width: number;
  /** 1 is never left out; the highest goes first. */
  readonly need: number;
  readonly grows?: number | undefined;
  /** Shown in place of a cell's text. */
  readonly shown?: ((item: T) => ComponentChildren) | undefined;
}

type Size = readonly [width: number, need: number, grows?: number];

/** Columns by their headings, in the order of `sizes`. */
export function gridColumns<T>(
  columns: readonly Column<T>[],
  sizes: Readonly<Record<string, Size | undefined>>,
  shown: Readonly<Record<string, (item: T) => ComponentChildren>> = {},
): readonly GridColumn<T>[] {
  return Object.entries(sizes).flatMap(([name, size]) => {
    const column = columns.find(({ heading }) => heading === name);
    if (column === undefined || size === undefined) return [];
    const [width, need, grows] = size;
    return [{ ...column, width, need, grows, shown: shown[name] }];
  });
}

/** How it is sorted. */
export interface Sorting {
  readonly column: string;
  readonly isDown: boolean;
}

/** A table. */
export interface GridProps<T> {
  readonly label: string;
  readonly columns: readonly GridColumn<T>[];
  readonly keys: readonly string[];
  get(key: string): T | undefined;
  readonly sorting?: Sorting | undefined;
  readonly onSort?: ((column: string) => void) | undefined;
  onOpen?(key: string): void;
  /** The one that is open beside the table. */
  readonly openKey?: string;
  /** A second line where the table is narrow. */
  readonly narrow?: ((item: T) => ComponentChildren) | undefined;
  /** The pointer is over it, or the keyboard moves in it. */
  readonly onHold?: ((isHeld: boolean) => void) | undefined;
  readonly empty: ComponentChildren;
}

const ROW = 32;
const ROW_NARROW = 50;
const NARROW_WIDTH = 560;
/** Rows beyond both ends, so that a fast wheel finds them there. */
const SPARE_ROWS = 12;
/** The window moves in steps, or each pixel would be a render. */
const STEP_ROWS = 4;

/** See the module description. */
export function VirtualGrid<T>(props: GridProps<T>): VNode {
  const { keys, label, columns } = props;
  const body = useRef<HTMLDivElement>(null);
  const size = useSize(body);
  const isNarrow = size.width > 0 && size.width < NARROW_WIDTH;
  const narrow = isNarrow ? props.narrow : undefined;
  const row = narrow ? ROW_NARROW : ROW;
  const first = useFirstRow(body, row);
  const walk = useWalk(props, body, row);
  const width = narrow ? 0 : size.width;
  const shown = useMemo(() => fitting(columns, width), [columns, width]);
  const template = shown.map(({ width, grows }) =>
    grows ? `minmax(0,${grows}fr)` : `${width}px`
  ).join(" ");
  const count = Math.ceil((size.height || 600) / row) + STEP_ROWS;
  // A row that is scrolled away becomes the next one that comes: to change some
  // texts is cheaper than to make elements. The one with the focus stays itself.
  const pool = count + 2 * SPARE_ROWS + 1;
  const indexes = windowOf(first, count, keys.length, walk.index);
  const hold = useHold(props.onHold);
  return (
    <div
      class={`grid${isNarrow ? " is-narrow" : ""}`}
      role="grid"
      aria-label={label}
      aria-rowcount={keys.length + 1}
      aria-colcount={shown.length}
      onPointerEnter={() => hold({ isOver: true })}
      onPointerLeave={() => hold({ isOver: false })}
    >
      <Head {...props} columns={shown} template={template} />
      <div
        class="grid-body"
        role="rowgroup"
        ref={body}
        onKeyDown={walk.onKeyDown}
        onClick={walk.onClick}
        onFocusCapture={() => hold({ hasFocus: true })}
        onBlurCapture={() => hold({ hasFocus: false })}
      >
        <div
          class="grid-rows"
          role="presentation"
          style={{ height: `${keys.length * row}px` }}
        >
          {indexes.map((index) => {
            const key = keys[index]!;
            const item = props.get(key);
            if (item === undefined) return null;
            const isActive = index === walk.index;
            return (
              <Row<T>
                key={isActive ? "active" : index % pool}
                {...{ item, index, template, isActive, narrow, height: row }}
                columns={shown}
                isOpen={key === props.openKey}
              />
            );
          })}
        </div>
        {keys.length === 0 && (
          // A group of rows must have one (WAI-ARIA 1.2, 5.2.5).
          <div class="grid-empty" role="row">
            <div role="gridcell" aria-colspan={shown.length}>{props.empty}</div>
          </div>
        )}
      </div>
    </div>
  );
}

function Head<T>(
  { columns, template, sorting, onSort }: GridProps<T> & {
    readonly template: string;
  },
): VNode {
  return (
    <div class="grid-head" role="rowgroup">
      <div
        class="grid-row"
        role="row"
        aria-rowindex={1}
        style={{ gridTemplateColumns: template }}
      >
        {columns.map((column, index) => {
          const title = titleOf(column.heading);
          const isSorted = sorting?.column === column.heading;
          const order = sorting?.isDown ? "descending" : "ascending";
          const arrow = isSorted && (
            <span class="arrow" aria-hidden="true">
              {sorting?.isDown ? "↓" : "↑"}
            </span>
          );
          return (
            <div
              key={column.heading}
              role="columnheader"
              aria-colindex={index + 1}
              class={column.side ? "is-number" : ""}
              {...(column.order
                ? { "aria-sort": isSorted ? order : "none" }
                : {})}
            >
              {column.order && onSort
                ? (
                  <button type="button" onClick={() => onSort(column.heading)}>
                    {column.side && arrow}
                    {title}
                    {!column.side && arrow}
                  </button>
                )
                : title}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** The values that a row depends on. */
interface RowFacts<T> {
  readonly item: T;
  readonly index: number;
  readonly columns: readonly GridColumn<T>[];
  readonly template: string;
  readonly height: number;
  readonly isOpen: boolean;
  readonly isActive: boolean;
  readonly narrow: GridProps<T>["narrow"];
}

/** What is unchanged is not rendered again: three of four during scrolling. */
function Row<T>(row: RowFacts<T>): VNode {
  const { item, index, columns, template, height, narrow } = row;
  const nowMs = clock.value;
  return useMemo(() => (
    <div
      role="row"
      class={`grid-row${row.isOpen ? " is-open" : ""}`}
      aria-rowindex={index + 2}
      aria-selected={row.isOpen}
      tabIndex={row.isActive ? 0 : -1}
      data-index={index}
      style={{
        gridTemplateColumns: template,
        transform: `translateY(${index * height}px)`,
        height: `${height}px`,
      }}
    >
      {columns.map((column, at) => (
        <div
          key={column.heading}
          role="gridcell"
          aria-colindex={at + 1}
          class={column.side ? "is-number" : ""}
        >
          {column.shown?.(item) ??
            <CellText cell={column.of(item, nowMs)} isSkipped />}
          {narrow && column.need === 1 && column.grows
            ? <div class="second">{narrow(item)}</div>
            : null}
        </div>
      ))}
    </div>
  ), [...Object.values(row), nowMs]);
}

/** Columns that fit, the most needed ones. */
function fitting<T>(
  columns: readonly GridColumn<T>[],
  width: number,
): readonly GridColumn<T>[] {
  if (width === 0) return columns.filter(({ need }) => need === 1);
  const gap = 12;
  let room = width - 24;
  const kept = new Set<GridColumn<T>>();
  for (const column of columns.toSorted((a, b) => a.need - b.need)) {
    room -= column.width + gap;
    if (room < 0 && column.need > 1) break;
    kept.add(column);
  }
  return columns.filter((column) => kept.has(column));
}

/** The active row is always among them: it may have the focus. */
function windowOf(
  first: number,
  count: number,
  rows: number,
  active: number,
): number[] {
  const from = Math.max(0, first - SPARE_ROWS);
  const to = Math.min(rows, first + count + SPARE_ROWS);
  const indexes: number[] = [];
  if (active < from && active < rows) indexes.push(active);
  for (let index = from; index < to; index++) indexes.push(index);
  if (active >= to && active < rows) indexes.push(active);
  return indexes;
}

function useSize(
  box: { readonly current: HTMLElement | null },
): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const measure = () => {
      const { clientWidth: width, clientHeight: height } = box.current!;
      setSize((old) =>
        old.width === width && old.height === height ? old : { width, height }
      );
    };
    const observer = new ResizeObserver(measure);
    observer.observe(box.current!);
    measure();
    return () => observer.disconnect();
  }, []);
  return size;
}

function useFirstRow(
  box: { readonly current: HTMLElement | null },
  row: number,
): number {
  const [first, setFirst] = useState(0);
  useEffect(() => {
    const element = box.current!;
    const move = () => {
      const at = Math.floor(element.scrollTop / row);
      setFirst(at - at % STEP_ROWS);
    };
    move();
    element.addEventListener("scroll", move, { passive: true });
    return () => element.removeEventListener("scroll", move);
  }, [row]);
  return first;
}

interface Hold {
  readonly isOver?: boolean;
  readonly hasFocus?: boolean;
}

function useHold(tell: GridProps<unknown>["onHold"]): (by: Hold) => void {
  const held = useRef<Hold>({});
  return (by) => {
    held.current = { ...held.current, ...by };
    const { isOver, hasFocus } = held.current;
    tell?.(isOver === true || hasFocus === true);
  };
}

interface Walk {
  readonly index: number;
  onClick(event: MouseEvent): void;
  onKeyDown(event: KeyboardEvent): void;
}

function useWalk<T>(
  { keys, onOpen, openKey }: GridProps<T>,
  body: { readonly current: HTMLDivElement | null },
  row: number,
): Walk {
  const [active, setActive] = useState("");
  const wantsFocus = useRef(false);
  const found = keys.indexOf(active || (openKey ?? ""));
  const index = Math.max(0, found);
  useLayoutEffect(() => {
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    const selector = `[data-index="${index}"]`;
    body.current?.querySelector<HTMLElement>(selector)
      ?.focus({ preventScroll: true });
  });
  const moveTo = useCallback((to: number) => {
    const next = Math.max(0, Math.min(keys.length - 1, to));
    const element = body.current!;
    const top = next * row;
    if (top < element.scrollTop) element.scrollTop = top;
    const over = top + row - element.scrollTop - element.clientHeight;
    if (over > 0) element.scrollTop += over;
    wantsFocus.current = true;
    setActive(keys[next] ?? "");
  }, [keys, row]);
  return {
    index,
    onClick(event) {
      const row = (event.target as Element).closest("[data-index]");
      const key = row && keys[Number(row.getAttribute("data-index"))];
      if (key === null || key === undefined) return;
      setActive(key);
      onOpen?.(key);
    },
    onKeyDown(event) {
      const target = event.target as HTMLElement;
      if (target.getAttribute("role") !== "row") return;
      const page = Math.floor(body.current!.clientHeight / row) - 1;
      const to = destination(event.key, index, page, keys.length);
      if (to !== undefined) moveTo(to);
      else if (event.key === "Enter" && onOpen) onOpen(keys[index]!);
      else return;
      event.preventDefault();
    },
  };
}

function destination(
  key: string,
  from: number,
  page: number,
  rows: number,
): number | undefined {
  switch (key) {
    case "ArrowDown":
      return from + 1;
    case "ArrowUp":
      return from - 1;
    case "PageDown":
      return from + page;
    case "PageUp":
      return from - page;
    case "Home":
      return 0;
    case "End":
      return rows - 1;
    default:
      return undefined;
  }
}
