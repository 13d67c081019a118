/**
 * Whether a node could join with its token: the server is the one that made it,
 * and takes it. The token is shown to nobody who has not proven that, and it is
 * not used.
 *
 * @module
 */

import {
  failed,
  type Finding,
  fine,
  type Hop,
  skipped,
} from "../walk/path_walk.ts";
import type { ServerPath } from "../walk/server_path.ts";
import { withCaller } from "../../../net/channel/grpc_call.ts";
import { messageOf } from "../../../platform/errors/error_code.ts";
import { knownCode } from "../../../proto/codes/codes.ts";
import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import { IDENTITY_MESSAGE_BYTES_MAX } from "../../../proto/identity/enrolment.ts";
import {
  IDENTITY_METHODS,
  JoinRequest,
  StandingAnswer,
} from "../../../proto/identity/identity_messages.ts";
import { parseJoinToken } from "../../../proto/identity/join_token.ts";
import { TUNNEL_SERVER_NAME } from "../../../proto/identity/node_name.ts";
import { PinError } from "../../../agent/identity/enrolment_error.ts";
import { pinnedAuthority } from "../../../agent/identity/identity_calls.ts";

/** Who would join. */
export interface ProbedToken {
  readonly token: string;
  readonly node: string;
}

/** In place of the hops of a link: behind `tcp`. */
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
    answer = await withCaller(
      {
        connect: {
          ...path.connect,
          serverName: TUNNEL_SERVER_NAME,
          credentials: { ca, cert: "", key: "" },
        },
        timeoutMs: path.connect.timeoutMs,
        messageBytesMax: IDENTITY_MESSAGE_BYTES_MAX,
      },
      async (call) =>
        StandingAnswer.decode(await call(IDENTITY_METHODS.checkToken, request)),
    );
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
