/**
 * What a running program reports on its health port and over its admin API:
 * that it is ready, why it is not, and its warnings. A second process with an
 * agent's identity would look like a copy of it.
 *
 * @module
 */

import {
  type AdminAddress,
  AdminClient,
  AdminError,
} from "../ask/admin_client.ts";
import { isSocket, otherWorkersAt } from "../ask/worker_sockets.ts";
import {
  failed,
  type Finding,
  fine,
  type Hop,
  skipped,
  warned,
} from "./walk/path_walk.ts";
import { ADMIN_SOCKET } from "../../net/admin/admin_api.ts";
import { ADMIN_TOKEN_FILE, AdminToken } from "../../net/admin/admin_token.ts";
import { workerSocket } from "../../net/admin/own_group.ts";
import { isWildcard } from "../../net/libc/socket_address.ts";
import { RunningProcess } from "../../net/handover/running_process.ts";
import { codeOf, messageOf } from "../../platform/errors/error_code.ts";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { StatusAnswer } from "../../proto/admin/status_answer.ts";
import { knownCode } from "../../proto/codes/codes.ts";
import { hostOf, hostPort } from "../../proto/peer/host_port.ts";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import { lookAtDescriptors } from "./walk/room.ts";
import { HttpConnection } from "../../net/channel/http_connection.ts";
import { connectToHost } from "../../net/dial/connect_host.ts";
import { headBytes } from "../../net/http1/head.ts";
import { HAS_UNIX_SOCKETS } from "../../net/stream/socket_connect.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { clipped } from "../../proto/peer/quoted.ts";

/** Its answer costs it nothing. */
const ANSWER_MS = 1_500;

/** Its socket exists, and no process listens on it. */
const GONE: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOENT"]);

/** Each of several workers; the first one alone when none runs. */
export function workersIn(root: string): readonly number[] {
  return [0, ...otherWorkersAt(`${root}/${ADMIN_SOCKET}`)];
}

/** How a program is found. */
interface Place {
  /** Where it keeps its socket and its tokens. */
  readonly root: string;
  /** Its admin port: it answers there alone where there are no sockets. */
  readonly port: number;
  /** Which one of several. */
  readonly worker?: number;
}

/** @returns `undefined`: none is there. */
function addressIn(
  { root, port, worker = 0 }: Place,
): AdminAddress | undefined {
  if (HAS_UNIX_SOCKETS) {
    const path = workerSocket(`${root}/${ADMIN_SOCKET}`, worker);
    return isSocket(path) ? { kind: "unix", path } : undefined;
  }
  const token = new AdminToken(`${root}/${ADMIN_TOKEN_FILE}`).value;
  return { kind: "tcp", host: "127.0.0.1", port, token };
}

/** @param place Where the agent keeps its identity. */
export function runningAgentHop(place: Place): Hop {
  const { worker = 0 } = place;
  return {
    name: worker === 0 ? "agent" : `agent worker ${worker}`,
    isIndependent: true,
    deadlineMs: ANSWER_MS,
    look: () => look(place),
    late: failed(
      "TUN507",
      "the agent that runs with this identity does not answer: it hangs",
      "see its process (ps -eo pid,stat,args | grep 'agent'); one that was " +
        "stopped (stat T) goes on by kill -CONT PID; else systemctl restart " +
        "tunnel-agent",
    ),
  };
}

/**
 * @param address The agent's address; the kernel tells its process, even in a
 *   container.
 */
export function agentDescriptorsHop(address: string): Hop {
  return {
    name: "descriptors",
    deadlineMs: ANSWER_MS,
    look: async () => {
      const pid = await pidOf(address);
      return pid === undefined ? undefined : lookAtDescriptors("agent", pid);
    },
    // Another hop has reported that it does not answer.
    late: skipped("the agent does not say which process it is"),
  };
}

async function pidOf(address: string): Promise<number | undefined> {
  try {
    const found = await RunningProcess.find(address);
    found?.close();
    return found === undefined || found.pid <= 0 ? undefined : found.pid;
  } catch {
    // There is none, or it is another user's: the agent's hop has reported
    // that.
    return undefined;
  }
}

/** A program's report about itself, or why it gives none; absent: none runs. */
async function statusAt(
  program: "agent" | "server",
  place: Place,
): Promise<StatusAnswer | AdminError | undefined> {
  const address = addressIn(place);
  if (address === undefined) return undefined;
  using client = new AdminClient(program, address);
  try {
    return await client.get<StatusAnswer>(ADMIN_PATHS.status);
  } catch (error) {
    if (error instanceof AdminError) return error;
    throw error;
  }
}

/** @returns `undefined`: no server answers. */
export async function runningServer(
  place: Place,
): Promise<StatusAnswer["program"] | undefined> {
  const status = await statusAt("server", place);
  return status instanceof AdminError ? undefined : status?.program;
}

