/**
 * What the agent that runs with an identity says of itself, over its own admin
 * API: a second process with that identity would look like a copy of it.
 *
 * @module
 */

import { adminClient, AdminError } from "../../client/admin/admin_client.ts";
import { failed, fine, skipped, warned } from "../../client/doctor/faults.ts";
import type { Finding, Hop } from "../../client/doctor/path_walk.ts";
import { ADMIN_SOCKET } from "../../net/admin/admin_api.ts";
import { codeOf } from "../../platform/errors/error_code.ts";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { StatusAnswer } from "../../proto/admin/status_answer.ts";
import { isCode } from "../../proto/codes/codes.ts";

/** Its answer costs it nothing. */
const ANSWER_MS = 1_500;

/** Its socket is there, and nobody listens behind it. */
const GONE: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOENT"]);

/** @param root Where the agent keeps its identity. */
export function runningAgentHop(root: string): Hop {
  return {
    name: "agent",
    isIndependent: true,
    deadlineMs: ANSWER_MS,
    look: () => look(root),
    late: failed(
      "TUN507",
      "the agent that runs with this identity does not answer: it stands still",
      "see its process (ps -o pid,stat,wchan -C tunnel); continue or restart " +
        "it: systemctl restart tunnel-agent",
    ),
  };
}

async function look(root: string): Promise<Finding> {
  const path = `${root}/${ADMIN_SOCKET}`;
  const client = adminClient("agent", { kind: "unix", path });
  try {
    return describe(await client.get<StatusAnswer>(ADMIN_PATHS.status));
  } catch (error) {
    if (!(error instanceof AdminError)) throw error;
    if (GONE.has(codeOf(error.cause)) || !isSocket(path)) return notRunning();
    return skipped(error.message);
  } finally {
    client.close();
  }
}

function notRunning(): Finding {
  return warned(
    "TUN402",
    "no agent runs here with this identity, so the node is linked to nobody",
    "start it: systemctl start tunnel-agent, or tunnel agent",
  );
}

function describe({ program, links = [], warnings }: StatusAnswer): Finding {
  const linked = links.filter(({ state }) => state === "linked");
  const servers = new Set(linked.map(({ peer }) => peer)).size;
  const runs = `process ${program.pid} runs, version ${program.version}`;
  const worst = warnings.find(({ severity }) => severity !== "notice");
  if (worst !== undefined) {
    const code = worst.code ?? "";
    return warned(
      isCode(code) ? code : "TUN402",
      `${runs}, and says: ${worst.message}`,
      "tunnel status --agent local shows all of it",
    );
  }
  if (linked.length > 0) {
    return fine(`${runs}, ${linked.length} links to ${servers} servers`);
  }
  const why = links.find(({ problem }) => problem !== undefined)?.problem;
  return warned(
    "TUN402",
    `${runs}, and has no link${why === undefined ? "" : `: ${why}`}`,
    "mend what is wrong on the way to the server: it tries again by itself",
  );
}

function isSocket(path: string): boolean {
  try {
    return Deno.statSync(path).isSocket === true;
  } catch {
    return false;
  }
}
