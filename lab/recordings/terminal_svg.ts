/**
 * What a program wrote to a terminal, as a drawing of text: colours stay, a reader
 * can select and search it, and no script runs in it.
 *
 * @module
 */

/** What is drawn. */
export interface Recording {
  /** For who does not see it. */
  readonly title: string;
  /** As it was typed. */
  readonly command: string;
  /** With the colours that it was written with. */
  readonly output: string;
  /** The lines of it that answer the question. */
  readonly isAnswer: (line: string) => boolean;
}

interface Piece {
  readonly text: string;
  readonly style: string;
}

const [LINE, COLUMN, MARGIN, TOP] = [18, 7.83, 14, 34];

/** Select Graphic Rendition (ECMA-48 §8.3.117), as far as `page.ts` writes it. */
const STYLES: Readonly<Record<string, string>> = {
  "1": "b",
  "2": "d",
  "31": "r",
  "32": "g",
  "33": "y",
};

/** As fits on a dark terminal; each is readable on it (WCAG AA). */
const CSS = `text{font:13px ui-monospace,Menlo,Consolas,monospace;` +
  `fill:#d8dee4;white-space:pre}.b{font-weight:700}.d{fill:#9aa5b1}` +
  `.r{fill:#ff8a80}.g{fill:#7ee2a0}.y{fill:#ffd479}.a{fill:#24405f}` +
  `@media (prefers-reduced-motion:no-preference){` +
  `.o{animation:i .2s 1s both}.a{animation:i .4s 2s both}` +
  `@keyframes i{from{opacity:0}}}`;

/** See the module description. */
export function terminalSvg(recording: Recording): string {
  const { title, command, output, isAnswer } = recording;
  const lines = output.replaceAll("\r", "").trimEnd().split("\n");
  const columns = Math.max(...lines.map((line) => plain(line).length), 60);
  const width = Math.ceil(columns * COLUMN + 2 * MARGIN);
  const height = TOP + (lines.length + 2) * LINE + MARGIN;
  const at = (row: number) => TOP + row * LINE;
  const band = (row: number) =>
    `<rect class="a" x="6" y="${at(row) - 13}" width="${width - 12}" ` +
    `height="${LINE}"/>`;
  const rows = lines.map((line, index) => ({ line, row: index + 1 }));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" ` +
    `height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${CSS}</style>`,
    `<rect width="100%" height="100%" rx="8" fill="#14181d"/>`,
    ...rows.filter(({ line }) => isAnswer(plain(line)))
      .map(({ row }) => band(row)),
    `<text x="${MARGIN}" y="${at(0)}"><tspan class="g">$</tspan> ` +
    `${escaped(command)}</text>`,
    `<g class="o">`,
    ...rows.filter(({ line }) => line !== "").map(({ line, row }) =>
      `<text x="${MARGIN}" y="${at(row)}">${
        pieces(line).map(drawn).join("")
      }</text>`
    ),
    "</g>",
    "</svg>",
  ].join("\n") + "\n";
}

/** Without colours. */
export function plain(line: string): string {
  // deno-lint-ignore no-control-regex -- that is what they are.
  return line.replaceAll(/\x1b\[[0-9;]*m/g, "");
}

function pieces(line: string): readonly Piece[] {
  const found: Piece[] = [];
  let style = "";
  // deno-lint-ignore no-control-regex -- that is what they are.
  for (const part of line.split(/(\x1b\[[0-9;]*m)/)) {
    // deno-lint-ignore no-control-regex -- that is what they are.
    const codes = /^\x1b\[([0-9;]*)m$/.exec(part)?.[1];
    if (codes === undefined) {
      if (part !== "") found.push({ text: part, style });
      continue;
    }
    const known = codes.split(";").flatMap((code) => STYLES[code] ?? []);
    style = known.join(" ");
  }
  return found;
}

function drawn({ text, style }: Piece): string {
  return style === ""
    ? escaped(text)
    : `<tspan class="${style}">${escaped(text)}</tspan>`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}

/** The lines that a drawing shows. */
export function textOf(svg: string): readonly string[] {
  return [...svg.matchAll(/<text [^>]*>(.*)<\/text>/g)].map(([, inner]) =>
    inner!.replaceAll(/<[^>]*>/g, "").replaceAll("&lt;", "<")
      .replaceAll("&gt;", ">").replaceAll("&amp;", "&")
  );
}
