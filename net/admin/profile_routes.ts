/**
 * `/debug/pprof/*` of a process that may be profiled: V8's profiles at the
 * paths of Go's. The format is not pprof's; docs/operations.md names programs
 * that read it.
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import { type CpuProfile, Profiler } from "../../platform/process/profiler.ts";
import { plain, type Routes } from "./http_endpoints.ts";
import type { HttpPeer } from "./http_port.ts";
import { jsonPieces, slicedText } from "./sliced_text.ts";

/** As Go's pprof. */
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

/** The process stands still meanwhile, and then finds the deadline over. */
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
