/**
 * What the dashboards for Grafana show: a line for each question. Only metrics
 * that exist are asked for, which a test checks, and a real Prometheus too.
 *
 * @module
 */

/** One panel. */
export interface Panel {
  readonly type: "stat" | "timeseries" | "table";
  readonly title: string;
  readonly about?: string;
  readonly unit: string;
  readonly queries: readonly (readonly [legend: string, expr: string])[];
  /** From this value on something is wrong. */
  readonly bad?: number;
}

/** One dashboard. */
export interface Board {
  readonly uid: string;
  readonly title: string;
  /** Names, and the query that lists their values. */
  readonly variables: readonly (readonly [name: string, query: string])[];
  readonly panels: readonly Panel[];
}

const UPSTREAM = "konnectivity_network_proxy_server";
const AGENT = "konnectivity_network_proxy_agent";

const of = (job: string) => `job="tunnel-${job}", instance=~"$instance"`;
const SERVER = of("server");
const NODE = of("agent");
const PROXY = of("proxy");

const instances = (job: string) =>
  ["instance", `label_values(up{job="tunnel-${job}"}, instance)`] as const;

const stat = (
  title: string,
  expr: string,
  unit = "short",
  bad?: number,
): Panel => ({
  type: "stat",
  title,
  unit,
  queries: [["", expr]],
  ...(bad === undefined ? {} : { bad }),
});

const graph = (
  title: string,
  unit: string,
  ...queries: Panel["queries"]
): Panel => ({ type: "timeseries", title, unit, queries });

const quantile = (q: number, metric: string, by: string, labels: string) =>
  `histogram_quantile(${q}, sum by (${by === "" ? "" : `${by}, `}le) ` +
  `(rate(${metric}_bucket{${labels}}[$__rate_interval])))`;

const rate = (metric: string, labels: string, by: string) =>
  `sum by (${by}) (rate(${metric}{${labels}}[$__rate_interval]))`;

const process = (labels: string): readonly Panel[] => [
  graph("CPU", "percentunit", [
    "{{instance}}",
    `rate(process_cpu_seconds_total{${labels}}[$__rate_interval])`,
  ]),
  graph("Memory", "bytes", [
    "{{instance}}",
    `process_resident_memory_bytes{${labels}}`,
  ]),
];

const EXPIRY = (labels: string): Panel => ({
  type: "table",
  title: "What expires next",
  about: "Seconds until the end of each certificate, the soonest first.",
  unit: "s",
  queries: [[
    "",
    `bottomk(10, {__name__=~"tunnel_(server|agent)_certificate_expiry_timestamp_seconds", ${labels}} - time())`,
  ]],
});

// deno-fmt-ignore: the columns are the point.
const FLEET: Board = {
  uid: "tunnel-fleet",
  title: "tunnel: fleet",
  variables: [instances("server")],
  panels: [
    stat("Servers that answer", `sum(up{${SERVER}})`),
    stat("Nodes that answer", `sum(up{job="tunnel-agent"})`),
    stat("Nodes offline", `count(max by (node) (tunnel_node_online{${SERVER}}) == 0) or vector(0)`, "short", 1),
    stat("Agents linked (most of one server)", `max(${UPSTREAM}_ready_backends{${SERVER}})`),
    stat("Connections", `sum(${UPSTREAM}_established_connections{${SERVER}})`),
    stat("Copied identities", `sum(tunnel_server_duplicate_identities{${SERVER}})`, "short", 1),
    graph("Agents by server", "short", ["{{instance}}", `max by (instance) (${UPSTREAM}_ready_backends{${SERVER}})`]),
    graph("Throughput", "Bps", ["{{direction}}", rate("tunnel_server_bytes_total", SERVER, "direction")]),
    graph("Dials", "ops",
      ["answered", `sum(rate(${UPSTREAM}_dial_duration_seconds_count{${SERVER}}[$__rate_interval]))`],
      ["failed: {{reason}}", rate(`${UPSTREAM}_dial_failure_count`, SERVER, "reason")]),
    graph("Time of a dial", "s", ["median", quantile(0.5, `${UPSTREAM}_dial_duration_seconds`, "", SERVER)],
      ["99 of 100", quantile(0.99, `${UPSTREAM}_dial_duration_seconds`, "", SERVER)]),
    graph("Nodes that move most", "Bps",
      ["{{node}}", `topk(10, ${rate("tunnel_node_received_bytes_total", SERVER, "node")})`]),
    graph("Nodes that are far", "s",
      ["{{node}}", `topk(10, max by (node) (tunnel_node_round_trip_seconds{${SERVER}}))`]),
    graph("Nodes whose dials fail", "ops",
      ["{{node}}", `topk(10, ${rate("tunnel_node_dial_failures_total", SERVER, "node")})`]),
    graph("How connections end", "ops", ["{{end}}", rate("tunnel_server_connection_ends_total", SERVER, "end")]),
    { type: "table", title: "Which nodes are offline", about: "1: it is linked to a server; 0: to none.", unit: "short",
      queries: [["", `sort(max by (node) (tunnel_node_online{${SERVER}}))`]] },
    EXPIRY(`job=~"tunnel-.*"`),
  ],
};

