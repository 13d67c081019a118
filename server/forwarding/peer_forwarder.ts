/**
 * Sends dials to other servers: one channel to each, kept while it is used.
 *
 * @module
 */

import type { Upstream } from "../../net/channel/upstream.ts";
import type { Peer } from "../peers/peers.ts";
import type { Forwarder, IdentifiedDial } from "../routing/dialer.ts";
import type { DialWay } from "../routing/dial_way.ts";
import { PeerServer, type PeerServerOptions } from "./peer_server.ts";
import { PeerWay } from "./peer_way.ts";

/** What `PeerForwarder` needs from outside. */
export interface PeerForwarderOptions extends PeerServerOptions {
  upstreamTo(peer: Peer): Upstream;
}

/** See the module description. */
export class PeerForwarder implements Forwarder {
  /** By id and address: one that has moved is another one. */
  readonly #servers = new Map<string, PeerServer>();

  constructor(private readonly options: PeerForwarderOptions) {}

  /** Servers with a channel. */
  get servers(): number {
    return this.#servers.size;
  }

  wayTo(peer: Peer, request: IdentifiedDial): DialWay {
    return new PeerWay(this.#serverOf(peer), request);
  }

  /** Ends everything. */
  stop(reason: string): void {
    for (const server of this.#servers.values()) server.abort(reason);
    this.#servers.clear();
  }

  #serverOf(peer: Peer): PeerServer {
    const key = JSON.stringify([peer.serverId, peer.address]);
    const known = this.#servers.get(key);
    if (known !== undefined) return known;
    const server: PeerServer = new PeerServer(
      peer,
      this.options.upstreamTo(peer),
      this.options,
      () => {
        if (this.#servers.get(key) === server) this.#servers.delete(key);
      },
    );
    this.#servers.set(key, server);
    return server;
  }
}
