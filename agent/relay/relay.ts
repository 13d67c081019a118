/**
 * Both relays of a node, on one upstream to its servers.
 *
 * @module
 */

import type { Upstream } from "../../net/channel/upstream.ts";
import {
  type NamedUpstream,
  openUpstreamDialer,
  type TunnelDialer,
} from "../../client/tunnel_dialer.ts";
import type { CountingTools } from "../../platform/program/tools.ts";
import { AdsRelay } from "./ads_relay.ts";
import { ConnectRelay } from "./connect_relay.ts";
import type { RelayOptions } from "../options.ts";

/** Prefix of metric names. */
const PREFIX = "tunnel_relay_";

/** How relays reach servers. */
export interface RelayWays {
  /** To servers, as the node. */
  readonly upstream: Upstream;
  /**
   * To each of them alone, for dials that one cannot serve; absent: it is not known
   * which there are.
   */
  readonly servers?: readonly NamedUpstream[] | undefined;
}

export class Relay {
  readonly #dialer: TunnelDialer;
  readonly #connect: ConnectRelay | undefined;
  readonly #xds: AdsRelay | undefined;
  #drained: () => void = () => {};

  /**
   * @param loadChanged Called after every change of {@linkcode Relay.load}.
   * @throws {ListenError} Nothing stays open.
   */
  constructor(
    { xds, connect }: RelayOptions,
    { upstream, servers }: RelayWays,
    private readonly tools: CountingTools,
    loadChanged: () => void,
  ) {
    const { log, metrics } = tools;
    const name = "as a node";
    this.#dialer = openUpstreamDialer(servers ?? [{ name, upstream }], name);
    this.#connect = connect && new ConnectRelay({
      listen: connect,
      dialer: this.#dialer,
      log,
      loadChanged: () => {
        if (this.load === 0) this.#drained();
        loadChanged();
      },
    });
    try {
      this.#xds = xds && new AdsRelay({
        listen: xds,
        upstream,
        connectAddress: this.#connect?.address,
        moreConnect: this.#connect?.more,
        log,
      });
    } catch (error) {
      this.#connect?.close("the relay does not start");
      throw error;
    }
    metrics.computed(
      "gauge",
      `${PREFIX}streams`,
      "Discovery streams that are passed on for programs on this machine.",
      () => this.#xds?.streams ?? 0,
    );
    metrics.computed(
      "gauge",
      `${PREFIX}connections`,
      "Clients of the relay for connections.",
      () => this.load,
    );
  }

  /** The addresses that it listens on. */
  get addresses(): { readonly xds?: string; readonly connect?: string } {
    return {
      ...(this.#xds && { xds: this.#xds.address }),
      ...(this.#connect && { connect: this.#connect.address }),
    };
  }

  /** Connections; a shutdown does not wait for discovery. */
  get load(): number {
    return this.#connect?.load ?? 0;
  }

  /** No new clients; connections go on. */
  shutdown(): void {
    this.#xds?.close();
    this.#connect?.shutdown();
  }

  /** The same; settles when the last connection is over, or time is. */
  async drain(timeoutMs: number): Promise<void> {
    this.shutdown();
    if (this.load === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#drained = resolve;
    const timer = this.tools.timers.after(timeoutMs, resolve);
    await promise;
    timer.cancel();
  }

  /** Ends everything now. */
  close(reason: string): void {
    this.#xds?.close();
    this.#connect?.close(reason);
    this.#dialer.close();
  }
}