// deno-fmt-ignore: the columns are the point.
const ONE_NODE: Board = {
  uid: "tunnel-node",
  title: "tunnel: one node",
  variables: [instances("agent")],
  panels: [
    stat("Answers", `min(up{${NODE}})`),
    stat("Servers linked", `min(${AGENT}_open_server_connections{${NODE}})`),
    stat("Connections to targets", `sum(${AGENT}_open_endpoint_connections{${NODE}})`),
    stat("Waits to be read", `sum(tunnel_agent_waiting_bytes{${NODE}})`, "bytes"),
    stat("Late timers", `max(process_event_loop_lag_seconds{${NODE}})`, "s", 0.5),
    stat("Runs for", `time() - max(process_start_time_seconds{${NODE}})`, "s"),
    graph("Throughput", "Bps", ["{{direction}}", rate("tunnel_agent_bytes_total", NODE, "direction")]),
    graph("Time to connect to targets", "s",
      ["median", quantile(0.5, `${AGENT}_dial_duration_seconds`, "instance", NODE)],
      ["99 of 100", quantile(0.99, `${AGENT}_dial_duration_seconds`, "instance", NODE)]),
    graph("Failures", "ops", ["dial: {{reason}}", rate(`${AGENT}_endpoint_dial_failure_total`, NODE, "reason")],
      ["refused by a rule", `sum(rate(tunnel_agent_refused_dials_total{${NODE}}[$__rate_interval]))`]),
    graph("How connections end", "ops", ["{{end}}", rate("tunnel_agent_connection_ends_total", NODE, "end")]),
    ...process(NODE),
    EXPIRY(NODE),
  ],
};

