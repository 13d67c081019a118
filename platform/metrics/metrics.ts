/**
 * Counters, gauges and histograms, and their text for Prometheus.
 *
 * The rules that scrapers of Konnectivity rely on: HELP and TYPE exactly as
 * given; a family with labels shows a series only after its first use, and no
 * family is shown without series.
 *
 * Looking a series up costs a map access; the hot path keeps the `Series`.
 *
 * @module
 */

/** One number that a scrape shows. */
export class Series {
  value = 0;

  /** Adds `amount`, 1 by default. */
  add(amount = 1): void {
    this.value += amount;
  }

  set(value: number): void {
    this.value = value;
  }
}

/** An observation by which a bucket can be looked into. */
interface Exemplar {
  /** The trace in which it was observed. */
  readonly traceId: string;
  readonly value: number;
  /** Milliseconds since 1970. */
  readonly atMs: number;
}

/** What observations fell into which bucket. */
export class Histogram {
  readonly #counts: number[];
  #sum = 0;
  #count = 0;
  /** The newest of each bucket, followed by the last one's; usually absent. */
  #exemplars: (Exemplar | undefined)[] | undefined;

  /** @param bounds Upper bounds, ascending, without infinity. */
  constructor(private readonly bounds: readonly number[]) {
    this.#counts = bounds.map(() => 0);
  }

  /**
   * @param value In the unit of the name, usually seconds.
   * @param traceId The trace of the observation, if it is sampled.
   */
  observe(value: number, traceId?: string): void {
    this.#sum += value;
    this.#count++;
    const { bounds } = this;
    let at = 0;
    while (at < bounds.length && !(value <= bounds[at]!)) at++;
    if (at < bounds.length) this.#counts[at]!++;
    if (traceId === undefined) return;
    this.#exemplars ??= [];
    this.#exemplars[at] = { traceId, value, atMs: Date.now() };
  }

  /** Whether there is anything to look into. */
  get hasExemplars(): boolean {
    return this.#exemplars !== undefined;
  }

  /** The number of observations. */
  get count(): number {
    return this.#count;
  }

  /** Adds what `other`, which has the same bounds, has observed. */
  add(other: Histogram): void {
    this.#sum += other.#sum;
    this.#count += other.#count;
    for (const [at, count] of other.#counts.entries()) {
      this.#counts[at]! += count;
    }
  }

  /**
   * Lines of this histogram; buckets are cumulative.
   *
   * @param labels Its own, such as `code="200"`.
   */
  *lines(
    name: string,
    labels = "",
    format: MetricFormat = "text",
  ): Iterable<string> {
    const before = labels === "" ? "" : `${labels},`;
    const whole = labels === "" ? "" : `{${labels}}`;
    const behind = (index: number) =>
      format === "text" ? "" : exemplarText(this.#exemplars?.[index]);
    let total = 0;
    for (const [index, bound] of this.bounds.entries()) {
      total += this.#counts[index]!;
      const le = `${before}le="${asGo(bound)}"`;
      yield `${name}_bucket{${le}} ${total}${behind(index)}`;
    }
    const last = behind(this.bounds.length);
    yield `${name}_bucket{${before}le="+Inf"} ${this.#count}${last}`;
    yield `${name}_sum${whole} ${this.#sum}`;
    yield `${name}_count${whole} ${this.#count}`;
  }
}

/** A value, and those of its labels. */
export type Sample = readonly [labelValues: readonly string[], value: number];

/** One metric of many things of a kind: its type, name, help text and value. */
export type ComputedFamily<T> = readonly [
  kind: "counter" | "gauge",
  name: string,
  help: string,
  value: (of: T) => number,
];

/** A histogram, and the values of its labels. */
export type HistogramSample = readonly [
  labelValues: readonly string[],
  histogram: Histogram,
];

function sampleLine(
  name: string,
  labels: readonly string[],
  values: readonly string[],
  value: number,
): string {
  return `${name}{${labelText(labels, values)}} ${value}`;
}

function labelText(
  labels: readonly string[],
  values: readonly string[],
): string {
  return labels
    .map((label, index) => `${label}="${escapeLabel(values[index] ?? "")}"`)
    .join(",");
}

/** All of one family, distinguished by the values of its labels. */
export class Labelled<One> {
  /** By the labels' values; the text is made at a scrape. */
  readonly #all = new Map<
    string,
    readonly [values: readonly string[], one: One]
  >();

  constructor(private readonly make: () => One) {}

  /** The one with these label values, in the order of the labels. */
  with(...values: readonly string[]): One {
    const key = values.length === 1 ? values[0]! : values.join("\0");
    const known = this.#all.get(key);
    if (known !== undefined) return known[1];
    const one = this.make();
    this.#all.set(key, [values, one]);
    return one;
  }

  samples(): Iterable<readonly [values: readonly string[], one: One]> {
    return this.#all.values();
  }
}

export type LabelledSeries = Labelled<Series>;
export type LabelledHistogram = Labelled<Histogram>;

/** `counter` only grows. Upstream has gauges and histograms besides. */
type Kind = "counter" | "gauge" | "histogram";

interface Family {
  readonly name: string;
  readonly help: string;
  readonly kind: Kind;
  /** `undefined`: nothing yet. */
  lines(format: MetricFormat): Iterable<string | undefined>;
}

/** Prometheus' own text, or OpenMetrics, which has exemplars. */
export type MetricFormat = "text" | "openmetrics";

/** All families of a process. */
export class MetricRegistry {
  readonly #families: Family[] = [];
  readonly #histograms: Histogram[] = [];

