import { assert, assertEquals } from "@std/assert";
import {
  type Line,
  type Picture,
  pictureTexts,
  type Point,
  readPicture,
  type Rect,
  type Words,
} from "./pictures.ts";

const ROOT = new URL("../", import.meta.url);

/** Readers see a picture as wide as this; a wider one would be made smaller. */
const WIDTH_MAX = 838;

/** Between words and the edge of their box. */
const MARGIN = 4;

/** In em, of DejaVu Sans, the widest of the fonts that a system may take. */
function widthOf({ text, style }: Words): number {
  const size = style === "name" ? 15 : 13;
  if (style === "typed") return text.length * 0.61 * size;
  const isBold = style === "name" || style === "place";
  const em = [...text].reduce((sum, letter) => {
    if (/[ iljtfrI.,:;'1()|-]/.test(letter)) return sum + 0.41;
    if (/[A-HJ-LN-VX-Z]/.test(letter)) return sum + 0.74;
    return sum + (/[mwMW]/.test(letter) ? 0.99 : 0.635);
  }, 0);
  return em * size * (isBold ? 1.14 : 1);
}

function around(words: Words): Rect {
  const w = widthOf(words);
  const x = words.anchor === "start" ? words.x : words.x - w / 2;
  return { x, y: words.y - 12, w, h: 15 };
}

function isInside(inner: Rect, outer: Rect, margin: number): boolean {
  return inner.x >= outer.x + margin && inner.y >= outer.y + margin &&
    inner.x + inner.w <= outer.x + outer.w - margin &&
    inner.y + inner.h <= outer.y + outer.h - margin;
}

function overlaps(a: Rect, b: Rect): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h &&
    b.y < a.y + a.h;
}

/** Points of its curve, close to each other. */
function pointsOf({ bends }: Line): Point[] {
  const PIECES = 60;
  return Array.from({ length: PIECES + 1 }, (_, index) => {
    const t = index / PIECES;
    const [a, b, c, d] = [
      (1 - t) ** 3,
      3 * t * (1 - t) ** 2,
      3 * t * t * (1 - t),
      t ** 3,
    ];
    const at = (axis: 0 | 1) =>
      a * bends[0][axis] + b * bends[1][axis] + c * bends[2][axis] +
      d * bends[3][axis];
    return [at(0), at(1)];
  });
}

function crosses(line: Line, { x, y, w, h }: Rect): boolean {
  return pointsOf(line).some(([atX, atY]) =>
    atX > x && atX < x + w && atY > y && atY < y + h
  );
}

/** Pairs of different things. */
function pairs<T>(things: readonly T[]): [T, T][] {
  return things.flatMap((a, index) =>
    things.slice(index + 1).map((b): [T, T] => [a, b])
  );
}

/** What a reader would stumble over. */
function faults({ size, zones, boxes, lines, words }: Picture): string[] {
  const found: string[] = [];
  const see = (isWrong: boolean, fault: string) => {
    if (isWrong) found.push(fault);
  };
  const nameOf = (box: Rect) =>
    words.find((each) => each.box === box)?.text ?? "a zone";
  for (const each of words) {
    const fits = isInside(around(each), each.box ?? size, MARGIN);
    see(!fits, `"${each.text}" leaves ${each.box ? "its box" : "the picture"}`);
    if (each.style === "place") {
      const isIn = zones.some((zone) => isInside(around(each), zone, MARGIN));
      see(!isIn, `"${each.text}" leaves its zone`);
    }
    for (const box of boxes) {
      const isOn = each.box === undefined && overlaps(around(each), box);
      see(isOn, `"${each.text}" is on ${nameOf(box)}`);
    }
    for (const line of lines) {
      see(crosses(line, around(each)), `"${each.text}" is on a line`);
    }
  }
  for (const [a, b] of pairs(words)) {
    const isOn = a.box !== b.box && overlaps(around(a), around(b));
    see(isOn, `"${a.text}" is on "${b.text}"`);
  }
  for (const [a, b] of pairs([...boxes, ...zones])) {
    const isNested = isInside(a, b, 0) || isInside(b, a, 0);
    const isZone = zones.some((each) => each === a || each === b);
    see(
      overlaps(a, b) && !(isZone && isNested),
      `${nameOf(a)} overlaps ${nameOf(b)}`,
    );
  }
  for (const box of [...boxes, ...zones]) {
    see(!isInside(box, size, 0), `${nameOf(box)} leaves the picture`);
  }
  for (const line of lines) {
    for (const box of boxes) {
      const isEnd = box === line.from || box === line.to;
      see(!isEnd && crosses(line, box), `A line crosses ${nameOf(box)}`);
    }
  }
  return found;
}

Deno.test("pictures: words are in their boxes, and nothing is on something else", async () => {
  const texts = await pictureTexts();
  assert(texts.size >= 9);
  for (const [name, text] of texts) {
    const picture = readPicture(text);
    assertEquals(faults(picture), [], name);
    assert(picture.size.w <= WIDTH_MAX, name);
  }
});

Deno.test("pictures: what is wrong in one is seen", () => {
  const wrong = readPicture([
    "size 40x20",
    "zone 0,0 12x5: here is a zone",
    "box a caller 2,4 10x4: a name that is too long",
    "box b server 6,6 10x4: b",
    "box c agent 25,4 10x4: c",
    "box m agent 20,4 3x4: m",
    "arrow a.right@10 -> c.left@10",
    "note 30,6: on c",
    "note 38,15: outside",
  ].join("\n"));
  assertEquals(faults(wrong), [
    '"here is a zone" leaves its zone',
    '"a name that is too long" leaves its box',
    '"on c" is on c',
    '"outside" leaves the picture',
    '"c" is on "on c"',
    "a name that is too long overlaps b",
    "a name that is too long overlaps a zone",
    "A line crosses m",
  ]);
});

Deno.test("pictures: each is in a page, is said in words, and has its colours", async () => {
  const css = await Deno.readTextFile(new URL("docs/pictures/style.css", ROOT));
  const docs = [...Deno.readDirSync(new URL("docs/", ROOT))]
    .filter(({ name }) => name.endsWith(".md")).map(({ name }) =>
      `docs/${name}`
    );
  const pages = await Promise.all(
    ["README.md", ...docs].map((page) =>
      Deno.readTextFile(new URL(page, ROOT))
    ),
  );
  const shown = new Set(
    pages.flatMap((
      page,
    ) => [
      ...page.matchAll(
        /!\[([^\]]{20,})\]\((?:docs\/)?pictures\/([\w-]+)\.svg\)/g,
      ),
    ]).map(([, , name]) => name!),
  );
  const texts = await pictureTexts();
  assertEquals([...shown].sort(), [...texts.keys()].sort());
  for (const [name, text] of texts) {
    const { title, desc, boxes, lines } = readPicture(text);
    assert(title !== "" && desc.length > 40, name);
    for (const { role } of boxes) assert(css.includes(`rect.${role} `), role);
    for (const { kind, from, to } of lines) {
      if (kind !== "link" && kind !== "tube") continue;
      for (const { role } of [from, to]) {
        assert(css.includes(`stop.${role} `), role);
      }
      assert(kind === "tube" || css.includes(`.head.${to.role} `), to.role);
    }
  }
});
