/**
 * `tunnel server`, in a process that says how long its event loop was not
 * available, and how much memory it has.
 *
 * Usage: `watched_server.ts PORT server FLAG…`. `GET /take` on that port of loopback is
 * a report since the last one; `/settle` collects garbage first.
 *
 * @module
 */

import { processContext } from "../../../cli/program/process_context.ts";
import { run } from "../../../cli/run.ts";
import { openLibc } from "../../../net/libc/libc.ts";
import { collectEverything } from "../../../platform/process/garbage.ts";
import { LoopWatch } from "../loop_watch.ts";

if (import.meta.main) {
  const [port, ...words] = Deno.args;
  const watch = new LoopWatch();
  Deno.serve({
    hostname: "127.0.0.1",
    port: Number(port),
    onListen() {},
  }, (request) => {
    if (request.url.endsWith("/settle")) {
      collectEverything();
      openLibc()?.malloc_trim(0n);
    }
    return Response.json(watch.take());
  });
  Deno.exit(await run(processContext(words)));
}
