/**
 * `tunnel doctor agent`: from this node's identity to the server's hello, with
 * the flags of `tunnel agent`.
 *
 * @module
 */

import {
  checkIdentity,
  type ProbedToken,
  tokenHops,
} from "../../admin/doctor/agent/identity_check.ts";
import {
  linkHops,
  type ProbedAgent,
} from "../../admin/doctor/agent/link_probe.ts";
import {
  type AgentIdentityFiles,
  hasUsableIdentity,
} from "../../agent/identity/agent_state.ts";
import { lookAtRoom } from "../../admin/doctor/walk/room.ts";
import {
  failed,
  type Finding,
  fine,
  type Hop,
  walk,
} from "../../admin/doctor/walk/path_walk.ts";
import { lookAtCertificate } from "../../admin/doctor/walk/certificate_check.ts";
import { ServerPath } from "../../admin/doctor/walk/server_path.ts";
import { proxyEnvironment } from "../../net/dial/proxy_environment.ts";
import type { ServerAddress } from "../../net/dial/server_addresses.ts";
import {
  Credentials,
  NO_MATERIAL,
  type TlsMaterial,
} from "../../net/tls/trust/credentials.ts";
import type { PathStep } from "../../proto/admin/path_check.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";
import { HTTP2_ALPN, STREAMS_ALPN } from "../../proto/link/hello.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import {
  type Identifiers,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";
import type { AGENT_FLAGS } from "../agent/flags.ts";
import { addressesOf, usual } from "../agent/options.ts";
import { given } from "../../platform/documents/given.ts";
import { joinRequest, joinTokenText } from "../flags/join_flags.ts";
import { handoverAddress } from "../flags/program_flags.ts";
import type { FlagReading } from "../flags/read_flags.ts";
import { defaultStateDirectory } from "../flags/state_directory.ts";
import {
  agentDescriptorsHop,
  runningAgentHop,
  workersIn,
} from "../../admin/doctor/running_program.ts";
import type { CommandContext } from "../program/command.ts";
import { mayBeDirectory } from "../../platform/files/kind_at.ts";

type Reading = FlagReading<typeof AGENT_FLAGS>;

/** The identity, the servers, and the credentials. */
interface Subject {
  readonly finding: Finding;
  /** Absent: no further hop can be tried. */
  readonly way?: {
    readonly addresses: readonly ServerAddress[];
    readonly credentials: TlsMaterial;
    readonly serverName?: string;
    /** Absent: it has not joined, and would with a token. */
    readonly agent?: ProbedAgent;
    readonly token?: ProbedToken;
    /**
     * The directory in which an agent of this identity would have its admin
     * socket.
     */
    readonly runsIn?: string;
  };
}

/** Walks; the ways to several servers at the same time. */
export async function examineAgent(
  reading: Reading,
  context: Pick<CommandContext, "environment" | "readFile">,
): Promise<readonly PathStep[]> {
  let subject: Subject | undefined;
  const steps = await walk([{
    name: "state",
    look: async () => {
      subject = await subjectOf(reading, context);
      return subject.finding;
    },
  }]);
  const way = subject?.way;
  if (way === undefined) return steps;
  const running = await walk(
    way.runsIn === undefined ? [] : hopsOf(way.runsIn, reading),
  );
  // Time for the agent's answer must not be taken from the walk.
  const walked = await Promise.all(way.addresses.map(async (address) => {
    const { credentials, serverName } = way;
    const path = new ServerPath({
      ...given({ address, credentials, serverName }),
      proxyEnv: proxyEnvironment(context.environment),
      alpn: [STREAMS_ALPN, ...reading.values["alpn-proto"], HTTP2_ALPN],
    });
    const steps = await walk(
      way.token !== undefined
        ? [...path.hopsToServer, ...tokenHops(path, way.token)]
        : [...path.hops, ...linkHops(path, way.agent!)],
    );
    return way.addresses.length === 1
      ? steps
      : steps.map((step) => ({ ...step, hop: `${step.hop} ${path.name}` }));
  }));
  return [...steps, ...running, ...walked.flat()];
}

/** What an agent of this directory needs, and says, if it can be asked. */
function hopsOf(root: string, { values }: Reading): readonly Hop[] {
  const address = handoverAddress({
    command: "agent",
    flag: values["handover-socket"],
    stateDirectory: root,
    port: { hostname: "", port: 0 },
  });
  return [
    // An agent that cannot write cannot renew its certificate.
    { name: "disk", look: () => lookAtRoom(root) },
    ...workersIn(root).map((worker) =>
      runningAgentHop({ root, port: values["admin-server-port"], worker })
    ),
    ...address === undefined ? [] : [agentDescriptorsHop(address)],
  ];
}

