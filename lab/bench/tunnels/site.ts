/**
 * Where the pieces of a tunnel run: everything on loopback, or each end in a
 * network namespace of its own.
 *
 * @module
 */

import type { Child } from "../../../tests/support/program/child.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import type { Route } from "../metric.ts";

export interface Site {
  readonly workspace: Workspace;
  /** What the agent dials: `host:port` of the running target. */
  readonly target: string;
  /** Where the server listens for its agent, an IPv4 address. */
  readonly serverHost: string;
  /** Words before the server's and the generator's commands. */
  readonly serverSide: readonly string[];
  /** Words before the agent's command, such as `ip netns exec nsB`. */
  readonly agentSide: readonly string[];
}

/** Everything on this machine's loopback. */
export function loopback(workspace: Workspace, target: string): Site {
  return {
    workspace,
    target,
    serverHost: "127.0.0.1",
    serverSide: [],
    agentSide: [],
  };
}

/** What a metric may ask of a tunnel; not every peer can do all of it. */
export interface SiteConfig {
  readonly route: Route;
  /** For our server or agent, or Konnectivity's. */
  readonly serverFlags?: readonly string[];
  readonly agentFlags?: readonly string[];
}

/** A tunnel that has carried a first request. */
export interface Tunnel {
  /** Of the generator: how it reaches the target. */
  readonly flags: readonly string[];
  /** Which of the two generators knows this route. */
  readonly generator: "loadgen" | "grpcgen";
  /** The same in words. */
  readonly route: string;
  /** Its processes, server first; they may have children. */
  readonly pieces: readonly Child[];
  stop(): Promise<void>;
}
