/**
 * Whether a server would let this agent in: by asking the server, and by the
 * same steps as for a link, up to the server's hello. This agent's own hello is
 * never sent, because a second link of a running node looks like a copy of it.
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
import type { ServerPath } from "../walk/server_path.ts";
import {
  refused as certificateRefused,
  SKEW_MS,
  spanOf,
} from "../walk/tls_fault.ts";
import { whenText } from "../../view/cells.ts";
import { withCaller } from "../../../net/channel/grpc_call.ts";
import { messageOf } from "../../../platform/errors/error_code.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import type { Code } from "../../../proto/codes/codes.ts";
import { VERSION } from "../../../platform/process/version.ts";
import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import { IDENTITY_MESSAGE_BYTES_MAX } from "../../../proto/identity/enrolment.ts";
import {
  IDENTITY_METHODS,
  StandingAnswer,
  StandingRequest,
} from "../../../proto/identity/identity_messages.ts";
import { STREAMS_ALPN } from "../../../proto/link/hello.ts";
import { SILENT_OBSERVER } from "../../../proto/link/link.ts";
import { DialError } from "../../../proto/peer/dial_error.ts";
import {
  formatIdentifiers,
  type Identifiers,
} from "../../../proto/peer/identifiers.ts";
import { ReceiveBudget } from "../../../proto/streams/receive_budget.ts";
import { UnheardError } from "../../../agent/identity/enrolment_error.ts";
import { Connector } from "../../../agent/links/connector.ts";

/** The agent whose link is probed. */
export interface ProbedAgent {
  readonly agentId: string;
  readonly identifiers: Identifiers;
  readonly token: string;
  /** Absent: the server cannot be asked who that is. */
  readonly hasCredential: boolean;
}

/** Follow the hops of `path`. */
export function linkHops(
  path: ServerPath,
  agent: ProbedAgent,
): readonly Hop[] {
  const late = failed(
    "TUN421",
    `${path.name} took the connection, and does not answer`,
    "the server hangs or is overloaded: `tunnel doctor server` there",
  );
  return [
    { name: "hello", look: (signal) => lookAtHello(path, agent, signal), late },
    { name: "identity", look: () => lookAtStanding(path, agent), late },
  ];
}

async function lookAtStanding(
  path: ServerPath,
  agent: ProbedAgent,
): Promise<Finding> {
  if (!agent.hasCredential) {
    return skipped("there is no good certificate to show, so it was not asked");
  }
  let answer: StandingAnswer;
  try {
    const request = StandingRequest.encode({
      agentId: agent.agentId,
      identifiers: formatIdentifiers(agent.identifiers),
      token: agent.token,
      software: `tunnel/${VERSION}`,
    });
    answer = await askStanding(path.connect, "standing", request);
  } catch (error) {
    return unanswered(path.name, error);
  }
  if (answer.refusal !== "") {
    const isShown = path.options.credentials.cert !== "";
    return isShown && /showed no certificate/.test(answer.refusal)
      ? tlsEnded(path.name)
      : refusal(answer.refusal);
  }
  const clock = clockFault(answer.now, Date.now());
  if (clock !== undefined) return clock;
  const from = [...new Set(answer.linkedFrom)];
  if (answer.instances > 1) {
    return warned(
      "TUN313",
      `the server takes this identity, and ${answer.instances} machines use ` +
        `it at once (linked from ${from.join(", ")})`,
      "remove the copy: on the machine that was cloned, empty the agent's " +
        "state directory and join with a new token",
    );
  }
  return fine(
    `the server ${answer.serverId} lets ${agent.agentId} in` +
      (from.length === 0
        ? "; it is not linked now"
        : `; linked from ${from.join(", ")}`),
  );
}

/** What the server says of this node; it changes nothing. */
export function askStanding(
  connect: ServerPath["connect"],
  method: "standing" | "checkToken",
  request: Uint8Array,
): Promise<StandingAnswer> {
  const { timeoutMs } = connect;
  const messageBytesMax = IDENTITY_MESSAGE_BYTES_MAX;
  return withCaller({ connect, timeoutMs, messageBytesMax }, async (call) => {
    return StandingAnswer.decode(await call(IDENTITY_METHODS[method], request));
  });
}

