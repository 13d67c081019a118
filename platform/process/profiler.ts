/**
 * Profiles of this process, by the runtime's own inspector, in process: nothing
 * listens for it.
 *
 * It refuses to know the client, and how the answer is sent.
 *
 * @module
 */

import process from "node:process";
import type { Session } from "node:inspector";

/** How often the profiler looks, in microseconds: Chrome's own choice. */
const SAMPLING_INTERVAL_US = 1_000;

/** Snapshots of this process that are left on the disk. */
export const HEAP_FILES_MAX = 2;

/** V8's, as in a `.cpuprofile` file. */
export interface CpuProfile {
  readonly nodes: readonly unknown[];
  readonly startTime: number;
  readonly endTime: number;
  readonly samples?: readonly number[];
  readonly timeDeltas?: readonly number[];
}

/** One CPU profile at a time. */
export class Profiler {
  #isBusy = false;
  readonly #heapFiles: string[] = [];

  /** Whether a CPU profile is being taken. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /**
   * Begins at once.
   *
   * @throws {Error} At once, if the platform does not allow it.
   */
  cpu(durationMs: number): Promise<CpuProfile> {
    if (this.#isBusy) throw new TypeError("Cannot profile: it is under way");
    // Loaded when wanted: most processes are never profiled.
    const { Session } = process.getBuiltinModule("node:inspector");
    const session = new Session();
    session.connect();
    this.#isBusy = true;
    const profile = sample(session, durationMs).finally(() => {
      this.#isBusy = false;
      session.disconnect();
    });
    return profile;
  }

  /**
   * Stops the process for as long as it takes. The file is for this process's
   * user alone, because keys and what is under way are in it.
   *
   * @returns Its path.
   * @throws {Error} If it cannot be written.
   */
  heap(): string {
    const { writeHeapSnapshot } = process.getBuiltinModule("node:v8");
    // Made first: V8 would make it for everybody to read.
    const path = Deno.makeTempFileSync({
      prefix: "tunnel-",
      suffix: ".heapsnapshot",
    });
    this.#heapFiles.push(path);
    writeHeapSnapshot(path);
    while (this.#heapFiles.length > HEAP_FILES_MAX) {
      try {
        Deno.removeSync(this.#heapFiles.shift()!);
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
    }
    return path;
  }
}

async function sample(
  session: Session,
  durationMs: number,
): Promise<CpuProfile> {
  const ask = (method: string, params: Record<string, unknown> = {}) =>
    new Promise<unknown>((resolve, reject) =>
      session.post(
        method,
        params,
        (error: Error | null, result?: unknown) =>
          error === null ? resolve(result) : reject(error),
      )
    );
  await ask("Profiler.enable");
  await ask("Profiler.setSamplingInterval", { interval: SAMPLING_INTERVAL_US });
  await ask("Profiler.start");
  // A process that wants to end does not wait for its profile.
  await new Promise((wake) => Deno.unrefTimer(setTimeout(wake, durationMs)));
  const { profile } = await ask("Profiler.stop") as { profile: CpuProfile };
  return profile;
}
