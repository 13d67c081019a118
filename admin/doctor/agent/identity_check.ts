/**
 * Looks at the identity that a node has joined with, as its agent would find it,
 * and says what keeps the agent from it. Writes nothing: looking at a directory
 * that is not there does not make it.
 *
 * @module
 */

import { failed, type Finding, fine, warned } from "../walk/path_walk.ts";
import { spanOf } from "../walk/tls_fault.ts";
import { messageOf } from "../../../platform/errors/error_code.ts";
import { systemProblem } from "../../../platform/files/file_error.ts";
import { PrivateFileError } from "../../../platform/files/private_files.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import {
  type AgentIdentityFiles,
  AgentState,
  hasJoined,
} from "../../../agent/identity/agent_state.ts";

/** What was found, and the identity if it is of use. */
interface IdentityCheck {
  readonly finding: Finding;
  readonly identity?: AgentIdentityFiles;
  /** Its own certificate can be shown now. */
  readonly isShowable?: boolean;
}

const JOIN =
  "`tunnel token create` on the server prints the line to type here " +
  "(tunnel join TOKEN --server HOST:8091)";

/**
 * @param root Where the agent keeps its identity.
 * @param nowMs Milliseconds since 1970.
 */
export async function checkIdentity(
  root: string,
  nowMs: number,
): Promise<IdentityCheck> {
  const absent = absence(root);
  if (absent !== undefined) return { finding: absent };
  let identity: AgentIdentityFiles | undefined;
  try {
    identity = await (await AgentState.open(root)).read();
  } catch (error) {
    if (!(error instanceof PrivateFileError)) throw error;
    return { finding: unusable(root, error.message) };
  }
  if (identity === undefined) return { finding: missing(root) };
  const { isShowable, finding } = validity(identity, nowMs);
  return { finding, identity, isShowable };
}

/** Why there is no identity at all, if there is none. */
function absence(root: string): Finding | undefined {
  let names: readonly string[];
  try {
    if (!Deno.statSync(root).isDirectory) {
      return failed(
        "TUN314",
        `${root} is no directory, so there is no identity in it`,
        "name the agent's directory with --state-dir",
      );
    }
    names = [...Deno.readDirSync(root)].map(({ name }) => name);
    if (hasJoined(root)) return undefined;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return missing(root);
    return forbidden(root, messageOf(error), systemProblem(error));
  }
  if (!names.includes("key.pem")) return missing(root);
  return failed(
    "TUN309",
    `joining began in ${root} and has not ended: there is a key and no ` +
      "node.json; the node waits for approval, or its token was refused",
    "`tunnel node list` on the server says whether it is pending, and `tunnel " +
      "node approve NAME` lets it in; else join again with a new token",
  );
}

function missing(root: string): Finding {
  return failed(
    "TUN309",
    `there is no identity in ${root}: this node has not joined`,
    JOIN,
  );
}

function forbidden(root: string, message: string, problem: string): Finding {
  return failed(
    "TUN122",
    problem.startsWith("permission denied")
      ? `${root} is another user's: permission denied`
      : message,
    `run as its owner: sudo tunnel doctor agent --state-dir ${root}`,
  );
}

function unusable(root: string, message: string): Finding {
  if (/permission denied|belongs to user/.test(message)) {
    return failed("TUN122", message, "run as its owner (sudo)");
  }
  if (/remove it, and the agent gets/.test(message)) {
    return failed(
      "TUN906",
      message,
      `rm ${root}/cert.pem, and start the agent; if it still cannot link, ` +
        "the key is another node's: join again (tunnel join TOKEN --again)",
    );
  }
  return failed(
    "TUN314",
    message,
    `restore ${root} from a backup; or \`tunnel node forget NAME\` on the ` +
      "server, empty the directory, and join with a new token",
  );
}

function validity(
  { node, authorities, certificate }: AgentIdentityFiles,
  nowMs: number,
): { readonly finding: Finding; readonly isShowable: boolean } {
  const servers = node.servers.map(({ host, port }) => hostPort(host, port));
  const who = `${node.name}, joined at ${servers.join(", ") || "no server"}`;
  const weak = (finding: Finding) => ({ finding, isShowable: false });
  if (authorities.every(({ notAfterMs }) => notAfterMs < nowMs)) {
    return weak(failed(
      "TUN202",
      `${who}: every CA that it trusts has expired, by this machine's clock ` +
        `(${new Date(nowMs).toISOString()})`,
      "set the clock (timedatectl set-ntp true); else join again with a new " +
        "token (tunnel join TOKEN --again)",
    ));
  }
  if (certificate === undefined) {
    return weak(warned(
      "TUN906",
      `${who}: its certificate's file is missing`,
      "start the agent: it gets another one with its key",
    ));
  }
  const { notBeforeMs, notAfterMs } = certificate;
  if (notBeforeMs > nowMs) {
    return weak(failed(
      "TUN916",
      `${who}: its certificate is good from ` +
        `${new Date(notBeforeMs).toISOString()} on, and this machine's clock ` +
        `says ${new Date(nowMs).toISOString()}: the clock is at least ` +
        `${spanOf(notBeforeMs - nowMs)} behind`,
      "set the clock (timedatectl set-ntp true, or chronyc makestep)",
    ));
  }
  if (notAfterMs < nowMs) {
    return weak(warned(
      "TUN202",
      `${who}: its certificate expired ${spanOf(nowMs - notAfterMs)} ago`,
      "start the agent: it renews with its key; if it was never off, compare " +
        "the clocks",
    ));
  }
  return {
    finding: fine(
      `${who}; certificate until ${new Date(notAfterMs).toISOString()}`,
    ),
    isShowable: true,
  };
}
