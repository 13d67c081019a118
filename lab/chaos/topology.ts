/**
 * What stands on a stage, as data: how many servers, where their state is, and
 * how each agent finds them.
 *
 * @module
 */

/** Where servers keep what they share. */
export type StateKind =
  | "directory"
  | "etcd"
  | "kubernetes"
  /** A directory; servers are known by their Lease objects, as upstream's. */
  | "leases"
  /** A directory, and several processes to each server. */
  | "workers";

/** One agent, on a machine of its own name. */
export interface AgentPlan {
  readonly name: string;
  /** The name by which callers reach what it serves. */
  readonly target: string;
  /**
   * How it finds its servers: each by its name, or all behind a load balancer
   * that it dials until it has as many as there are said to be.
   */
  readonly finds: "each" | "balancer";
}

/** See the module description. */
export interface Topology {
  readonly name: string;
  readonly isInCut: boolean;
  readonly state: StateKind;
  readonly servers: readonly string[];
  readonly agents: readonly AgentPlan[];
  /** Flags of every server and every agent besides the stage's own. */
  readonly serverFlags: readonly string[];
  readonly agentFlags: readonly string[];
}

/** Two agents of their own nodes, and two in front of one target. */
const AGENTS: readonly AgentPlan[] = [
  { name: "n1", target: "n1", finds: "each" },
  { name: "n2", target: "n2", finds: "balancer" },
  { name: "n3", target: "site", finds: "each" },
  { name: "n4", target: "site", finds: "each" },
];

const SERVERS = ["s1", "s2", "s3"];

/** Servers that know of each other, and pass dials on. */
const MEET = ["--advertise-address={address}:8091", "--peer-forwarding"];

function topology(
  name: string,
  state: StateKind,
  isInCut: boolean,
  serverFlags: readonly string[] = MEET,
): Topology {
  return {
    ...{ name, state, isInCut, serverFlags, agentFlags: [] },
    ...{ servers: SERVERS, agents: AGENTS },
  };
}

/** The first has all faults; the others those of what they stand on. */
export const TOPOLOGIES: readonly Topology[] = [
  topology("shared directory", "directory", true),
  topology("etcd", "etcd", true),
  topology("Kubernetes", "kubernetes", true),
  // As upstream's: known by count and leases alone, each on its own.
  topology("Kubernetes leases", "leases", false, []),
  topology("workers", "workers", false, [...MEET, "--workers=2"]),
];

/** What is reached behind the agents. */
export function targetsOf({ agents }: Topology): readonly string[] {
  return [...new Set(agents.map(({ target }) => target))];
}

/** Those that stand before a target. */
export function agentsOf(topology: Topology, target: string): string[] {
  return topology.agents.filter((agent) => agent.target === target)
    .map(({ name }) => name);
}
