/**
 * All commands, by name. Each is loaded when it is wanted, so that a netcat
 * starts without the server's code.
 *
 * @module
 */

import type { Command } from "./command.ts";

/** In the order in which the help lists them. */
export const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  server: async () => {
    const { startServer } = await import("../server/server.ts");
    const { forgetPublicRoots } = await import("./trusted_roots.ts");
    return (await import("./server.ts")).serverCommand((options, log) => {
      forgetPublicRoots(options.kubernetes ?? options.kubelet?.lookups);
      return startServer(options, log);
    });
  },
  agent: async () => {
    const { startJoinedAgent } = await import("../agent/joined_agent.ts");
    const { proxyEnvironment } = await import(
      "../net/dial/proxy_environment.ts"
    );
    const { forgetPublicRoots } = await import("./trusted_roots.ts");
    return (await import("./agent.ts")).agentCommand((options, log) => {
      const proxy = proxyEnvironment((name) => Deno.env.get(name));
      // Without a CA of its own the agent needs the public ones.
      const hasOwn = options.identity !== undefined ||
        options.server.caFile !== "";
      const trustsOnlyGiven = hasOwn && forgetPublicRoots(options.leases);
      return startJoinedAgent(options, { log, proxy, trustsOnlyGiven });
    });
  },
  "yurttunnel-agent": async () => {
    const { startKubernetesAgent } = await import(
      "../agent/kubernetes_agent.ts"
    );
    const { proxyEnvironment } = await import(
      "../net/dial/proxy_environment.ts"
    );
    const { forgetPublicRootsIfKnown } = await import("./trusted_roots.ts");
    const { yurttunnelAgentCommand } = await import("./yurttunnel_agent.ts");
    return yurttunnelAgentCommand(({ agent, kubernetes }, log) => {
      const { api, bootstrap } = kubernetes;
      const trustsOnlyGiven = forgetPublicRootsIfKnown(
        bootstrap === undefined ? [api] : [api, bootstrap],
      );
      const proxy = proxyEnvironment((name) => Deno.env.get(name));
      const environment = { log, proxy, trustsOnlyGiven };
      return startKubernetesAgent(agent, kubernetes, environment);
    });
  },
  join: async () => (await import("./join.ts")).JOIN_COMMAND,
  token: async () => (await import("./token.ts")).TOKEN_COMMAND,
  node: async () => (await import("./node.ts")).NODE_COMMAND,
  ca: async () => (await import("./ca.ts")).CA_COMMAND,
  "egress-config": async () =>
    (await import("./egress_config.ts")).EGRESS_CONFIG_COMMAND,
  proxy: async () => (await import("./proxy.ts")).PROXY_COMMAND,
  services: async () => (await import("./services.ts")).SERVICES_COMMAND,
  endpoints: async () => (await import("./endpoints.ts")).ENDPOINTS_COMMAND,
  service: async () => (await import("./service_register.ts")).SERVICE_COMMAND,
  xds: async () => (await import("./xds.ts")).XDS_COMMAND,
  adsc: async () => (await import("./adsc.ts")).ADSC_COMMAND,
  dial: async () => (await import("./dial.ts")).DIAL_COMMAND,
  forward: async () => (await import("./forward.ts")).FORWARD_COMMAND,
  bench: async () => (await import("./bench.ts")).BENCH_COMMAND,
  demo: async () => (await import("./demo.ts")).DEMO_COMMAND,
  version: async () => (await import("./version.ts")).VERSION_COMMAND,
};
