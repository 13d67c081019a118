/**
 * The agent with what it takes from this process: its environment.
 *
 * @module
 */

import { startAgent } from "../agent/agent.ts";
import { proxyEnvironment } from "../host/proxy_environment.ts";
import type { StartAgent } from "./agent.ts";

/** For {@linkcode agentCommand}. */
export const startAgentHere: StartAgent = (options, log) => {
  const proxy = proxyEnvironment((name) => Deno.env.get(name));
  const agent = startAgent(options, { log, proxy });
  return Promise.resolve({
    finished: agent.finished,
    shutdown: () => agent.drain(),
    stop: (reason) => agent.stop(reason),
  });
};
