/**
 * An agent that has its certificate from the cluster: waits for the first one,
 * and starts then.
 *
 * @module
 */

import { metaHandler } from "../net/admin/http_endpoints.ts";
import { listenHttp } from "../net/listen/listeners.ts";
import { processMetrics } from "../net/program/program.ts";
import { type RunningAgent, startAgent } from "./agent.ts";
import {
  KubernetesIdentity,
  type KubernetesIdentityOptions,
} from "./identity/cluster/kubernetes_identity.ts";
import type { AgentEnvironment } from "./shown_agent.ts";
import type { AgentOptions } from "./options.ts";

/**
 * Starts an agent. Neither an API server nor a server that cannot be reached is
 * an error: it goes on trying, and its health port says what is missing.
 *
 * @throws As `startAgent`.
 */
export async function startKubernetesAgent(
  options: AgentOptions,
  kubernetes: KubernetesIdentityOptions,
  environment: AgentEnvironment,
): Promise<RunningAgent> {
  const identity = await KubernetesIdentity.open(kubernetes, environment.log);
  try {
    await untilFirst(identity, options);
    return startAgent(options, { ...environment, identity });
  } catch (error) {
    identity.stop();
    throw error;
  }
}

/** Meanwhile an operator may ask what it waits for. */
async function untilFirst(
  identity: KubernetesIdentity,
  { health }: AgentOptions,
): Promise<void> {
  const listener = listenHttp(
    health,
    metaHandler({
      metrics: processMetrics("agent"),
      checks: [{ name: "certificate", problem: () => identity.problem }],
      style: "agent",
    }),
  );
  try {
    await identity.first();
  } finally {
    listener.close();
    // The agent wants the same port.
    await listener.finished;
  }
}
