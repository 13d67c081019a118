/**
 * Draws `docs/pictures/*.svg`, each from the text beside it and the colours of
 * `style.css`; `reference.ts` writes them. A line of a text is one thing, its
 * places are steps of 10 px:
 *
 *     title: One tunnel
 *     desc: what the picture shows, for readers who cannot see it
 *     size 83x26
 *     zone 1,1 40x22: its name          (`apart` instead: it cannot be dialed)
 *     box hub server 28,8 14x8: its name | a second line | `typed text`
 *     arrow curl -> hub: a label        (`dots` instead: now and then)
 *     link a.left@30 -> hub: above | below     (`tube` instead: without a head)
 *     note 42,24: words
 *
 * The second word of a box says what it is, as `style.css` has it. An end of a
 * line is a box, its side, and how far along it in percent; what is missing is
 * chosen. The words are those of ARCHITECTURE.md; nothing here knows them.
 *
 * @module
 */

const STEP = 10;
const LINE_KINDS = ["arrow", "dots", "link", "tube"] as const;
const PLACE = new URL("../docs/pictures/", import.meta.url);

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

export interface Box extends Rect {
  /** What it is, as `style.css` has it. */
  readonly role: string;
}

/** Words where they stand: `y` is the line that they stand on. */
export interface Words {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly style: "name" | "small" | "typed" | "place";
  readonly anchor: "start" | "middle";
  /** Absent: they are in no box. */
  readonly box?: Box;
}

export type Point = readonly [x: number, y: number];

export interface Line {
  readonly kind: typeof LINE_KINDS[number];
  readonly from: Box;
  readonly to: Box;
  /** Both ends, and what bends the curve between them (Bézier's). */
  readonly bends: readonly [Point, Point, Point, Point];
}

export interface Picture {
  readonly title: string;
  readonly desc: string;
  readonly size: Rect;
  readonly zones: readonly Box[];
  readonly boxes: readonly Box[];
  readonly lines: readonly Line[];
  readonly words: readonly Words[];
}

type Side = "left" | "right" | "top" | "bottom";

/** @throws {Error} Of a line that says nothing known. */
export function readPicture(text: string): Picture {
  const head = { title: "", desc: "" };
  let size: Rect = { x: 0, y: 0, w: 0, h: 0 };
  const zones: Box[] = [];
  const boxes = new Map<string, Box>();
  const lines: Line[] = [];
  const words: Words[] = [];
  for (const line of text.trimEnd().split("\n")) {
    const [, kind = "", rest = "", said = ""] =
      /^(\w+) ?([^:]*)(?:: (.*))?$/.exec(line) ?? [];
    const parts = said.split(" | ");
    const [x = 0, y = 0, w = 0, h = 0] = (/[\d,.x ]*$/.exec(rest)?.[0] ?? "")
      .split(/[,x ]+/).filter(Boolean).map((each) => Number(each) * STEP);
    const drawn = LINE_KINDS.find((each) => each === kind);
    if (kind === "title" || kind === "desc") {
      head[kind] = `${head[kind]} ${said}`.trim();
    } else if (kind === "size") {
      size = { x: 0, y: 0, w: x, h: y };
    } else if (kind === "zone" || kind === "apart") {
      zones.push({ role: kind, x, y, w, h });
      words.push(placed(said, [x + 14, y + 22], "place"));
    } else if (kind === "note") {
      words.push(placed(said, [x, y], "small"));
    } else if (kind === "box") {
      const [name = "", role = ""] = rest.split(" ");
      const box = { role, x, y, w, h };
      boxes.set(name, box);
      words.push(...boxWords(box, parts));
    } else if (drawn !== undefined) {
      const joined = join(drawn, rest, boxes);
      lines.push(joined);
      if (said !== "") words.push(...lineWords(joined, parts));
    } else {
      throw new Error(`Saw "${line}", wanted what scripts/pictures.ts lists`);
    }
  }
  return { ...head, size, zones, boxes: [...boxes.values()], lines, words };
}

function placed(text: string, [x, y]: Point, style: Words["style"]): Words {
  return { text, x, y, style, anchor: style === "place" ? "start" : "middle" };
}

const NAME_HEIGHT = 20;
const SMALL_HEIGHT = 18;

/** In the middle of the box; the first line is its name. */
function boxWords(box: Box, parts: readonly string[]): Words[] {
  const height = NAME_HEIGHT + (parts.length - 1) * SMALL_HEIGHT;
  const top = box.y + (box.h - height) / 2 + 15;
  return parts.map((part, index) => {
    const typed = /^`(.*)`$/.exec(part)?.[1];
    const quiet = typed === undefined ? "small" : "typed";
    const at: Point = [box.x + box.w / 2, top + index * SMALL_HEIGHT];
    return {
      ...placed(typed ?? part, at, index === 0 ? "name" : quiet),
      box,
    };
  });
}

/** Above the middle and below it; beside an upright line. */
function lineWords(
  { kind, bends: [first, , , last] }: Line,
  [above = "", below]: readonly string[],
): Words[] {
  const gap = kind === "link" ? 13 : 8;
  const [x, y] = [(first[0] + last[0]) / 2, (first[1] + last[1]) / 2];
  if (first[0] === last[0]) {
    return [{
      ...placed(above, [x + gap + 2, y + 4], "small"),
      anchor: "start",
    }];
  }
  const found = [placed(above, [x, y - gap], "small")];
  if (below !== undefined) {
    found.push(placed(below, [x, y + gap + 10], "small"));
  }
  return found;
}