/** The shown certificate did not arrive: TLS ends before the server. */
function tlsEnded(where: string): Finding {
  return failed(
    "TUN210",
    `${where} was shown a certificate, and the server saw none: something on ` +
      "the way, such as a load balancer, ends TLS",
    "let it pass TCP through (no TLS termination) to the agents' port",
  );
}

/** The server's own words say which of its reasons it was, and what to do. */
const REFUSALS: readonly (readonly [words: RegExp, Code, remedy: string])[] = [
  [/was revoked/, "TUN311", "on the server: tunnel node approve NAME"],
  [/waits for approval/, "TUN310", "on the server: tunnel node approve NAME"],
  [/bound to another key/, "TUN307", "on the server: tunnel node forget NAME"],
  [
    /knows no such node/,
    "TUN312",
    "tunnel join TOKEN --again, with a token of `tunnel token create` on that " +
    "server",
  ],
  [
    /does not cover|not granted/,
    "TUN320",
    "on the server: tunnel node approve NAME",
  ],
  [
    /(?:)/,
    "TUN320",
    "join with a token of `tunnel token create` on that server",
  ],
];

function refusal(message: string): Finding {
  const [, code, remedy] = REFUSALS.find(([words]) => words.test(message))!;
  const command = /`([^`]+)`/.exec(message)?.[1];
  const isThere = command !== undefined && remedy.startsWith("on the server");
  return failed(code, message, isThere ? `on the server: ${command}` : remedy);
}

function clockFault(theirs: string, oursMs: number): Finding | undefined {
  const theirsMs = Date.parse(theirs);
  const skewMs = theirsMs - oursMs;
  if (Number.isNaN(theirsMs) || Math.abs(skewMs) <= SKEW_MS) return undefined;
  return warned(
    "TUN916",
    `the server takes this identity, and its clock says ` +
      `${whenText(theirsMs)}: this machine's is ` +
      `${spanOf(Math.abs(skewMs))} ${skewMs > 0 ? "behind" : "ahead"}`,
    "set the clock that is wrong (timedatectl set-ntp true, or chronyc " +
      "makestep)",
  );
}

function unanswered(where: string, error: unknown): Finding {
  const message = messageOf(error);
  if (error instanceof GrpcError && error.code === StatusCode.UNIMPLEMENTED) {
    return skipped("the server is too old to be asked; its agents find out");
  }
  if (error instanceof GrpcError && error.code === StatusCode.UNAVAILABLE) {
    return certificateRefused(
      `${where} ended the connection when it saw this agent's certificate ` +
        `(${message})`,
    );
  }
  return failed(
    "TUN421",
    `${where} does not answer: ${message}`,
    "the server hangs or is overloaded: look at it with `tunnel doctor " +
      "server` there",
  );
}

/** Like an agent, up to the hello, without making a link. */
async function lookAtHello(
  path: ServerPath,
  { agentId, identifiers }: ProbedAgent,
  signal: AbortSignal,
): Promise<Finding | undefined> {
  const stream = path.takeStream();
  if (stream === undefined) return undefined;
  let server: string | undefined;
  const connector = new Connector({
    agentId,
    identifiers,
    alpnProtocols: [],
    carriers: ["streams"],
    authority: path.options.serverName ?? path.options.address.host,
    keepaliveMs: path.connect.timeoutMs,
    messageBytesMax: IDENTITY_MESSAGE_BYTES_MAX,
    receiveBudget: new ReceiveBudget(),
    timers: systemTimers,
    observer: SILENT_OBSERVER,
    onDial: (_target, answer) => {
      answer.failed(new DialError("refused", "this is no agent that dials"));
      return { cancel: () => {} };
    },
    openStream: (_alpn, use) => use(stream),
    fellBack: () => {},
  });
  const beganMs = systemTimers.now();
  try {
    await connector.connect({
      claim: ({ serverId }) => {
        server = serverId;
        return false;
      },
      closed: () => {},
      draining: () => {},
      doubted: () => {},
    }, signal);
  } catch (error) {
    if (error instanceof UnheardError) {
      return certificateRefused(messageOf(error));
    }
    if (server === undefined) {
      return failed(
        "TUN421",
        messageOf(error),
        "look into the server's log; if it hangs, restart it",
      );
    }
  }
  const tookMs = Math.round(systemTimers.now() - beganMs);
  return fine(
    `the server says hello over ${STREAMS_ALPN} after ${tookMs} ms; nothing ` +
      "was linked",
  );
}
