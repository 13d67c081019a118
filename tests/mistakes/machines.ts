/**
 * Machines that do not let the program do what it must: disks that are full or
 * read-only, ports that want a right, limits that are too low.
 *
 * They need root, or a kernel that gives everybody a mount namespace; where
 * that is not so, only the limits are tried.
 *
 * @module
 */

import { ANY_SERVER, ending, type Mistake, QUIET_AGENT } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";
import { limitedTo, onFullDisk, onReadOnlyDisk } from "./surroundings.ts";

/** See the module description. */
export function machineMistakes(stage: MistakeStage): readonly Mistake[] {
  return [...Deno.uid() === 0 ? disks(stage) : [], ...limits(stage)];
}

/** A file system of one page. */
const PAGE_KIB = 4;

// deno-fmt-ignore: the columns are the point.
function disks(stage: MistakeStage): readonly Mistake[] {
  const state = stage.identity.stateDirectory;
  const [join, serve] = ["join", "serve"].map((name) => stage.directory(name)) as [string, string];
  const server = ending(1, (words) => [...ANY_SERVER, ...words]);
  const unwritable = [/\/sys\/tunnel/, /--state-dir|name another|run as/] as const;
  const joining = [stage.token, `--server=${stage.server}`, "--node=full", `--state-dir=${join}/state`];
  const stuck = [`--join=${stage.token}`, `--server=${stage.server}`, "--node=stuck", "--state-dir=/sys/tunnel"];
  const privileged = ["--agent-port=443", "--health-port=0", "--admin-port=0", `--state-dir=${stage.path("server")}`];
  const full = /no space left|disk is full/i;
  return [
    ending(1)("joining on a disk that is full",
      ["join", ...joining], full, new RegExp(join), onFullDisk(join, PAGE_KIB)),
    server("a server on a disk that is full",
      `--state-dir=${serve}/state`, full, new RegExp(serve), onFullDisk(serve, PAGE_KIB)),
    ending(1)("a token on a disk that is read-only",
      ["token", "create", stage.asked], /read-only/i, new RegExp(state), onReadOnlyDisk(state)),
    server("a server on a disk that is read-only", "--state-dir=/sys/tunnel", ...unwritable),
    ending(1)("an agent on a disk that is read-only", [...QUIET_AGENT, ...stuck], ...unwritable),
    ending(1)("a port below 1024 without the right to it",
      ["server", ...privileged], /443/, /--agent-port|CAP_NET_BIND_SERVICE|root/,
      { prefix: ["unshare", "-n", "setpriv", "--bounding-set=-net_bind_service", "--inh-caps=-net_bind_service"] }),
  ];
}

/** The packaged program refuses fewer; here the platform has them already. */
function limits(stage: MistakeStage): readonly Mistake[] {
  return [
    ending("runs on")(
      "too few descriptors for a server",
      [...ANY_SERVER, `--state-dir=${stage.path("server")}`],
      /descriptors|ulimit/,
      /ulimit|LimitNOFILE|raise/,
      { prefix: limitedTo(64) },
    ),
  ];
}
