/**
 * `tunnel server` with the same flags, but every link begins near its last
 * stream id, so it is replaced after few conduits. A process of its own: the
 * product has no flag for this.
 *
 * Usage: `short_links_server.ts CONDUITS-PER-LINK [FLAGS OF tunnel server]`
 *
 * @module
 */

import { showServer } from "../../admin/server/show_server.ts";
import { processContext } from "../../cli/program/process_context.ts";
import { serverCommand } from "../../cli/server/command.ts";
import { UINT31_MAX } from "../../proto/frames/frame.ts";
import { STREAM_IDS_RESERVED } from "../../proto/streams/stream_table.ts";
import { startServer } from "../../server/server.ts";

const [conduitsPerLink, ...flags] = Deno.args;
// The client of a connection has the odd ids, so each conduit takes two.
const firstStreamId = UINT31_MAX -
  2 * (STREAM_IDS_RESERVED + Number(conduitsPerLink));

const command = serverCommand((options, log) => {
  const agents = { ...options.agents, firstStreamId };
  return startServer({ ...options, agents }, log, showServer);
});
Deno.exit(await command.run(processContext(flags)));
