/**
 * One source's place in the catalog: takes its reports, keeps its state, serves
 * its copy while it is away at a start, counts, and has it read all again from
 * time to time.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { Tools } from "../../platform/program/tools.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import type { Code } from "../../proto/codes/codes.ts";
import { type Outcome, SourceEntries } from "./changes.ts";
import type {
  CatalogChange,
  CatalogPart,
  Sink,
  Source,
} from "./model/source.ts";

/** Entries that one change names in the log. */
const NAMED_MAX = 5;

/** How long a source may be silent before its copy is served. */
export const COPY_SILENT_MS = 2_000;

/** Each wait is drawn between the two: sources and proxies spread out. */
export const RECONCILE_MS_MIN = 600_000;
export const RECONCILE_MS_MAX = 1_800_000;

/** What can be seen of a source from outside. */
export interface SourceStatus {
  readonly name: string;
  /** Whether it has ever said everything there is. */
  readonly isSynced: boolean;
  /** Why it is not being followed now. */
  readonly problem: string | undefined;
  readonly services: number;
  readonly endpoints: number;
  /** Entries that were new, other, or gone. */
  readonly changes: number;
  /** Entries that were not as they must be. */
  readonly refused: number;
  /** Times that it could not be followed. */
  readonly failures: number;
  /** Entries of which a change had been missed until all was read again. */
  readonly driftRepaired: number;
}

/** What an input takes from the catalog, and tells it. */
interface SourceInputContext extends Tools {
  /** Uniform in [0, 1). */
  readonly random: () => number;
  onChanged(touched: ReadonlySet<string>): void;
  onSynced(): void;
}

/** Whose state the catalog has. */
type State =
  /** The source has sent nothing yet, and its copy may be served. */
  | {
    readonly kind: "waiting";
    readonly timer: Timer;
    readonly kept: Promise<CatalogPart | undefined>;
  }
  /** The copy is served; what the source says is gathered until it is whole. */
  | { readonly kind: "recalled"; readonly coming: SourceEntries }
  /** The source's own. */
  | { readonly kind: "live" };

const LIVE: State = { kind: "live" };

export class SourceInput implements Sink {
  readonly entries = new SourceEntries();
  #state: State = LIVE;
  #isSynced = false;
  #isStopped = false;
  /** Until all is read again. */
  #timer: Timer | undefined;
  #problem: string | undefined;
  readonly #counts = { changes: 0, refused: 0, failures: 0, driftRepaired: 0 };

  constructor(
    readonly source: Source,
    private readonly context: SourceInputContext,
  ) {}

  get isSynced(): boolean {
    return this.#isSynced;
  }

  get status(): SourceStatus {
    return {
      name: this.source.name,
      isSynced: this.#isSynced,
      problem: this.#problem,
      services: this.entries.services.size,
      endpoints: this.entries.endpointCount,
      ...this.#counts,
    };
  }

  start(): void {
    const { copy } = this.source;
    if (copy !== undefined) {
      const timer = this.context.timers.after(
        COPY_SILENT_MS,
        () => this.failed("it has sent nothing yet"),
      );
      this.#state = { kind: "waiting", timer, kept: copy.open(this.entries) };
    }
    this.source.start(this);
    this.#reconcileLater();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    if (this.#state.kind === "waiting") this.#state.timer.cancel();
    this.#state = LIVE;
    await this.source.stop();
    await this.source.copy?.close();
  }

