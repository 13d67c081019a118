/**
 * Looks at the identity that a node has joined with, as its agent would find it,
 * and says what keeps the agent from it. Writes nothing: looking at a directory
 * that is not there does not make it.
 *
 * @module
 */

import {
  failed,
  type Finding,
  fine,
  type Hop,
  skipped,
  warned,
} from "../walk/path_walk.ts";
import { termFault } from "../walk/certificate_check.ts";
import { whenText } from "../../view/cells.ts";
import { messageOf } from "../../../platform/errors/error_code.ts";
import { systemProblem } from "../../../platform/files/file_error.ts";
import { PrivateFileError } from "../../../platform/files/private_files.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import {
  type AgentIdentityFiles,
  AgentState,
  hasJoined,
} from "../../../agent/identity/agent_state.ts";
import type { ServerPath } from "../walk/server_path.ts";
import { askStanding } from "./link_probe.ts";
import { knownCode } from "../../../proto/codes/codes.ts";
import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import {
  JoinRequest,
  type StandingAnswer,
} from "../../../proto/identity/identity_messages.ts";
import { parseJoinToken } from "../../../proto/identity/join_token.ts";
import { TUNNEL_SERVER_NAME } from "../../../proto/identity/node_name.ts";
import { PinError } from "../../../agent/identity/enrolment_error.ts";
import { pinnedAuthority } from "../../../agent/identity/identity_calls.ts";

/** The findings, and the identity if it is usable. */
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
      "node.json; the server has not admitted the node yet, or has refused it",
    "`tunnel node list` on the server says whether it is pending, and `tunnel " +
      "node approve NAME` admits it; else join again with a new token",
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
        `(${whenText(nowMs)})`,
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
  const fault = termFault(
    `${who}: its certificate`,
    certificate,
    nowMs,
    warned,
    "start the agent: it renews with its key; if it was never off, compare " +
      "the clocks",
  );
  if (fault !== undefined) return weak(fault);
  return {
    finding: fine(
      `${who}; certificate until ${whenText(certificate.notAfterMs)}`,
    ),
    isShowable: true,
  };
}

/** The node that would join. */
export interface ProbedToken {
  readonly token: string;
  readonly node: string;
}

/** Used in place of the hops of a link: follow `tcp`. */
export function tokenHops(
  path: ServerPath,
  probed: ProbedToken,
): readonly Hop[] {
  let ca = "";
  return [
    {
      name: "tls",
      look: async () => {
        try {
          const { authorityPin } = parseJoinToken(probed.token);
          ca = await pinnedAuthority({
            ...path.connect,
            serverName: TUNNEL_SERVER_NAME,
            alpn: ["h2"],
          }, authorityPin);
          return fine("the server is the one that made the token");
        } catch (error) {
          if (!(error instanceof PinError)) return await path.tlsFault(error);
          return failed(
            "TUN205",
            error.message,
            "correct --server, or make a token on that server: tunnel token " +
              "create",
          );
        }
      },
    },
    { name: "token", look: () => lookAtToken(path, probed, ca) },
  ];
}

async function lookAtToken(
  path: ServerPath,
  { token, node }: ProbedToken,
  ca: string,
): Promise<Finding> {
  let answer: StandingAnswer;
  try {
    const csr = new Uint8Array(0);
    const request = JoinRequest.encode({ token, node, csr, software: "" });
    const connect = {
      ...path.connect,
      serverName: TUNNEL_SERVER_NAME,
      credentials: { ca, cert: "", key: "" },
    };
    answer = await askStanding(connect, "checkToken", request);
  } catch (error) {
    const isOld = error instanceof GrpcError &&
      error.code === StatusCode.UNIMPLEMENTED;
    if (isOld) return skipped("the server is too old to be asked");
    return failed("TUN320", messageOf(error), "see the server's log");
  }
  if (answer.refusal === "") {
    return fine(`the server would let ${node} join; the token is as it was`);
  }
  const code = knownCode(answer.code) ?? "TUN320";
  return failed(
    code,
    answer.refusal,
    code === "TUN307"
      ? `--node NAME, or on the server: tunnel node forget ${node}`
      : "on the server: tunnel token create",
  );
}