/** The warnings of a running server. */
export async function lookAtRunningServer(
  place: Place,
): Promise<Finding | undefined> {
  const status = await statusAt("server", place);
  if (status === undefined) return undefined;
  if (status instanceof AdminError) return skipped(status.message);
  const { nodes, servers = [], program } = status;
  const bad = servers.find(({ problem }) => problem !== undefined);
  if (bad !== undefined) {
    return warned(
      "TUN802",
      `the server ${bad.id} at ${bad.address}: ${bad.problem}`,
      "run `tunnel doctor server` there; see that both name each other's " +
        "address with --advertise-address",
    );
  }
  const agents = program.addresses["agents"] ?? "";
  if (nodes?.online === 0 && isLoopbackHost(hostOf(agents))) {
    return warned(
      "TUN401",
      `no agent is linked, and the server listens for agents on ${agents}: ` +
        "only this machine reaches it",
      "start it without --agent-bind-address, or with an outer address",
    );
  }
  return warningIn(status, "server") ?? fine(
    `${nodes?.online ?? 0} nodes online, ${nodes?.offline ?? 0} offline, ` +
      `${servers.length} other servers`,
  );
}

/** The worst that a program says of itself. */
function warningIn(
  { warnings }: StatusAnswer,
  program: "agent" | "server",
): Finding | undefined {
  const worst = warnings.find(({ severity }) => severity !== "notice");
  if (worst === undefined) return undefined;
  return warned(
    knownCode(worst.code ?? "") ?? "TUN119",
    `it says: ${worst.message}`,
    program === "agent"
      ? "tunnel status --agent local shows all of it"
      : "tunnel status shows all of it",
  );
}

async function look(place: Place): Promise<Finding> {
  const status = await statusAt("agent", place);
  if (status === undefined) return notRunning();
  if (!(status instanceof AdminError)) return describe(status);
  const isGone = GONE.has(codeOf(status.cause));
  return isGone ? notRunning() : skipped(status.message);
}

function notRunning(): Finding {
  return warned(
    "TUN402",
    "no agent runs here with this identity, so the node has no link",
    "start it: systemctl start tunnel-agent, or tunnel agent",
  );
}

function describe(status: StatusAnswer): Finding {
  const { program, links = [] } = status;
  const linked = links.filter(({ state }) => state === "linked");
  const servers = new Set(linked.map(({ peer }) => peer)).size;
  const runs = `process ${program.pid} runs, version ${program.version}`;
  const warning = warningIn(status, "agent");
  if (warning !== undefined) return warning;
  if (linked.length > 0) {
    return fine(
      `${runs}, ${linked.length} links to ` +
        (servers === 1 ? "one server" : `${servers} servers`),
    );
  }
  const why = links.find(({ problem }) => problem !== undefined)?.problem;
  return warned(
    "TUN402",
    `${runs}, and has no link${why === undefined ? "" : `: ${why}`}`,
    "mend the fault on the way to the server: it tries again by itself",
  );
}

/** A health port answers at once, unless its program has stopped. */
const HEALTH_MS = 1_500;

/** Limit on peers' words. */
const WORDS_LENGTH_MAX = 200;

/** @param address Where it listens. */
export async function localHealth(
  { hostname, port }: { readonly hostname: string; readonly port: number },
  signal: AbortSignal,
): Promise<Finding | undefined> {
  if (port === 0) return undefined;
  const host = isWildcard(hostname) ? "127.0.0.1" : hostname;
  const where = hostPort(host, port);
  let text: string;
  try {
    text = await readiness(host, port, signal);
  } catch (error) {
    return unanswered(where, error);
  }
  const problems = [...text.matchAll(/^\[-\](.+)$/gm)].map(([, line]) => line!);
  const notes = [...text.matchAll(/^\[!\](.+)$/gm)].map(([, line]) => line!);
  const noAgent = problems.find((line) => line.startsWith("agent-connected"));
  if (noAgent !== undefined && problems.length === 1) {
    return warned(
      "TUN501",
      "the server runs, and no agent is linked to it",
      "run `tunnel doctor agent` on a node, or let one join: tunnel token " +
        "create",
    );
  }
  if (problems.length > 0) {
    return failed("TUN119", problems.join("; "), "see the program's log");
  }
  if (notes.length > 0) {
    return warned("TUN124", notes.join("; "), "see the program's log");
  }
  return fine(`${where} says ready`);
}

/** Over a socket of ours: the platform's `fetch` would ask a proxy for it. */
async function readiness(
  host: string,
  port: number,
  until: AbortSignal,
): Promise<string> {
  const signal = AbortSignal.any([until, AbortSignal.timeout(HEALTH_MS)]);
  const stream = await connectToHost(host, port, {
    timers: systemTimers,
    signal,
  });
  const connection = new HttpConnection(stream, (idle) => idle.close());
  const bytes = headBytes([
    "GET /readyz?verbose HTTP/1.1",
    `host: ${hostPort(host, port)}`,
  ]);
  const { body } = await connection.ask({ method: "GET", bytes, signal });
  return await new Response(body).text();
}

function unanswered(where: string, error: unknown): Finding {
  if (codeOf(error) === "ECONNREFUSED") {
    return failed(
      "TUN401",
      `the program runs, and no process listens on its health port ${where}`,
      "name the one that it was started with: --health-port",
    );
  }
  const isLate = error instanceof DOMException;
  return failed(
    "TUN421",
    `the program runs, and its health port ${where} does not answer` +
      (isLate
        ? ` within ${HEALTH_MS / 1_000} s`
        : `: ${clipped(messageOf(error), WORDS_LENGTH_MAX)}`),
    "it hangs (ps -o stat: T is stopped, D waits for a disk): " +
      "continue or restart it",
  );
}
