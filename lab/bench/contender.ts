/**
 * One side of a comparison: the tunnels of one maker, measured by the same
 * generator against the same target as all others.
 *
 * @module
 */

import type { Workspace } from "../../tests/support/program/workspace.ts";
import { generate, type Sample } from "./generator.ts";
import type { ContenderName, Metric, Route, Scale } from "./metric.ts";
import { WITH_FRONTENDS } from "./metric.ts";
import { type Site, startTunnel, type Tunnel } from "./tunnels/start_tunnel.ts";

/** Enough for the compilers of V8, and for caches. */
const WARM_UP: readonly (readonly string[])[] = [
  ["-mode=down", "-n=1", "-gb=0.2"],
  ["-mode=up", "-n=16", "-gb=0.2"],
  ["-mode=rr", "-n=64", "-d=1s"],
  ["-mode=conn", "-n=16", "-d=1s"],
];

/** See the module description. */
export class Contender {
  /** Kept between runs, since a new one is cold; one for each route. */
  readonly #tunnels = new Map<Route, Tunnel>();

  constructor(readonly name: ContenderName, readonly site: Site) {}

  get workspace(): Workspace {
    return this.site.workspace;
  }

  async measure(metric: Metric, scale: Scale): Promise<Sample> {
    const route = this.routeOf(metric.route ?? "connect-uds");
    if (metric.isFresh) await this.#stopOn(route);
    try {
      if (metric.run !== undefined) return await metric.run(this, scale);
      const flags = metric.load?.(scale, this.name);
      if (flags === undefined) throw new TypeError("neither load nor run");
      const tunnel = metric.isFresh
        ? await this.coldTunnel(route)
        : await this.tunnel(route);
      return await this.generate(tunnel, flags);
    } finally {
      if (metric.isFresh) await this.#stopOn(route);
    }
  }

  /** Its own way in where `wanted` is CONNECT and it has no frontend. */
  routeOf(wanted: Route): Route {
    const hasIt = wanted === "proxy" || WITH_FRONTENDS.includes(this.name);
    return hasIt ? wanted : "port";
  }

  /**
   * The tunnel of this contender on that route, started and warmed up when it
   * is asked for the first time, and again after {@linkcode stop}.
   */
  async tunnel(route: Route): Promise<Tunnel> {
    const running = this.#tunnels.get(route);
    if (running !== undefined) return running;
    const tunnel = await this.coldTunnel(route);
    for (const flags of WARM_UP) await this.generate(tunnel, flags);
    return tunnel;
  }

  /**
   * Runs the generator through a tunnel.
   *
   * @throws {SpoiledRunError} When the result is none.
   */
  generate(tunnel: Tunnel, flags: readonly string[]): Promise<Sample> {
    return generate({
      workspace: this.workspace,
      program: tunnel.generator,
      prefix: this.site.serverSide,
      flags: [
        ...flags,
        ...tunnel.flags,
        `-target=${this.site.target}`,
        `-pids=${tunnel.pieces.map((piece) => piece.pid).join()}`,
      ],
      pieces: tunnel.pieces,
    });
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#tunnels.keys()].map((it) => this.#stopOn(it)));
  }

  /** A new tunnel that has carried one request; not while another stands. */
  async coldTunnel(route: Route): Promise<Tunnel> {
    const tunnel = await startTunnel(this.name, this.site, { route });
    this.#tunnels.set(route, tunnel);
    return tunnel;
  }

  async #stopOn(route: Route): Promise<void> {
    const tunnel = this.#tunnels.get(route);
    this.#tunnels.delete(route);
    await tunnel?.stop();
  }
}
