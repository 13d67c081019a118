/**
 * The metrics of several workers as those of one program.
 *
 * Counters and histograms are added, and never go back: what a worker had
 * counted stays when another one takes its place, or a scraper would take the
 * rest for new. Gauges are added, but for those of which all workers show the
 * same.
 *
 * @module
 */

/** Gauges of what every worker has, and counts, for itself: the greatest. */
const GREATEST: readonly RegExp[] = [
  // Agents, and servers, are linked to every worker.
  /_ready_backends$/,
  /_server_connections$/,
  /_server_count$/,
  /_duplicate_identities$/,
  /_peers$/,
  /_node_online$/,
  /_round_trip_seconds$/,
  // The catalog.
  /_(services|ports|endpoints|resources|unserved|version)$/,
  /_is_out$/,
  // States, 1 or 0.
  /_(info|stale|up|connected|synced)$/,
];

/** The least: what began, or ends, first. */
const LEAST: readonly RegExp[] = [
  /_timestamp_seconds$/,
  /_start_time_seconds$/,
];

/** One family of the text format 0.0.4. */
interface Family {
  /** HELP and TYPE, as they are. */
  readonly head: string;
  readonly kind: string;
  /** By name and labels, in their order. */
  readonly series: Map<string, number>;
}

type Families = Map<string, Family>;

/** What one place of a worker has counted before its present one. */
export class MergedMetrics {
  /** By worker: the last that it said, and which process it was. */
  readonly #last = new Map<
    number,
    { readonly pid: number; readonly families: Families }
  >();
  /** Of processes that have ended. */
  readonly #past: Families = new Map();

  /** @param text What this process of a worker says now. */
  take(worker: number, pid: number, text: string): void {
    const last = this.#last.get(worker);
    if (last !== undefined && last.pid !== pid) this.#bury(last.families);
    this.#last.set(worker, { pid, families: parse(text) });
  }

  /** Of all, those that did not answer with what they said last. */
  text(): string {
    const sum: Families = new Map();
    for (const { families } of this.#last.values()) add(sum, families);
    add(sum, this.#past);
    return [...sum.values()].map(({ head, series }) =>
      head + [...series].map(([key, value]) => `${key} ${value}\n`).join("")
    ).join("");
  }

  /** Of one worker, without labels; as it said last. */
  valueOf(worker: number, name: string): number | undefined {
    return this.#last.get(worker)?.families.get(name)?.series.get(name);
  }

  #bury(families: Families): void {
    const counted = [...families].filter(([, { kind }]) => kind !== "gauge");
    add(this.#past, new Map(counted));
  }
}

function add(sum: Families, families: Families): void {
  for (const [name, { head, kind, series }] of families) {
    let family = sum.get(name);
    if (family === undefined) {
      sum.set(name, family = { head, kind, series: new Map() });
    }
    const join = kind === "gauge" ? joinOf(name) : plus;
    for (const [key, value] of series) {
      const known = family.series.get(key);
      family.series.set(key, known === undefined ? value : join(known, value));
    }
  }
}

function plus(one: number, other: number): number {
  return one + other;
}

function joinOf(name: string): (one: number, other: number) => number {
  if (LEAST.some((pattern) => pattern.test(name))) return Math.min;
  return GREATEST.some((pattern) => pattern.test(name)) ? Math.max : plus;
}

/** Our own program has written it. */
function parse(text: string): Families {
  const families: Families = new Map();
  let help = "";
  let family: Family | undefined;
  for (const line of text.split("\n")) {
    if (line.startsWith("# HELP ")) {
      help = `${line}\n`;
    } else if (line.startsWith("# TYPE ")) {
      const [, , name = "", kind = ""] = line.split(" ");
      family = { head: `${help}${line}\n`, kind, series: new Map() };
      families.set(name, family);
    } else if (line !== "") {
      const space = line.lastIndexOf(" ");
      family?.series.set(line.slice(0, space), Number(line.slice(space + 1)));
    }
  }
  return families;
}
