/**
 * The metrics of several workers as one text: each series with the label
 * `worker`, those of one family together, as scrapers want them.
 *
 * @module
 */

/** What one process says, in Prometheus' text format 0.0.4. */
export interface WorkerMetrics {
  /** Absent: it is the parent, whose series have no such label. */
  readonly worker?: number;
  /** Our own program has written it: HELP and TYPE stand before each family. */
  readonly text: string;
}

/** See the module description. */
export function joinedMetrics(all: readonly WorkerMetrics[]): string {
  const families = new Map<string, string[]>();
  for (const { worker, text } of all) {
    let help = "";
    let lines: string[] = [];
    for (const line of text.split("\n")) {
      if (line.startsWith("# HELP ")) {
        help = line;
      } else if (line.startsWith("# TYPE ")) {
        const [, , name = ""] = line.split(" ");
        lines = families.get(name) ?? [help, line];
        families.set(name, lines);
      } else if (line !== "") {
        lines.push(worker === undefined ? line : labelled(line, worker));
      }
    }
  }
  return [...families.values()].flat().map((line) => `${line}\n`).join("");
}

function labelled(series: string, worker: number): string {
  const end = series.search(/[{ ]/);
  const [name, rest] = [series.slice(0, end), series.slice(end)];
  const label = `worker="${worker}"`;
  return rest.startsWith("{")
    ? `${name}{${label},${rest.slice(1)}`
    : `${name}{${label}}${rest}`;
}
