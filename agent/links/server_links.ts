/**
 * An agent's links: how one is made, how many are kept, and what is said and
 * counted of them.
 *
 * @module
 */

import { readToken } from "../../host/kubernetes/token_file.ts";
import { withPacketLines } from "../../host/process/connection_log.ts";
import { systemTimers } from "../../host/process/system_timers.ts";
import type { Credentials } from "../../host/tls/credentials.ts";
import type { DialHandler } from "../../proto/link/dial_handler.ts";
import { NO_IDENTIFIERS } from "../../proto/link/identifiers.ts";
import type { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import type { AgentMetrics } from "../agent_metrics.ts";
import type { Announcement } from "../announcement.ts";
import type { AgentEnvironment } from "../environment.ts";
import type { AgentOptions } from "../options.ts";
import { AttemptLog } from "./attempt_log.ts";
import { Connector } from "./connector.ts";
import { LinkKeeper } from "./link_keeper.ts";
import { ServerRoad } from "./server_road.ts";

/** Longest text of a server that is logged. */
const MESSAGE_LENGTH_MAX = 2_000;

/** What is taken from the agent. */
export interface ServerLinksParts {
  readonly options: AgentOptions;
  readonly environment: AgentEnvironment;
  readonly credentials: Credentials;
  readonly receiveBudget: ReceiveBudget;
  readonly metrics: AgentMetrics;
  readonly announcement: Announcement;
  /** Of this process; see `instance_id.ts`. */
  readonly instanceId: string;
  readonly onDial: DialHandler;
  /** How many servers to link to, when a server has said how many there are. */
  serversWanted(reported: number): number;
}

/** Prepares the links; none is made before the keeper starts. */
export function serverLinks(parts: ServerLinksParts): LinkKeeper {
  const { options, environment, metrics } = parts;
  const { server, sync } = options;
  const { log } = environment;
  const connector = connectorOf(parts);
  const attempts = new AttemptLog(log);
  return new LinkKeeper({
    connect: (onClosed) => connector.connect(onClosed),
    timers: systemTimers,
    random: environment.random ?? Math.random,
    linksPerServer: server.links,
    intervalCapMs: sync.intervalCapMs,
    serversWanted: (reported) => parts.serversWanted(reported),
    forever: sync.forever,
    observer: {
      linked: ({ serverId, carrier, serverCount }) => {
        attempts.linked();
        log.event("linked to server", {
          server: serverId,
          carrier,
          servers: serverCount,
        });
      },
      lost: ({ serverId }, reason) => {
        metrics.serverFailed();
        log.event(`link lost: ${reason}`, { server: serverId });
      },
      failed: (reason, retryMs, error) => {
        metrics.serverFailed();
        attempts.failed(reason, retryMs, error);
      },
      counted: (linked, known) => metrics.servers(linked, known),
    },
  });
}

function connectorOf(parts: ServerLinksParts): Connector {
  const { options, environment, credentials, metrics, announcement } = parts;
  const { agentId, identifiers, server, messageOctetsMax } = options;
  const { tokenFile } = server;
  const { log, identity } = environment;
  const road = new ServerRoad(server.addresses, credentials, environment);
  return new Connector({
    ...(tokenFile === undefined ? {} : { token: () => readToken(tokenFile) }),
    agentId,
    instanceId: parts.instanceId,
    onDuplicate: (message) => log.warn(message.slice(0, MESSAGE_LENGTH_MAX)),
    identifiers: identifiers ?? NO_IDENTIFIERS,
    services: () => announcement.services,
    onServicesRefused: (refused) => announcement.refused(refused),
    notAnnounced: (serverId) => announcement.unheard(serverId),
    alpnProtocols: server.alpnProtocols,
    carriers: server.carriers ?? ["streams", "packets"],
    authority: road.authority,
    keepaliveMs: server.keepaliveMs,
    messageOctetsMax,
    receiveBudget: parts.receiveBudget,
    timers: systemTimers,
    observer: withPacketLines(metrics.linkObserver(), log, "server"),
    onDial: parts.onDial,
    openTransport: (alpn, use) => road.open(alpn, use),
    ...(identity?.trust === undefined
      ? {}
      : { onAuthorities: (bundle) => void identity.trust?.(bundle) }),
    fellBack: (serverId) => {
      metrics.fellBack();
      log.warn(
        "the link fell back to Konnectivity's protocol although the server " +
          "is ours: something on the way changes ALPN; a stalled connection " +
          "may hold up others",
        { server: serverId },
      );
    },
  });
}
