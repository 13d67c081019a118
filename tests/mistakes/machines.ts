/**
 * Machines that do not let the program do what it must: disks that are full or
 * read-only, ports that want a right, limits that are too low.
 *
 * They need root, or a kernel that gives everybody a mount namespace; where
 * that is not so, only the limits are tried.
 *
 * @module
 */

import { ANY_SERVER, type Mistake, QUIET_AGENT } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";

/** See the module description. */
export function machineMistakes(stage: MistakeStage): readonly Mistake[] {
  return [...Deno.uid() === 0 ? disks(stage) : [], ...limits(stage)];
}

/** Runs the program with another file system at `path`. */
function mounted(path: string, mount: string): Pick<Mistake, "prefix"> {
  const script = `mount ${mount} && exec "$@"`;
  return { prefix: ["unshare", "-m", "sh", "-c", script, path] };
}

// deno-lint-ignore tunnel/function-length -- it is a table.
function disks(stage: MistakeStage): readonly Mistake[] {
  /** A file system of one page, which is taken. */
  const full = (path: string) =>
    mounted(
      path,
      `-t tmpfs -o size=4k none ${path} && head -c 4096 /dev/zero >${path}/full`,
    );
  const readOnly = (path: string) =>
    mounted(path, `--bind -o ro ${path} ${path}`);
  const state = stage.identity.stateDirectory;
  const [join, serve] = ["join", "serve"].map((name) => stage.directory(name));
  return [
    {
      what: "joining on a disk that is full",
      args: [
        "join",
        stage.token,
        `--server=${stage.server}`,
        "--node=full",
        `--state-dir=${join}/state`,
      ],
      exit: 1,
      says: /no space left|disk is full/i,
      next: new RegExp(join!),
      ...full(join!),
    },
    {
      what: "a server on a disk that is full",
      args: [...ANY_SERVER, `--state-dir=${serve}/state`],
      exit: 1,
      says: /no space left|disk is full/i,
      next: new RegExp(serve!),
      ...full(serve!),
    },
    {
      what: "a token on a disk that is read-only",
      args: ["token", "create", `--state-dir=${state}`],
      exit: 1,
      says: /read-only/i,
      next: new RegExp(state),
      ...readOnly(state),
    },
    {
      what: "a server on a disk that is read-only",
      args: [...ANY_SERVER, `--state-dir=/sys/tunnel`],
      exit: 1,
      says: /\/sys\/tunnel/,
      next: /--state-dir|name another|run as/,
    },
    {
      what: "an agent on a disk that is read-only",
      args: [
        ...QUIET_AGENT,
        `--join=${stage.token}`,
        `--server=${stage.server}`,
        "--node=stuck",
        "--state-dir=/sys/tunnel",
      ],
      exit: 1,
      says: /\/sys\/tunnel/,
      next: /--state-dir|name another|run as/,
    },
    {
      what: "a port below 1024 without the right to it",
      args: [
        "server",
        "--agent-port=443",
        "--health-port=0",
        "--admin-port=0",
        `--state-dir=${stage.path("server")}`,
      ],
      exit: 1,
      says: /443/,
      next: /--agent-port|CAP_NET_BIND_SERVICE|root/,
      prefix: [
        "unshare",
        "-n",
        "setpriv",
        "--bounding-set=-net_bind_service",
        "--inh-caps=-net_bind_service",
      ],
    },
  ];
}

/** The packaged program refuses fewer; here the platform has them already. */
function limits(stage: MistakeStage): readonly Mistake[] {
  return [
    {
      what: "too few descriptors for a server",
      args: [
        ...ANY_SERVER,
        `--state-dir=${stage.path("server")}`,
      ],
      exit: "runs on",
      says: /descriptors|ulimit/,
      next: /ulimit|LimitNOFILE|raise/,
      prefix: ["sh", "-c", 'ulimit -n 64 && exec "$@"', "limit"],
    },
  ];
}