  /** A single series, shown from the start. */
  series(kind: "counter" | "gauge", name: string, help: string): Series {
    const series = new Series();
    this.#add(kind, name, help, () => [`${name} ${series.value}`]);
    return series;
  }

  /** A single series whose value is computed at each scrape. */
  computed(
    kind: "counter" | "gauge",
    name: string,
    help: string,
    value: () => number,
  ): void {
    this.#add(kind, name, help, () => [`${name} ${value()}`]);
  }

  /**
   * Families with the same labels, of the same things.
   *
   * @param samples A sample of each thing, with its `value`.
   */
  computedFamilies<T>(
    prefix: string,
    labels: readonly string[],
    families: readonly ComputedFamily<T>[],
    samples: (value: (of: T) => number) => Iterable<Sample | undefined>,
  ): void {
    for (const [kind, name, help, value] of families) {
      const all = () => samples(value);
      this.computedLabelled(kind, `${prefix}${name}`, help, labels, all);
    }
  }

  /** Series with labels; each is shown after its first use. */
  labelled(
    kind: "counter" | "gauge",
    name: string,
    help: string,
    labels: readonly string[],
  ): LabelledSeries {
    const all = new Labelled(() => new Series());
    this.#add(kind, name, help, function* () {
      for (const [values, { value }] of all.samples()) {
        yield sampleLine(name, labels, values, value);
      }
    });
    return all;
  }

  /**
   * Series with labels whose values are computed at each scrape.
   *
   * @param values Of one set of labels the first counts. `undefined` is none: it lets others
   *   have their turn while many are looked at.
   */
  computedLabelled(
    kind: "counter" | "gauge",
    name: string,
    help: string,
    labels: readonly string[],
    values: () => Iterable<Sample | undefined>,
  ): void {
    this.#add(kind, name, help, function* () {
      const shown = new Set<string>();
      for (const sample of values()) {
        // With two values of one series, scrapers refuse the whole answer.
        const key = sample?.[0].join("\0");
        if (key !== undefined && shown.has(key)) continue;
        if (key !== undefined) shown.add(key);
        yield sample && sampleLine(name, labels, ...sample);
      }
    });
  }

  /**
   * Histograms with labels that are computed at each scrape, in the same way.
   */
  computedHistograms(
    name: string,
    help: string,
    labels: readonly string[],
    histograms: () => Iterable<HistogramSample | undefined>,
  ): void {
    this.#add("histogram", name, help, function* () {
      for (const sample of histograms()) {
        if (sample === undefined) yield undefined;
        else {
          const [values, histogram] = sample;
          yield* histogram.lines(name, labelText(labels, values));
        }
      }
    });
  }

  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    const histogram = new Histogram(bounds);
    this.#histograms.push(histogram);
    this.#add(
      "histogram",
      name,
      help,
      (format) => histogram.lines(name, "", format),
    );
    return histogram;
  }

  /** Histograms with a label; each is shown after its first use. */
  labelledHistogram(
    name: string,
    help: string,
    label: string,
    bounds: readonly number[],
  ): LabelledHistogram {
    const all = new Labelled(() => new Histogram(bounds));
    this.computedHistograms(name, help, [label], () => all.samples());
    return all;
  }

  /** Everything in the text format 0.0.4. */
  expose(): string {
    return [...this.pieces()].join("");
  }

  /** Whether OpenMetrics says more than Prometheus' own text. */
  get hasExemplars(): boolean {
    return this.#histograms.some(({ hasExemplars }) => hasExemplars);
  }

  /** The same, made while it is sent; an empty piece is a pause. */
  *pieces(format: MetricFormat = "text"): Iterable<string> {
    for (const { help, lines, ...family } of this.#families) {
      const { name, kind } = format === "text" ? family : this.#open(family);
      let head = `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${kind}\n`;
      for (const line of lines(format)) {
        if (line === undefined) {
          yield "";
          continue;
        }
        yield `${head}${line}\n`;
        head = "";
      }
    }
    if (format === "openmetrics") yield "# EOF\n";
  }

  /**
   * In OpenMetrics `_total` is not part of a counter's name, and every counter
   * has it. Konnectivity's counters do not, and some share their name with a
   * gauge.
   */
  #open(
    { name, kind }: Pick<Family, "name" | "kind">,
  ): { readonly name: string; readonly kind: Kind | "unknown" } {
    if (kind !== "counter") return { name, kind };
    const base = name.endsWith("_total") ? name.slice(0, -"_total".length) : "";
    const isFree = base !== "" &&
      this.#families.every((family) => family.name !== base);
    return isFree ? { name: base, kind } : { name, kind: "unknown" };
  }

  #add(
    kind: Kind,
    name: string,
    help: string,
    lines: Family["lines"],
  ): void {
    if (this.#families.some((family) => family.name === name)) {
      throw new TypeError(`Cannot add metric ${name}: it is there already`);
    }
    this.#families.push({ name, help, kind, lines });
  }
}

/** The content type that goes with {@linkcode MetricRegistry.expose}. */
export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The one of `pieces("openmetrics")`. */
export const OPENMETRICS_CONTENT_TYPE =
  "application/openmetrics-text; version=1.0.0; charset=utf-8";

function exemplarText(exemplar: Exemplar | undefined): string {
  if (exemplar === undefined) return "";
  const { traceId, value, atMs } = exemplar;
  return ` # {trace_id="${traceId}"} ${value} ${atMs / 1_000}`;
}

/** A small number as Go prints it (`1e-06`): label values are compared as text. */
function asGo(value: number): string {
  if (value >= 1e-4) return String(value);
  return value.toExponential().replace(/e-([0-9])$/, "e-0$1");
}

function escapeLabel(value: string): string {
  return escapeHelp(value).replaceAll('"', '\\"');
}

function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