  /**
   * A change that was not reported would stay missed for as long as the process
   * lives: that is how proxies have sent clients to endpoints that were gone for
   * hours. What differs is put right and counted (`driftRepaired`); anything but
   * 0 there is a defect of a watch.
   */
  #reconcileLater(): void {
    if (this.#isStopped) return;
    const { timers, random } = this.context;
    const delayMs = RECONCILE_MS_MIN +
      random() * (RECONCILE_MS_MAX - RECONCILE_MS_MIN);
    this.#timer = timers.after(delayMs, () => {
      // One that takes long is not asked again meanwhile.
      const done = this.source.reconcile()
        .finally(() => this.#reconcileLater());
      unawaited("catalog", done);
    });
  }

  set(part: CatalogPart): void {
    this.#take(this.#told.set(part));
  }

  change(change: CatalogChange): void {
    this.#take(this.#told.change(change));
  }

  repair(part: CatalogPart): void {
    const outcome = this.#told.set(part);
    if (outcome.count > 0) {
      this.#counts.driftRepaired += outcome.count;
      const some = [...outcome.touched].slice(0, NAMED_MAX);
      const more = some.length < outcome.touched.size ? " …" : "";
      this.#warn(
        `Had missed changes of ${outcome.count} entries until all was read ` +
          `again: ${some.join(", ")}${more}`,
        "TUN701",
      );
    }
    this.#take(outcome);
  }

  /** What the source has said. */
  get #told(): SourceEntries {
    return this.#state.kind === "recalled" ? this.#state.coming : this.entries;
  }

  refused(problem: string): void {
    this.#counts.refused++;
    this.#warn(`Cannot use an entry: ${problem}`, "TUN124");
  }

  synced(): void {
    const state = this.#state;
    this.#state = LIVE;
    if (state.kind === "waiting") state.timer.cancel();
    // Entries that only the copy has are gone.
    if (state.kind === "recalled") this.set(partOf(state.coming));
    this.#follows();
    this.#keep();
  }

  failed(problem: string, retryMs?: number): void {
    const state = this.#state;
    if (state.kind !== "waiting") return this.#noteFailure(problem, retryMs);
    state.timer.cancel();
    const recalling = state.kept.then((kept) => {
      const isStill = this.#state === state;
      if (isStill && kept !== undefined) this.#recall(kept);
      if (isStill) this.#noteFailure(problem, retryMs);
    });
    unawaited("catalog", recalling);
  }

  #recall(kept: CatalogPart): void {
    const coming = new SourceEntries();
    coming.set(partOf(this.entries));
    this.set(kept);
    this.#state = { kind: "recalled", coming };
    this.#follows();
  }

  #follows(): void {
    const { copy, name } = this.source;
    if (copy !== undefined) copy.isServed = this.#state.kind === "recalled";
    if (this.#problem !== undefined) {
      this.context.log.event("The source is followed again", {
        source: name,
      }, `source ${name}`);
    }
    this.#problem = undefined;
    this.#isSynced = true;
    this.context.onSynced();
  }

  #noteFailure(words: string, retryMs: number | undefined): void {
    const problem = this.#state.kind === "recalled"
      ? this.source.copy!.inOldWords(words)
      : words;
    this.#counts.failures++;
    // Repeating the same words every few seconds would inform no reader.
    if (problem === this.#problem) return;
    this.#problem = problem;
    const kept = this.#isSynced
      ? "; what was known stays in use"
      : "; nothing is known of it yet";
    this.context.log.warn(`${problem}${kept}`, {
      code: "TUN701",
      source: this.source.name,
      retryMs: retryMs && Math.round(retryMs),
    }, `source ${this.source.name}`);
  }

  /** A first list may come in parts: half of one must not be the copy. */
  #keep(): void {
    if (this.#state.kind === "live") this.source.copy?.changed();
  }

  #warn(message: string, code: Code): void {
    this.context.log.warn(message, { code, source: this.source.name });
  }

  #take({ touched, count, refused }: Outcome): void {
    this.#counts.refused += refused.length;
    for (const problem of refused.slice(0, NAMED_MAX)) {
      this.#warn(`Cannot use an entry: ${problem}`, "TUN124");
    }
    const more = refused.length - NAMED_MAX;
    if (more > 0) this.#warn(`Cannot use ${more} more entries`, "TUN124");
    if (this.#state.kind === "recalled") return;
    this.#counts.changes += count;
    if (touched.size > 0) this.context.onChanged(touched);
    this.#keep();
  }
}

function partOf({ services, endpoints }: SourceEntries): CatalogPart {
  return {
    services: [...services.values()],
    endpoints: [...endpoints]
      .map(([service, endpoints]) => ({ service, endpoints })),
  };
}
