/**
 * Counters, gauges and histograms, and their text form.
 *
 * Prometheus text format 0.0.4, as Go's client library writes it: families by
 * name, HELP and TYPE once each, labels escaped. A vector (a metric with
 * labels) appears only once a series of it was used, and so does a metric made
 * with `lazy`, because dashboards and tests of Konnectivity tell "never" from
 * "zero".
 *
 * @module
 */

/** What {@linkcode MetricsRegistry.write} is served as. */
export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Values of labels, in the order in which their names were given. */
type LabelValues = readonly string[];

/** A number that only grows. */
export interface Counter {
  add(amount?: number): void;
}

/** A number that goes up and down. */
export interface Gauge {
  set(value: number): void;
  add(amount?: number): void;
}

/** A distribution. */
export interface Histogram {
  observe(value: number): void;
}

/** Metrics told apart by label values. */
export interface Vector<Metric> {
  /** The series with these values, made at its first use. */
  with(...values: LabelValues): Metric;
}

/** Name and meaning of a metric. */
export interface MetricOptions {
  readonly name: string;
  readonly help: string;
}

interface Family {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** The lines of all series; none when nothing was used yet. */
  lines(): string[];
}

/** See the module description. One per process, or one per test. */
export class MetricsRegistry {
  readonly #families = new Map<string, Family>();
  readonly #collectors: (() => void)[] = [];

  /** @param options.lazy Absent until its first use. */
  counter(options: MetricOptions & { lazy?: boolean }): Counter {
    return this.#single(options, "counter", () => new Cell());
  }

  /** @param options.lazy Absent until its first use. */
  gauge(options: MetricOptions & { lazy?: boolean }): Gauge {
    return this.#single(options, "gauge", () => new Cell());
  }

  /** @param options.buckets Upper bounds, ascending, without +Inf. */
  histogram(
    options: MetricOptions & { buckets: readonly number[]; lazy?: boolean },
  ): Histogram {
    return this.#single(
      options,
      "histogram",
      () => new Distribution(options.buckets),
    );
  }

  /** A counter with labels. */
  counterVector(
    options: MetricOptions & { labels: readonly string[] },
  ): Vector<Counter> {
    return this.#vector(options, "counter", () => new Cell());
  }

  /** A gauge with labels. */
  gaugeVector(
    options: MetricOptions & { labels: readonly string[] },
  ): Vector<Gauge> {
    return this.#vector(options, "gauge", () => new Cell());
  }

  /** A histogram with labels. */
  histogramVector(
    options: MetricOptions & {
      labels: readonly string[];
      buckets: readonly number[];
    },
  ): Vector<Histogram> {
    return this.#vector(
      options,
      "histogram",
      () => new Distribution(options.buckets),
    );
  }

  /** Calls `collect` before each `write`, to set what is only then known. */
  collector(collect: () => void): void {
    this.#collectors.push(collect);
  }

  /** All metrics as text. */
  write(): string {
    for (const collect of this.#collectors) collect();
    const lines: string[] = [];
    for (const name of [...this.#families.keys()].sort()) {
      const family = this.#families.get(name)!;
      const series = family.lines();
      if (series.length === 0) continue;
      lines.push(
        `# HELP ${name} ${escapeHelp(family.help)}`,
        `# TYPE ${name} ${family.type}`,
        ...series,
      );
    }
    return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
  }

  #single<Metric extends Series>(
    options: MetricOptions & { lazy?: boolean },
    type: Family["type"],
    make: () => Metric,
  ): Metric {
    const metric = make();
    this.#add(options, type, () => {
      if (options.lazy && !metric.isUsed) return [];
      return metric.lines(options.name, []);
    });
    return metric;
  }

  #vector<Metric extends Series>(
    options: MetricOptions & { labels: readonly string[] },
    type: Family["type"],
    make: () => Metric,
  ): Vector<Metric> {
    const { name, labels } = options;
    const series = new Map<string, { values: LabelValues; metric: Metric }>();
    this.#add(
      options,
      type,
      () =>
        [...series.values()].flatMap(({ values, metric }) =>
          metric.lines(
            name,
            labels.map((label, index) => pair(label, values[index]!)),
          )
        ),
    );
    return {
      with: (...values) => {
        if (values.length !== labels.length) {
          throw new TypeError(
            `Cannot label ${name} with ${values.length} values: it has ` +
              `${labels.length} labels`,
          );
        }
        const key = values.length === 1 ? values[0]! : values.join("\u0000");
        let entry = series.get(key);
        if (entry === undefined) {
          series.set(key, entry = { values, metric: make() });
        }
        return entry.metric;
      },
    };
  }

  #add(
    options: MetricOptions,
    type: Family["type"],
    lines: () => string[],
  ): void {
    if (this.#families.has(options.name)) {
      throw new TypeError(`Cannot register ${options.name} twice`);
    }
    this.#families.set(options.name, { type, help: options.help, lines });
  }
}

interface Series {
  readonly isUsed: boolean;
  lines(name: string, labels: readonly string[]): string[];
}

class Cell implements Series, Gauge {
  #value = 0;
  isUsed = false;

  set(value: number): void {
    this.#value = value;
    this.isUsed = true;
  }

  add(amount = 1): void {
    this.#value += amount;
    this.isUsed = true;
  }

  lines(name: string, labels: readonly string[]): string[] {
    return [line(name, labels, this.#value)];
  }
}

class Distribution implements Series, Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = Array<number>(bounds.length + 1).fill(0);
  }

  get isUsed(): boolean {
    return this.#counts.some((count) => count > 0);
  }

  observe(value: number): void {
    const index = this.#bounds.findIndex((bound) => value <= bound);
    this.#counts[index < 0 ? this.#bounds.length : index]!++;
    this.#sum += value;
  }

  lines(name: string, labels: readonly string[]): string[] {
    let count = 0;
    const buckets = this.#counts.map((own, index) => {
      count += own;
      const bound = formatValue(this.#bounds[index] ?? Infinity);
      return line(`${name}_bucket`, [...labels, pair("le", bound)], count);
    });
    return [
      ...buckets,
      line(`${name}_sum`, labels, this.#sum),
      line(`${name}_count`, labels, count),
    ];
  }
}

function line(name: string, labels: readonly string[], value: number): string {
  const set = labels.length === 0 ? "" : `{${labels.join(",")}}`;
  return `${name}${set} ${formatValue(value)}`;
}

function pair(label: string, value: string): string {
  const escaped = value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")
    .replaceAll('"', '\\"');
  return `${label}="${escaped}"`;
}

function escapeHelp(help: string): string {
  return help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function formatValue(value: number): string {
  if (value === Infinity) return "+Inf";
  if (value === -Infinity) return "-Inf";
  return String(value);
}
