/**
 * Draws nodes as squares, row by row, on a canvas: thousands of elements would be
 * slow, thousands of rectangles take a millisecond.
 *
 * @module
 */

import type { NodeSummary } from "../../../proto/admin/node_answer.ts";
import { colour } from "./theme.ts";

/** What the colour of a square says. */
export type MapColouring = "state" | "traffic" | "round trip";

const CELL_MIN = 6;
const CELL_MAX = 22;
/** What all groups may take of the screen's height before squares get smaller. */
const HEIGHT_WANTED = 640;
/** Colours of a scale. */
const STEPS = 6;

interface Packing {
  /** With the gap behind it. */
  readonly cell: number;
  readonly perRow: number;
}

function packing(width: number, all: number): Packing {
  const fits = Math.floor(Math.sqrt(width * HEIGHT_WANTED / Math.max(1, all)));
  const cell = Math.max(CELL_MIN, Math.min(CELL_MAX, fits));
  return { cell, perRow: Math.max(1, Math.floor(width / cell)) };
}

/**
 * Which square is there.
 *
 * @param count Squares of this group.
 * @param all Of all groups: they have one size.
 */
export function cellAt(
  [x, y]: readonly [number, number],
  width: number,
  count: number,
  all: number,
): number | undefined {
  const { cell, perRow } = packing(width, all);
  const column = Math.floor(x / cell);
  if (column < 0 || column >= perRow || y < 0) return undefined;
  const index = Math.floor(y / cell) * perRow + column;
  return index < count ? index : undefined;
}

/** Draws all of them, and makes the canvas as high as that takes. */
export function drawMap(
  canvas: HTMLCanvasElement,
  width: number,
  nodes: readonly NodeSummary[],
  all: number,
  by: MapColouring,
): void {
  const { cell, perRow } = packing(width, all);
  const height = Math.ceil(nodes.length / perRow) * cell;
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d")!;
  context.scale(ratio, ratio);
  const colours = new Map<string, string>();
  const side = cell - (cell > 10 ? 2 : 1);
  nodes.forEach((node, index) => {
    const name = colourOf(node, by);
    if (!colours.has(name)) colours.set(name, colour(name));
    const x = (index % perRow) * cell;
    const y = Math.floor(index / perRow) * cell;
    context.fillStyle = colours.get(name)!;
    if (node.state === "offline" && by === "state") {
      // Hollow: told apart without colour too.
      context.fillRect(x, y, side, side);
      context.clearRect(x + 2, y + 2, side - 4, side - 4);
    } else context.fillRect(x, y, side, side);
    if (by === "state" && hasProblem(node)) {
      colours.set("bad", colours.get("bad") ?? colour("bad"));
      context.fillStyle = colours.get("bad")!;
      context.beginPath();
      context.moveTo(x + side, y);
      context.lineTo(x + side, y + side);
      context.lineTo(x, y + side);
      context.fill();
    }
  });
}

function hasProblem({ state, problem, isDuplicate }: NodeSummary): boolean {
  return state === "online" && (isDuplicate === true || problem !== undefined);
}

/** Names of the style sheet. */
function colourOf(node: NodeSummary, by: MapColouring): string {
  if (by === "state" || node.state !== "online") return `map-${node.state}`;
  const value = by === "traffic"
    ? node.toTargetRate + node.fromTargetRate
    : node.roundTripMs;
  if (value === undefined) return "map-revoked";
  // From a kilobyte to a hundred megabytes a second; from 1 ms to a second.
  const [least, decades] = by === "traffic" ? [1e3, 5] : [1, 3];
  if (value <= 0) return "map-0";
  const part = Math.log10(value / least) / decades;
  const step = Math.round(part * (STEPS - 1));
  return `map-${Math.max(0, Math.min(STEPS - 1, step))}`;
}
