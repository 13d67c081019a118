/**
 * The addresses of a server, running or not: whether each is free, the
 * server's, or another program's. Nothing is opened for that.
 *
 * @module
 */

import { failed, type Finding, fine, skipped } from "../walk/path_walk.ts";
import { isHere } from "../walk/probes.ts";
import { openLibc } from "../../../net/libc/libc.ts";
import {
  ownerWords,
  type PortOwner,
  portOwner,
} from "../../../net/libc/port_owner.ts";
import { readProcFile } from "../../../net/libc/proc_files.ts";
import { messageOf, quietly } from "../../../platform/errors/error_code.ts";
import { hostPort, portOf } from "../../../proto/peer/host_port.ts";
import type { ServerOptions } from "../../../server/options.ts";

/** The server that runs with the flags that are looked at, if one does. */
interface PortSubject {
  readonly running:
    | {
      readonly pid: number;
      /** Its addresses by name, from its own answer. */
      readonly addresses: ReadonlyMap<string, string>;
    }
    | undefined;
  /** Flags on the command line: the running server may have others. */
  readonly given: ReadonlySet<string>;
}

/** One place where the server listens. */
export interface Listen {
  readonly name: string;
  readonly flag: string;
  readonly bindFlag: string;
  readonly hostname: string;
  readonly port: number;
  /** Used in place of a port. */
  readonly path?: string;
  /** A file that is in the way there is removed at the start. */
  readonly removesFile?: boolean;
}

/** All of them. */
export function listensOf(options: ServerOptions): readonly Listen[] {
  const { frontend, agents, admin, health, kubelet } = options;
  const tcp = (
    name: string,
    flag: string,
    address: { readonly hostname: string; readonly port: number },
  ): Listen => ({
    name,
    flag: `--${flag}-port`,
    bindFlag: `--${flag}-bind-address`,
    hostname: address.hostname,
    port: address.port,
  });
  return [
    tcp("agents", "agent", agents.address),
    frontend.listen.kind === "unix"
      ? {
        ...tcp("frontend", "server", { hostname: "", port: 0 }),
        path: frontend.listen.path,
        removesFile: frontend.listen.deleteExisting === "files",
      }
      : tcp("frontend", "server", frontend.listen.address),
    tcp("admin", "admin", admin),
    tcp("health", "health", health),
    ...kubelet === undefined
      ? []
      : [tcp("kubelet", "kubelet", kubelet.address)],
  ];
}

/** Whether it is free, or the server's. */
export function lookAtPort(
  listen: Listen,
  subject: PortSubject,
): Finding | undefined {
  const { hostname, port, path, flag, bindFlag } = listen;
  const actual = subject.running?.addresses.get(listen.name);
  if (actual !== undefined && !subject.given.has(flag.replace(/^--/, ""))) {
    // It was started with its own flags, and answers: ours do not matter.
    if (path === undefined || !subject.given.has("uds-name")) {
      return fine(`the server listens on ${actual}`);
    }
  }
  if (path !== undefined) return lookAtPath(listen, path, subject);
  if (port === 0) return undefined;
  if (hostname !== "" && !isHere(hostname)) {
    return failed(
      "TUN904",
      `this machine has no address ${hostname}`,
      `correct ${bindFlag} (ip address shows what there is)`,
    );
  }
  const owner = portOwner(port);
  const running = subject.running !== undefined;
  if (owner === undefined) {
    if (actual !== undefined && portOf(actual) === port) {
      return fine(`the server listens on ${actual}`);
    }
    if (running && listen.name === "agents") {
      return failed(
        "TUN904",
        `process ${subject.running!.pid} is a server of this state, and does ` +
          `not listen on ${hostPort(hostname || "*", port)}`,
        "give its own flags to doctor; for a second server, stop that server " +
          "or name another --state-dir",
      );
    }
    return running
      ? failed(
        "TUN904",
        `process ${subject.running!.pid} runs, and nothing listens on ` +
          hostPort(hostname || "*", port),
        "see its log: it may be starting, draining, or have another " + flag,
      )
      : openLibc() === undefined
      ? skipped("this machine does not tell who listens there")
      : fine(`port ${port} is free`);
  }
  if (isOurs(owner, subject)) {
    return fine(`port ${port} is the server's (process ${owner.pid ?? "?"})`);
  }
  const isServer = /(^| )server( |$)/.test(owner.command ?? "");
  return failed(
    "TUN904",
    `port ${port}, for ${listen.name}, is taken by ${ownerWords(owner)}`,
    isServer
      ? "it is a tunnel server with other flags: give its --state-dir and " +
        `ports to doctor, or give this server another ${flag}`
      : `end it, or give another ${flag}`,
  );
}

/** Workers share the ports of their parent, and have its program's name. */
function isOurs({ pid }: PortOwner, { running }: PortSubject): boolean {
  if (running === undefined) return false;
  if (pid === undefined || pid === running.pid) return true;
  const stat = readProcFile(`/proc/${pid}/stat`) ?? "";
  // After the name, which may contain any character: state, parent.
  const [, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(parent) === running.pid;
}

/** @returns `undefined`: a socket can be made there. */
function folderFault(path: string): Finding | undefined {
  const folder = path.slice(0, path.lastIndexOf("/")) || "/";
  if (quietly(() => Deno.statSync(folder))?.isDirectory) return undefined;
  return failed(
    "TUN904",
    `there is no directory ${folder} for the socket ${path}`,
    "make it, or name another path with --uds-name",
  );
}

function lookAtPath(
  { removesFile }: Listen,
  path: string,
  { running, given }: PortSubject,
): Finding {
  try {
    const { isSocket, isFile } = Deno.lstatSync(path);
    if (isFile && removesFile === true && running === undefined) {
      return fine(`${path} is a file, which the server removes when it starts`);
    }
    if (isSocket !== true) {
      return failed(
        "TUN904",
        `${path} is no socket, so no server can listen there`,
        "move the file away, or name another path with --uds-name",
      );
    }
    return fine(`${path} is there${running === undefined ? ", unused" : ""}`);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) {
      return skipped(`${path}: ${messageOf(error)}`);
    }
    if (running === undefined) {
      // In the state directory the first start creates its folder.
      return given.has("uds-name")
        ? folderFault(path) ?? fine(`${path} is free`)
        : fine(`${path} is free`);
    }
    return failed(
      "TUN904",
      `process ${running.pid} runs, and its socket ${path} is gone: callers ` +
        "cannot come in",
      "restart the server; something removes files there",
    );
  }
}
