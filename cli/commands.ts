/**
 * All commands, by name. Each is loaded when it is wanted, so that a netcat
 * starts without the server's code.
 *
 * @module
 */

import type { Command } from "./program/command.ts";

/** In the order in which the help lists them. */
export const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  server: async () => {
    const { startServer } = await import("../server/server.ts");
    const { showServer } = await import("../admin/server/show_server.ts");
    return (await import("./server/command.ts")).serverCommand((options, log) =>
      startServer(options, log, showServer)
    );
  },
  agent: async () => {
    const { startJoinedAgent } = await import("../agent/joined_agent.ts");
    const { proxyEnvironment } = await import(
      "../net/dial/proxy_environment.ts"
    );
    const { agentRoutes: show } = await import(
      "../admin/agent/agent_routes.ts"
    );
    return (await import("./agent/command.ts")).agentCommand((options, log) => {
      const proxy = proxyEnvironment((name) => Deno.env.get(name));
      return startJoinedAgent(options, { log, proxy, show });
    });
  },
  "yurttunnel-agent": async () => {
    const { startKubernetesAgent } = await import(
      "../agent/kubernetes_agent.ts"
    );
    const { proxyEnvironment } = await import(
      "../net/dial/proxy_environment.ts"
    );
    const { yurttunnelAgentCommand } = await import(
      "./yurttunnel_agent/command.ts"
    );
    const { agentRoutes: show } = await import(
      "../admin/agent/agent_routes.ts"
    );
    return yurttunnelAgentCommand(({ agent, kubernetes }, log) => {
      const proxy = proxyEnvironment((name) => Deno.env.get(name));
      return startKubernetesAgent(agent, kubernetes, { log, proxy, show });
    });
  },
  status: async () => (await import("./ask/status.ts")).STATUS_COMMAND,
  dashboard: async () => (await import("./dashboard.ts")).DASHBOARD_COMMAND,
  top: async () => (await import("./ask/top/top.ts")).TOP_COMMAND,
  conn: async () => (await import("./ask/conn.ts")).CONN_COMMAND,
  join: async () => (await import("./join.ts")).JOIN_COMMAND,
  token: async () => (await import("./token.ts")).TOKEN_COMMAND,
  node: async () => (await import("./node.ts")).NODE_COMMAND,
  ca: async () => (await import("./ca.ts")).CA_COMMAND,
  state: async () => (await import("./state.ts")).STATE_COMMAND,
  ping: async () => (await import("./doctor/ping.ts")).PING_COMMAND,
  trace: async () => (await import("./doctor/trace.ts")).TRACE_COMMAND,
  doctor: async () => (await import("./doctor/command.ts")).DOCTOR_COMMAND,
  "egress-config": async () =>
    (await import("./egress_config.ts")).EGRESS_CONFIG_COMMAND,
  proxy: async () => (await import("./proxy/command.ts")).PROXY_COMMAND,
  services: async () => (await import("./services.ts")).SERVICES_COMMAND,
  endpoints: async () => (await import("./services.ts")).ENDPOINTS_COMMAND,
  service: async () => (await import("./service_register.ts")).SERVICE_COMMAND,
  xds: async () => (await import("./xds.ts")).XDS_COMMAND,
  adsc: async () => (await import("./adsc/command.ts")).ADSC_COMMAND,
  dial: async () => (await import("./dial.ts")).DIAL_COMMAND,
  forward: async () => (await import("./forward.ts")).FORWARD_COMMAND,
  bench: async () => (await import("./bench/command.ts")).BENCH_COMMAND,
  demo: async () => (await import("./demo/command.ts")).DEMO_COMMAND,
  upgrade: async () => (await import("./upgrade.ts")).UPGRADE_COMMAND,
  policy: async () => (await import("./policy.ts")).POLICY_COMMAND,
  config: async () =>
    (await import("./config/command.ts")).configCommand(allCommands),
  "support-bundle": async () =>
    (await import("./support/command.ts")).supportCommand(allCommands),
  explain: async () => (await import("./explain.ts")).EXPLAIN_COMMAND,
  completion: async () => {
    const { completionCommand } = await import("./reference/completion.ts");
    return completionCommand(allCommands);
  },
  "complete-names": async () =>
    (await import("./reference/complete_names.ts")).COMPLETE_NAMES_COMMAND,
  man: async () => (await import("./reference/man.ts")).manCommand(allCommands),
  version: async () => (await import("./version.ts")).VERSION_COMMAND,
};

/** All of them at once, for what is made of their tables. */
export function allCommands(): Promise<readonly Command[]> {
  return Promise.all(Object.values(COMMANDS).map((load) => load()));
}
