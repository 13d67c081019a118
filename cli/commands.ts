/**
 * All commands, by name: what the help says of each, and its module, which is
 * loaded when it is wanted. So a netcat starts without the server's code, and a
 * list of commands without any of them.
 *
 * @module
 */

import type { Log } from "../platform/log/log.ts";
import type { Command, ListedCommand } from "./program/command.ts";

/** What the help says of each, by group, in the order in which people come to need it. */
export const GROUPS: Readonly<
  Record<string, Readonly<Record<string, string>>>
> = {
  Run: {
    server: "Accept agents, and carry connections to their nodes",
    agent: "Connect a node to servers, and dial targets for them",
    proxy: "Serve services on local ports, balanced over their endpoints",
    "yurttunnel-agent":
      "Connect a node of a cluster, as yurttunnel's agent does",
    install: "Make a server, agent or proxy a service of systemd",
    uninstall: "Stop a service that tunnel install made, and remove it",
    upgrade: "Replace a server, agent or proxy while it runs",
    demo: "Show it all on this machine, then clean up",
  },
  Connect: {
    dial: "Connect to a target through the tunnel (netcat, for ssh)",
    forward: "Forward local ports to targets through the tunnel",
    bench: "Measure a running tunnel: round trips and throughput",
  },
  See: {
    status: "Show what needs attention, who is connected, what expires",
    top: "Follow connections live, sort them, end one",
    conn: "List tunneled connections, and end some",
    dashboard: "Print a link that opens the server's dashboard in a browser",
    doctor: "Find faults, and their remedies",
    ping: "Ask a node's agent for a sign of life, and time it",
    trace: "Show where the time of a dial goes, hop by hop",
  },
  "Nodes and keys": {
    join: "Give this node an identity with a token, once",
    token: "Create, list and revoke tokens that let nodes join",
    node: "List, describe, approve, revoke and forget nodes",
    ca: "Show and change the server's certificate authority",
    policy: "Say which rule decides whether a caller may dial a target",
    state: "Copy or check what servers have in common",
  },
  Services: {
    services: "Show what a proxy serves, and where",
    endpoints: "Show a service's endpoints, and why they are left out",
    service: "Register endpoints of a service in etcd",
    xds: "Show how far clients of discovery are, and what they lack",
    adsc: "Be a client of discovery: dump, wait, assert",
  },
  Help: {
    help: "Explain a command: tunnel help COMMAND, --all for every flag",
    explain: "Say what a code such as TUN503 means, and what to do",
    config: "Check configuration files, print flags in effect, or schemas",
    "egress-config":
      "Print kube-apiserver's configuration for the way to a server",
    "support-bundle":
      "Write one file with what a helper needs, without secrets",
    completion: "Print a script that completes words in bash, zsh or fish",
    man: "Print a manual page for man(1)",
    version: "Print the version of this program and of what it runs on",
  },
};

/** How each is loaded. */
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
    const { agentCommand } = await import("./agent/command.ts");
    const toolsOf = await agentTools();
    return agentCommand((options, log) =>
      startJoinedAgent(options, toolsOf(log))
    );
  },
  "yurttunnel-agent": async () => {
    const { startKubernetesAgent } = await import(
      "../agent/kubernetes_agent.ts"
    );
    const { yurttunnelAgentCommand } = await import(
      "./yurttunnel_agent/command.ts"
    );
    const toolsOf = await agentTools();
    return yurttunnelAgentCommand(({ agent, kubernetes }, log) =>
      startKubernetesAgent(agent, kubernetes, toolsOf(log))
    );
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
  install: async () => {
    const { installCommand } = await import("./install/command.ts");
    // deno-lint-ignore tunnel/own-keys -- one of three.
    return installCommand((kind) => COMMANDS[kind]!());
  },
  uninstall: async () =>
    (await import("./install/command.ts")).UNINSTALL_COMMAND,
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

/** What both kinds of agents are started with. */
async function agentTools() {
  const { proxyEnvironment } = await import(
    "../net/dial/proxy_environment.ts"
  );
  const { agentRoutes: show } = await import("../admin/agent/agent_routes.ts");
  return (log: Log) => {
    const proxy = proxyEnvironment((name) => Deno.env.get(name));
    return { log, proxy, show };
  };
}

/** All commands, for code that reads their tables. */
export function allCommands(): Promise<readonly ListedCommand[]> {
  const listed = new Map(Object.values(GROUPS).flatMap(Object.entries<string>));
  return Promise.all(
    Object.entries(COMMANDS).map(async ([name, load]) => ({
      ...await load(),
      summary: listed.get(name) ?? "",
      isHidden: !listed.has(name),
    })),
  );
}