// deno-fmt-ignore: the columns are the point.
const HEALTH: Board = {
  uid: "tunnel-server",
  title: "tunnel: server health",
  variables: [instances("server")],
  panels: [
    stat("Answers", `min(up{${SERVER}})`),
    stat("Late timers", `max(process_event_loop_lag_seconds{${SERVER}})`, "s", 0.5),
    stat("Runs for", `time() - max(process_start_time_seconds{${SERVER}})`, "s"),
    stat("Other servers", `max(tunnel_server_peers{${SERVER}})`),
    stat("Problems with them", `sum(tunnel_server_peer_problems{${SERVER}})`, "short", 1),
    stat("Files that cannot be used", `sum(tunnel_server_reload_stale{${SERVER}})`, "short", 1),
    ...process(SERVER),
    graph("Links", "short", ["{{carrier}}", `sum by (carrier) (tunnel_server_links{${SERVER}})`]),
    graph("Waits for slow readers", "bytes", ["{{instance}}", `tunnel_server_waiting_bytes{${SERVER}}`]),
    graph("Connections of all kinds", "short", ["open", `sum(tunnel_server_connections{${SERVER}})`],
      ["of whom nothing is known yet", `sum(tunnel_server_unauthenticated_connections{${SERVER}})`],
      ["dials under way", `sum(${UPSTREAM}_pending_backend_dials{${SERVER}})`]),
    graph("Turned away", "ops",
      ["agents", `sum(rate(tunnel_server_refused_agents_total{${SERVER}}[$__rate_interval]))`],
      ["callers", `sum(rate(tunnel_server_refused_callers_total{${SERVER}}[$__rate_interval]))`],
      ["dials, by policy", `sum(rate(tunnel_server_refused_dials_total{${SERVER}}[$__rate_interval]))`],
      ["sources under a penalty", `sum(rate(tunnel_server_penalized_sources_total{${SERVER}}[$__rate_interval]))`]),
    graph("Joining and renewing", "ops",
      ["{{method}}: {{status}}", rate("tunnel_server_identity_calls_total", SERVER, "method, status")]),
    EXPIRY(SERVER),
  ],
};

// deno-fmt-ignore: the columns are the point.
const SERVICES: Board = {
  uid: "tunnel-services",
  title: "tunnel: services and discovery",
  variables: [[
    "instance",
    'label_values(up{job=~"tunnel-(server|proxy)"}, instance)',
  ]],
  panels: [
    stat("Ports served", `sum(tunnel_proxy_ports{${PROXY}})`),
    stat("Ports not served", `sum(tunnel_proxy_unserved_ports{${PROXY}})`, "short", 1),
    stat("Ports without an endpoint", `sum(tunnel_proxy_empty_ports{${PROXY}})`, "short", 1),
    stat("Services known", `max(tunnel_catalog_services{${SERVER}})`),
    stat("Sources away", `count(tunnel_catalog_source_up{${SERVER}} == 0) or vector(0)`, "short", 1),
    stat("Clients of discovery", `sum(tunnel_server_discovery_clients{${SERVER}})`),
    graph("Connections by service", "short",
      ["{{service}}", `sum by (service) (tunnel_proxy_open_connections{${PROXY}})`]),
    graph("New connections", "ops", ["{{service}}", rate("tunnel_proxy_connections_total", PROXY, "service")]),
    graph("Time to connect", "s",
      ["{{service}}, median", quantile(0.5, "tunnel_proxy_connect_seconds", "service", PROXY)],
      ["{{service}}, 99 of 100", quantile(0.99, "tunnel_proxy_connect_seconds", "service", PROXY)]),
    graph("Throughput", "Bps",
      ["{{service}} from clients", rate("tunnel_proxy_bytes_from_clients_total", PROXY, "service")],
      ["{{service}} to clients", rate("tunnel_proxy_bytes_to_clients_total", PROXY, "service")]),
    graph("Failures", "ops", ["{{service}} refused", rate("tunnel_proxy_refused_connections_total", PROXY, "service")],
      ["{{endpoint}} does not answer", rate("tunnel_proxy_endpoint_dial_failures_total", PROXY, "endpoint")]),
    graph("Endpoints left out", "short",
      ["{{endpoint}}", `max by (endpoint) (tunnel_proxy_endpoint_is_out{${PROXY}})`]),
    graph("Pushes of discovery", "ops", ["{{type}}", rate("tunnel_server_discovery_responses_total", SERVER, "type")]),
    graph("Time of a push", "s",
      ["until it is written", quantile(0.99, "tunnel_server_discovery_push_seconds", "", SERVER)],
      ["until all have it", quantile(0.99, "tunnel_server_discovery_convergence_seconds", "", SERVER)]),
    graph("What clients refuse", "ops", ["{{type}}", rate("tunnel_server_discovery_rejects_total", SERVER, "type")]),
  ],
};

/** All of them. */
export const BOARDS: readonly Board[] = [FLEET, ONE_NODE, HEALTH, SERVICES];
