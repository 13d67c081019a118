/**
 * `/debug/pprof/*` of a process that may be profiled: V8's profiles at the
 * paths of Go's. The format is not pprof's; docs/operations.md names programs
 * that read it.
 *
 * @module
 */

import { plain, type Routes } from "./http_endpoints.ts";
import type { HttpPeer } from "./http_port.ts";
import { jsonPieces, slicedText } from "./sliced_text.ts";
import type { Session } from "node:inspector";
import process from "node:process";
import { messageOf } from "../../platform/errors/error_code.ts";

/** As in Go's pprof. */
const SECONDS_DEFAULT = 30;
const SECONDS_MAX = 300;

const INDEX = `Profiles of this process, in V8's formats (not pprof's):
/debug/pprof/profile?seconds=30  CPU, a .cpuprofile: Chrome DevTools, speedscope
/debug/pprof/heap                writes a .heapsnapshot beside the process, says where
`;

/** Only where they are switched on, and only on the admin port. */
export function profileRoutes(profiler: Profiler = new Profiler()): Routes {
  const index = () => plain(200, INDEX);
  return {
    "/debug/pprof": index,
    "/debug/pprof/": index,
    "/debug/pprof/profile": (url, { method }, peer) =>
      cpu(profiler, url, method, peer),
    "/debug/pprof/heap": (_url, { method }, peer) =>
      heap(profiler, method, peer),
  };
}

function cpu(
  profiler: Profiler,
  url: URL,
  method: string,
  peer: HttpPeer | undefined,
): Response {
  const said = url.searchParams.get("seconds") ?? `${SECONDS_DEFAULT}`;
  const seconds = Number(said);
  if (!/^[0-9]{1,3}$/.test(said) || seconds < 1 || seconds > SECONDS_MAX) {
    return plain(
      400,
      `Cannot profile: wanted seconds=1 to ${SECONDS_MAX}\n`,
    );
  }
  if (method === "HEAD") return plain(200, "");
  if (profiler.isBusy) {
    return plain(409, "Cannot profile: another profile is being taken\n");
  }
  let profile: Promise<CpuProfile>;
  try {
    profile = profiler.cpu(seconds * 1000);
    // The client may have gone; else it is the answer that fails.
    profile.catch(() => {});
  } catch (error) {
    return failed("profile", error);
  }
  peer?.mayTake?.(seconds * 1000);
  return new Response(laterJson(profile), {
    headers: {
      "content-type": "application/json",
      "content-disposition": 'attachment; filename="tunnel.cpuprofile"',
    },
  });
}

/** A browser's HEAD, or its preview, must not stop the process. */
function heap(
  profiler: Profiler,
  method: string,
  peer: HttpPeer | undefined,
): Response {
  if (method === "HEAD") return plain(200, "");
  try {
    const path = profiler.heap();
    peer?.mayTake?.(HEAP_MS);
    return plain(200, `${path}\n`);
  } catch (error) {
    return failed("write a heap snapshot", error);
  }
}

/** The process is blocked meanwhile, and would then find the deadline over. */
const HEAP_MS = 60_000;

/** A value that comes later, as JSON in slices. */
function laterJson(
  value: Promise<unknown>,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;
  return new ReadableStream({
    async pull(controller) {
      reader ??= slicedText(jsonPieces(await value)).getReader();
      const { done, value: chunk } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(chunk);
    },
    cancel: () => reader?.cancel(),
  }, { highWaterMark: 0 });
}

function failed(what: string, error: unknown): Response {
  const reason = messageOf(error);
  return plain(500, `Cannot ${what}: ${reason}\n`);
}

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
   * Stops the process while the file is written. Only this process's user can
   * read the file, because it contains keys and traffic.
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
