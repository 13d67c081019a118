/**
 * The way to discovery servers for a node that has joined: as whom it has
 * joined, and with a certificate that is looked after.
 *
 * @module
 */

import { type AdsRoad, tlsRoad } from "../../../client/ads/ads_road.ts";
import type { Log } from "../../../host/process/log.ts";
import type { ProxyEnvironment } from "../../../host/dial/proxy_environment.ts";
import type { ServerAddress } from "../../../host/dial/server_addresses.ts";
import { Credentials } from "../../../host/tls/credentials.ts";
import { TUNNEL_SERVER_NAME } from "../../../proto/identity/node_name.ts";
import type { AgentIdentity } from "../../enrol/agent_identity.ts";

/** See the module description. */
export interface IdentityRoadOptions {
  /** Where the agent of this node keeps its identity. */
  readonly stateDirectory: string;
  readonly servers: readonly ServerAddress[];
  readonly log: Log;
  readonly proxyEnv: ProxyEnvironment;
}

/** A road, and the identity that it is taken with. */
export interface IdentityRoad extends AdsRoad {
  /** A server hung up like one that dislikes the certificate. */
  doubt(): void;
  /** Looks after the certificate no more. */
  stop(): void;
}

/**
 * Nothing is read before the first connection; an identity that cannot be used
 * is a sentence then, each time, until it can.
 */
export function identityRoad(options: IdentityRoadOptions): IdentityRoad {
  let opening: Promise<Opened> | undefined;
  let opened: Opened | undefined;
  let isStopped = false;
  return {
    authority: TUNNEL_SERVER_NAME,
    scheme: "https",
    async connect(use, signal) {
      opening ??= open(options);
      try {
        opened = await opening;
      } catch (error) {
        opening = undefined;
        throw error;
      }
      if (isStopped) opened.identity.stop();
      signal.throwIfAborted();
      await opened.identity.ready();
      return await opened.road.connect(use, signal);
    },
    doubt: () => opened?.identity.doubt(),
    stop() {
      isStopped = true;
      opened?.identity.stop();
    },
  };
}

interface Opened {
  readonly identity: AgentIdentity;
  readonly road: AdsRoad;
}

async function open(
  { stateDirectory, servers, log, proxyEnv }: IdentityRoadOptions,
): Promise<Opened> {
  // Loaded when wanted: making requests for certificates is a lot of code.
  const { AgentIdentity } = await import("../../enrol/agent_identity.ts");
  const identity = await AgentIdentity.open({ stateDirectory }, {
    log,
    servers,
    proxy: proxyEnv,
    isPatient: true,
  });
  const credentials = Credentials.load(identity.files, "by itself");
  identity.start(credentials);
  const road = tlsRoad({
    addresses: servers,
    credentials: () => credentials.current,
    serverName: TUNNEL_SERVER_NAME,
    proxyEnv,
  });
  return { identity, road };
}