async function subjectOf(
  reading: Reading,
  context: Pick<CommandContext, "environment" | "readFile">,
): Promise<Subject> {
  const { values } = reading;
  if (values["ca-cert"] !== "") return subjectOfFiles(reading, context);
  const root = values["state-dir"] ||
    defaultStateDirectory("agent", context.environment);
  const token = joinTokenText(values["join"], values["join-file"]);
  if (token !== "" && !hasUsableIdentity(root)) {
    return subjectOfToken(reading, token);
  }
  const owned = values["state-dir"] === "" ? ownedByRoot(root) : undefined;
  if (owned !== undefined) return { finding: owned };
  const check = await checkIdentity(root, Date.now());
  const { finding, identity, isShowable = false } = check;
  if (identity === undefined || finding.outcome === "failed") {
    return { finding };
  }
  const addresses = addressesOf(reading) ?? identity.node.servers;
  if (addresses.length === 0) {
    return {
      finding: failed(
        "TUN402",
        `${finding.message}: and no server is known`,
        "give --server HOST:8091",
      ),
    };
  }
  return {
    finding,
    way: {
      addresses,
      credentials: materialOf(identity, isShowable, root, context),
      serverName: TUNNEL_SERVER_NAME,
      runsIn: root,
      agent: {
        agentId: values["agent-id"] || identity.node.name,
        identifiers: identifiersOf(reading, identity),
        token: "",
        hasCredential: isShowable,
      },
    },
  };
}

/** @param root Where a user's own agent would keep its identity. */
function ownedByRoot(root: string): Finding | undefined {
  const theirs = defaultStateDirectory("agent", () => undefined, true);
  if (root === theirs || mayBeDirectory(root)) return undefined;
  if (!mayBeDirectory(theirs)) return undefined;
  return failed(
    "TUN122",
    `there is no identity in ${root}, and root's agent has one in ${theirs}`,
    "run as its owner: sudo tunnel doctor agent",
  );
}

/** A node that has not joined, and has a token. */
function subjectOfToken(reading: Reading, text: string): Subject {
  const { token, node } = joinRequest(text, reading.values["node"]);
  const addresses = addressesOf(reading);
  if (addresses === undefined) {
    return {
      finding: failed(
        "TUN402",
        "a token is given, and no server",
        "give --server HOST:8091, as `tunnel token create` printed it",
      ),
    };
  }
  return {
    finding: fine(`has not joined; would as ${node}, with the token`),
    way: {
      addresses,
      credentials: NO_MATERIAL,
      serverName: TUNNEL_SERVER_NAME,
      token: { token, node },
    },
  };
}

function materialOf(
  { authorities }: AgentIdentityFiles,
  isShowable: boolean,
  root: string,
  { readFile }: Pick<CommandContext, "readFile">,
): TlsMaterial {
  const ca = authorities.map(({ pem }) => pem).join("");
  return isShowable
    ? {
      ca,
      cert: readFile(`${root}/cert.pem`),
      key: readFile(`${root}/key.pem`),
    }
    : { ca, cert: "", key: "" };
}

/** Like `AgentIdentity.identifiers`, unless a flag names others. */
function identifiersOf(
  { values, given }: Reading,
  { node }: AgentIdentityFiles,
): Identifiers {
  if (given.has("agent-identifiers")) return values["agent-identifiers"];
  const granted = parseIdentifiers(node.identifiers, "server");
  return { ...granted, host: [...new Set([node.name, ...granted.host])] };
}

/** For an agent that has not joined: certificates of another CA. */
function subjectOfFiles(
  reading: Reading,
  { readFile }: Pick<CommandContext, "readFile">,
): Subject {
  const { values } = reading;
  const files = {
    ca: values["ca-cert"],
    cert: values["agent-cert"] || undefined,
    key: values["agent-key"] || undefined,
  };
  const shown = { flag: "--agent-cert", files, names: [], isRenewed: false };
  const finding = lookAtCertificate(shown, Date.now());
  if (finding.outcome === "failed") return { finding };
  const tokenFile = values["service-account-token-path"];
  const addresses = addressesOf(reading) ?? [usual(values)];
  const identifiers = values["agent-identifiers"];
  return {
    finding,
    way: {
      addresses,
      credentials: Credentials.load(files).current,
      agent: {
        agentId: values["agent-id"] || identifiers.host[0] ||
          "tunnel-doctor",
        identifiers,
        token: tokenFile === "" ? "" : readFile(tokenFile).trim(),
        hasCredential: true,
      },
    },
  };
}

/** For the heading. */
export function agentSubject(
  reading: Reading,
  { environment }: Pick<CommandContext, "environment">,
): string {
  const { values } = reading;
  if (values["ca-cert"] !== "") {
    const [server] = addressesOf(reading) ?? [usual(values)];
    return `agent of ${hostPort(server!.host, server!.port)}`;
  }
  return `agent in ${
    values["state-dir"] || defaultStateDirectory("agent", environment)
  }`;
}
