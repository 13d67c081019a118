/**
 * Dials between the servers of one authority: those that this one sends to
 * others, and those that others send here. Both are for servers with an
 * authority of their own: a certificate from elsewhere does not say whether it
 * is a server's.
 *
 * @module
 */

import { tlsUpstream } from "../../net/channel/server_upstream.ts";
import type { Upstream } from "../../net/channel/upstream.ts";
import type { Credentials } from "../../net/tls/trust/credentials.ts";
import { withPacketLines } from "../../platform/log/connection_log.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";
import { linkKeepalive } from "../../proto/link/link_limits.ts";
import { hostOf, portOf } from "../../proto/peer/host_port.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import { PeerForwarder } from "../forwarding/peer_way.ts";
import type { ServerIdentity } from "../identity/server_identity.ts";
import type { Peer } from "../peers/peers.ts";
import type { ServerCore } from "./server_core.ts";

/** What it takes from the server. */
export type ForwardingParts = Pick<
  ServerCore,
  "options" | "program" | "metrics" | "receiveBudget" | "authorization"
>;

/** See the module description. */
export class ServerForwarding {
  /** Absent unless it was asked for. */
  readonly forwarder: PeerForwarder | undefined;
  #identity: ServerIdentity | undefined;
  #credentials: Credentials | undefined;

  constructor(private readonly parts: ForwardingParts) {
    if (parts.options.peerForwarding !== true) return;
    if (parts.options.agents.identity === undefined) {
      throw new TypeError("Cannot forward dials: there is no identity");
    }
    this.forwarder = this.#createForwarder();
  }

  /** Whom to trust is known. @throws {CredentialsError} */
  openTrust(identity: ServerIdentity | undefined): void {
    this.#identity = identity;
    if (this.forwarder === undefined || identity === undefined) return;
    const { files } = this.parts.program;
    this.#credentials = files.credentials("other-servers", identity.files);
  }

  /** Whether a certificate is another server's. */
  isServer(identity: PeerIdentity): boolean {
    return this.#identity?.isServer(identity) === true;
  }

  stop(reason: string): void {
    this.forwarder?.stop(reason);
  }

  #createForwarder(): PeerForwarder {
    const { options, metrics, program, receiveBudget } = this.parts;
    const { log, timers } = program;
    const { serverId, messageBytesMax, agents } = options;
    return new PeerForwarder({
      serverId,
      hasPolicy: this.hasPolicy,
      timers,
      observer: withPacketLines(metrics.packetObserver("agent"), log, "server"),
      messageBytesMax,
      keepalive: linkKeepalive(agents.keepaliveMs),
      receiveBudget,
      upstreamTo: (peer) => this.#upstreamTo(peer),
    });
  }

  #upstreamTo({ address }: Peer): Upstream {
    return tlsUpstream({
      addresses: [{ host: hostOf(address), port: portOf(address) }],
      credentials: () => this.#credentials!.current,
      // Whatever its address: each server of our authority has this name.
      serverName: TUNNEL_SERVER_NAME,
      proxyEnv: {},
    });
  }

  /** A policy decides about dials. */
  get hasPolicy(): boolean {
    return this.parts.authorization.dials.hidesNodes;
  }
}
