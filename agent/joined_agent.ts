/**
 * An agent under the identity of its node: it joins if that was not done, and
 * starts with the joined identity.
 *
 * @module
 */

import { type RunningAgent, startAgent } from "./agent.ts";
import type { AgentEnvironment } from "./shown_agent.ts";
import type { AgentOptions } from "./options.ts";

/**
 * Starts an agent, with an identity of our own kind if the options ask for it.
 * A server that cannot be reached is not an error: it goes on trying.
 *
 * @throws {EnrolmentError | PrivateFileError} When the node gets no identity.
 * @throws As `startAgent`.
 */
export async function startJoinedAgent(
  options: AgentOptions,
  environment: AgentEnvironment,
): Promise<RunningAgent> {
  const whole = {
    ...{ ...environment, ...await proxyOf(options) },
    ...await relayOf(options),
  };
  if (options.identity === undefined) return startAgent(options, whole);
  const { log, proxy, random } = environment;
  // Loaded when wanted: making requests for certificates is a lot of code.
  const { AgentIdentity } = await import("./identity/agent_identity.ts");
  const identity = await AgentIdentity.open(options.identity, {
    log,
    servers: options.server.addresses,
    proxy,
    random,
    isPatient: true,
  });
  const joined: AgentOptions = {
    ...options,
    agentId: options.agentId || identity.node,
    identifiers: options.identifiers ?? identity.identifiers,
    server: { ...options.server, addresses: identity.servers },
  };
  return startAgent(joined, { ...whole, identity });
}

/** Loaded when wanted as well: few agents serve services. */
async function proxyOf(
  { servicesFile, addressFile }: AgentOptions,
): Promise<Pick<AgentEnvironment, "openProxy">> {
  if (servicesFile === undefined) return {};
  const { agentServices, openAgentProxy } = await import(
    "../services/proxy/service_proxy.ts"
  );
  const source = await agentServices(servicesFile);
  return {
    openProxy: (program, changed) =>
      openAgentProxy(source, addressFile, program, changed),
  };
}

async function relayOf(
  { relay }: AgentOptions,
): Promise<Pick<AgentEnvironment, "openRelay">> {
  if (relay === undefined) return {};
  const { Relay } = await import("./relay/relay.ts");
  return { openRelay: (...parts) => new Relay(relay, ...parts) };
}
