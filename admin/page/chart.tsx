/**
 * Lines over the last hour, drawn by uPlot on a canvas; the present values
 * stand beside them as text, and the last minute as a table for users who want
 * or need one.
 *
 * @module
 */

import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { HistorySample } from "../../proto/admin/list_answers.ts";
import type { Traffic } from "../../proto/admin/status_answer.ts";
import { HISTORY_SECONDS, type Sample, samples } from "./server_state.ts";
import { colour, isDark } from "./theme.ts";
import { clockText } from "./units.ts";

/** One line. */
export interface Line {
  readonly title: string;
  /** A colour of the style sheet. */
  readonly colour: string;
  readonly of: keyof HistorySample & keyof Traffic;
}

/** The content of the drawing. */
interface ChartProps {
  readonly title: string;
  readonly lines: readonly Line[];
  format(value: number): string;
}

const HEIGHT = 150;
const SHOWN_SECONDS_MIN = 30;
/** Rows of the table: the last minute, every ten seconds. */
const TABLE_STEP_SECONDS = 10;
const TABLE_ROWS = 6;

/** See the module description. */
export function Chart({ title, lines, format }: ChartProps): VNode {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => draw(box.current!, lines, format), [isDark.value]);
  const last = samples.value.at(-1);
  const now = lines.map((line) => ({
    ...line,
    text: last === undefined ? "–" : textOf(last[line.of], format),
  }));
  return (
    <figure class="chart">
      <figcaption>
        <h2>{title}</h2>
        <ul class="legend">
          {now.map(({ title, colour, text }) => (
            <li key={title}>
              <span class={`key is-${colour}`} aria-hidden="true" />
              {title} <strong>{text}</strong>
            </li>
          ))}
        </ul>
      </figcaption>
      <div
        class="plot"
        ref={box}
        role="img"
        aria-label={`${title}; now: ${
          now.map(({ title, text }) => `${title} ${text}`).join(", ")
        }`}
      />
      <details>
        <summary>{title} as a table</summary>
        <ChartTable {...{ title, lines, format }} />
      </details>
    </figure>
  );
}

function ChartTable({ title, lines, format }: ChartProps): VNode {
  const rows: Sample[] = [];
  for (const sample of samples.value.toReversed()) {
    const next = rows.at(-1)?.seconds ?? Infinity;
    if (next - sample.seconds >= TABLE_STEP_SECONDS) rows.push(sample);
    if (rows.length === TABLE_ROWS) break;
  }
  return (
    <table class="plain">
      <caption class="unseen">{title}</caption>
      <thead>
        <tr>
          <th scope="col">Time</th>
          {lines.map(({ title }) => (
            <th key={title} scope="col" class="is-number">{title}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((sample) => (
          <tr key={sample.seconds}>
            <th scope="row">{clockText(sample.seconds * 1000)}</th>
            {lines.map((line) => (
              <td key={line.title} class="is-number">
                {textOf(sample[line.of], format)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function textOf(
  value: number | undefined,
  format: ChartProps["format"],
): string {
  return value === undefined ? "–" : format(value);
}

/** @returns What ends it. */
function draw(
  box: HTMLElement,
  lines: readonly Line[],
  format: ChartProps["format"],
): () => void {
  const plot = new uPlot(
    optionsOf(box.clientWidth, lines, format),
    dataOf(samples.peek(), lines),
    box,
  );
  const stop = samples.subscribe((known) => {
    if (document.hidden) return;
    plot.setData(dataOf(known, lines), false);
    const last = known.at(-1)?.seconds ?? Date.now() / 1000;
    // A page that was just opened has little to show: it takes the whole width.
    const seconds = Math.min(
      HISTORY_SECONDS,
      Math.max(SHOWN_SECONDS_MIN, last - (known[0]?.seconds ?? last)),
    );
    plot.setScale("x", { min: last - seconds, max: last });
  });
  const observer = new ResizeObserver(() =>
    plot.setSize({ width: box.clientWidth, height: HEIGHT })
  );
  observer.observe(box);
  return () => {
    stop();
    observer.disconnect();
    plot.destroy();
  };
}

function dataOf(
  known: readonly Sample[],
  lines: readonly Line[],
): uPlot.AlignedData {
  return [
    known.map(({ seconds }) => seconds),
    ...lines.map((line) => known.map((sample) => sample[line.of] ?? null)),
  ];
}

function optionsOf(
  width: number,
  lines: readonly Line[],
  format: ChartProps["format"],
): uPlot.Options {
  const axis = {
    stroke: colour("faint"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: colour("line"), width: 1 },
    ticks: { show: false },
  };
  return {
    width,
    height: HEIGHT,
    // What the pointer shows is in the text beside it.
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: {
      x: { time: true, auto: false },
      y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.15 : 10] },
    },
    series: [
      {},
      ...lines.map((line, index) => ({
        label: line.title,
        stroke: colour(line.colour),
        width: 1.5,
        points: { show: false },
        ...(index === 0 ? { fill: colour(`${line.colour}-wash`) } : {}),
      })),
    ],
    axes: [
      { ...axis, size: 24, space: 70, values: "{HH}:{mm}:{ss}" },
      {
        ...axis,
        size: 64,
        space: 36,
        values: (_plot: uPlot, marks: number[]) =>
          marks.map((mark) => mark === 0 ? "0" : format(mark)),
      },
    ],
  };
}