/** Between boxes: half of the way in the direction of each side bends it. */
function join(
  kind: Line["kind"],
  rest: string,
  boxes: ReadonlyMap<string, Box>,
): Line {
  const [a, b] = rest.split(" -> ").map((end) => {
    const [, name = "", side, along] =
      /^(\w+)(?:\.(\w+))?(?:@(\d+))?$/.exec(end) ?? [];
    return { box: boxes.get(name), side: side as Side | undefined, along };
  });
  if (a?.box === undefined || b?.box === undefined) {
    throw new Error(`Saw "${rest}", wanted two boxes: A.side@30 -> B.side@50`);
  }
  const [from, to] = [a.box, b.box];
  const leaves = a.side ?? towards(from, to);
  const arrives = b.side ?? towards(to, from);
  const isFree = a.along === undefined && b.along === undefined;
  const start = pointOf(from, leaves, a.along, isFree ? to : from);
  const end = pointOf(to, arrives, b.along, isFree ? from : to);
  const axis = isLevel(leaves) ? 0 : 1;
  // A line that comes back on the side where it left needs room.
  const reach = leaves === arrives ? 60 : Math.abs(end[axis] - start[axis]) / 2;
  const bends = [
    start,
    moved(start, leaves, reach),
    moved(end, arrives, reach),
    end,
  ] as const;
  return { kind, from, to, bends };
}

function isLevel(side: Side): boolean {
  return side === "left" || side === "right";
}

function moved([x, y]: Point, side: Side, by: number): Point {
  if (isLevel(side)) return [side === "left" ? x - by : x + by, y];
  return [x, side === "top" ? y - by : y + by];
}

function towards(from: Rect, to: Rect): Side {
  if (from.x + from.w <= to.x) return "right";
  if (to.x + to.w <= from.x) return "left";
  return from.y < to.y ? "bottom" : "top";
}

/** In the middle of what `other` is beside of: such a line is straight. */
function pointOf(
  box: Rect,
  side: Side,
  along: string | undefined,
  other: Rect,
): Point {
  const [begin, length, second, extent] = isLevel(side)
    ? [box.y, box.h, other.y, other.h]
    : [box.x, box.w, other.x, other.w];
  const low = Math.max(begin, second);
  const high = Math.min(begin + length, second + extent);
  const middle = low < high ? (low + high) / 2 : begin + length / 2;
  const at = along === undefined
    ? middle
    : begin + length * Number(along) / 100;
  if (isLevel(side)) return [side === "left" ? box.x : box.x + box.w, at];
  return [at, side === "top" ? box.y : box.y + box.h];
}

/** The picture as a file that needs nothing but itself. */
export function drawPicture(picture: Picture, css: string): string {
  const { title, desc, size, zones, boxes, lines, words } = picture;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.w}" ` +
    `height="${size.h}" viewBox="0 0 ${size.w} ${size.h}" role="img" ` +
    `aria-labelledby="t d">`,
    `<title id="t">${escaped(title)}</title>`,
    `<desc id="d">${escaped(desc)}</desc>`,
    `<style>${css.replaceAll(/\s*([{};:,]|^)\s*/g, "$1")}</style>`,
    ...[{ ...size, role: "page" }, ...zones].map(drawBox),
    ...lines.map(drawLine),
    ...boxes.map(drawBox),
    ...words.map(drawWords),
    "</svg>\n",
  ].join("\n");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

function drawBox({ role, x, y, w, h }: Box): string {
  return `<rect class="${role}" x="${x}" y="${y}" width="${w}" ` +
    `height="${h}" rx="10"/>`;
}

function drawWords({ text, x, y, style, anchor }: Words): string {
  return `<text class="${style}" text-anchor="${anchor}" x="${x}" ` +
    `y="${y}">${escaped(text)}</text>`;
}

/** A link is a tube in the colours of its ends; the other kinds are strokes. */
function drawLine({ kind, from, to, bends }: Line, index: number): string {
  const [[x1, y1], , [nearX, nearY], [x2, y2]] = bends;
  const path = `d="M${bends[0]}C${bends.slice(1).join(" ")}"`;
  const isPlain = kind === "arrow" || kind === "dots";
  const turn = Math.atan2(y2 - nearY, x2 - nearX) * 180 / Math.PI;
  const head = `<path class="head ${isPlain ? "" : to.role}" ` +
    `transform="translate(${x2} ${y2}) rotate(${Math.round(turn)})" ` +
    `d="${isPlain ? "M0 0L-9 -5L-9 5Z" : "M1 0L-12 -7.5L-12 7.5Z"}"/>`;
  if (isPlain) return `<path class="${kind}" ${path}/>\n${head}`;
  return `<linearGradient id="g${index}" gradientUnits="userSpaceOnUse" ` +
    `x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}">` +
    `<stop class="${from.role}"/><stop offset="1" class="${to.role}"/>` +
    `</linearGradient>\n<g stroke="url(#g${index})">` +
    `<path class="hull" ${path}/><path class="core" ${path}/></g>` +
    (kind === "link" ? `\n${head}` : "");
}

/** Each picture's text by its name. */
export async function pictureTexts(): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for await (const { name } of Deno.readDir(PLACE)) {
    if (!name.endsWith(".txt")) continue;
    const text = await Deno.readTextFile(new URL(name, PLACE));
    found.set(name.slice(0, -".txt".length), text);
  }
  return found;
}

/** Each file, as it is to be, by its place below the root. */
export async function pictures(): Promise<ReadonlyMap<string, string>> {
  const css = await Deno.readTextFile(new URL("style.css", PLACE));
  return new Map(
    [...await pictureTexts()].map(([name, text]) => [
      `docs/pictures/${name}.svg`,
      drawPicture(readPicture(text), css),
    ]),
  );
}
