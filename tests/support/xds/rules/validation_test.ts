import { assertEquals } from "@std/assert";
import { pack } from "../../../../proto/xds/any.ts";
import {
  type Cluster,
  HttpConnectionManager,
  type Listener,
  type LocalityLbEndpoints,
  type Node,
  RawBuffer,
  type RouteConfiguration,
  Router,
  TcpProxy,
  UdpProxyConfig,
  UdpRoute,
} from "../../../../proto/xds/xds_messages.ts";
import { brokenRule } from "./published_rules.ts";
import { problemOf } from "./validation.ts";

const ADS = { ads: {}, resourceApiVersion: 2 };

const CLUSTER: Cluster = {
  name: "c",
  type: 3,
  edsClusterConfig: { edsConfig: ADS },
  connectTimeout: { seconds: 5 },
};

const cluster = (changes: Cluster) =>
  problemOf("cluster", { ...CLUSTER, ...changes });

// deno-fmt-ignore: a case is a line.
const CLUSTERS: readonly [Cluster, string | undefined][] = [
  [{}, undefined],
  [{ connectTimeout: undefined }, undefined],
  [{ connectTimeout: { seconds: 0 } }, "connect_timeout is 0 s, it has to be above 0 s"],
  [{ name: "" }, "name is empty"],
  [{ lbPolicy: 4 }, "lb_policy is 4, which is not defined"],
  [{ edsClusterConfig: undefined }, "eds_cluster_config has to be set for type EDS"],
  [{ edsClusterConfig: {} }, "eds_cluster_config.eds_config has to be ads"],
  [{ edsClusterConfig: { edsConfig: { self: {} } } }, "eds_cluster_config.eds_config has to be ads"],
  [
    { edsClusterConfig: { edsConfig: { resourceApiVersion: 2 } } },
    "eds_cluster_config.eds_config.config_source_specifier has to be set",
  ],
  [{ type: 1 }, "load_assignment has to be set for a type other than EDS"],
  [{ type: 1, loadAssignment: { clusterName: "c" } }, undefined],
  [{ type: 1, loadAssignment: {} }, "load_assignment.cluster_name is empty"],
  [
    { leastRequestLbConfig: { choiceCount: { value: 1 } } },
    "least_request_lb_config.choice_count is 1, it has to be at least 2",
  ],
  [{ healthChecks: [{ tcpHealthCheck: {}, interval: { seconds: 1 } }] }, "health_checks[0].timeout has to be set"],
  [
    { circuitBreakers: { thresholds: [{}, { priority: 2 }] } },
    "circuit_breakers.thresholds[1].priority is 2, which is not defined",
  ],
  [{ transportSocket: { typedConfig: pack(RawBuffer, {}) } }, "transport_socket.name is empty"],
  [{ metadata: { filterMetadata: { "": { fields: {} } } } }, "metadata.filter_metadata has a key that is empty"],
];

Deno.test("clusters that clients refuse are known", () => {
  for (const [changes, problem] of CLUSTERS) {
    const expected = problem &&
      `Cluster ${JSON.stringify(changes.name ?? "c")}: ${problem}`;
    assertEquals(cluster(changes), expected);
  }
});

const at = (address: string, portValue = 80) => ({
  endpoint: { address: { socketAddress: { address, portValue } } },
});

const group = (changes: LocalityLbEndpoints = {}): LocalityLbEndpoints => ({
  locality: {},
  loadBalancingWeight: { value: 1 },
  lbEndpoints: [at("10.0.0.1"), at("10.0.0.2")],
  ...changes,
});

const assignment = (...endpoints: readonly LocalityLbEndpoints[]) =>
  problemOf("endpoints", { clusterName: "c", endpoints });

const big = { value: 0xffff_ffff };

// deno-fmt-ignore: a case is a line.
const ASSIGNMENTS: readonly [
  readonly LocalityLbEndpoints[],
  string | undefined,
][] = [
  [[], undefined],
  [[group()], undefined],
  [[group({ lbEndpoints: [] })], undefined],
  [[group(), group({ priority: 1, lbEndpoints: [] })], undefined],
  [[group({ locality: undefined })], "endpoints[0].locality has to be set"],
  [[group({ loadBalancingWeight: undefined })], "endpoints[0].load_balancing_weight has to be set"],
  [
    [group({ loadBalancingWeight: { value: 0 } })],
    "endpoints[0].load_balancing_weight is 0, it has to be at least 1",
  ],
  [[group({ priority: 1 })], "endpoints have priority 1 and not 0"],
  [[group({ priority: 129 })], "endpoints[0].priority is 129, it has to be at most 128"],
  [[group(), group()], "endpoints[1].locality is there already"],
  [
    [
      group({ loadBalancingWeight: big, lbEndpoints: [] }),
      group({ locality: { zone: "z" }, lbEndpoints: [] }),
    ],
    "weights of localities of priority 0 are 4294967296 together",
  ],
  [[group({ lbEndpoints: [at("10.0.0.1", 0)] })], "endpoints[0].lb_endpoints[0].endpoint.address has port 0"],
  [
    [group({ lbEndpoints: [at("10.0.0.1", 65_536)] })],
    "endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value is 65536, it has to be at most 65535",
  ],
  [
    [group({ lbEndpoints: [at("db.example")] })],
    'endpoints[0].lb_endpoints[0].endpoint.address is "db.example", which is no IP',
  ],
  [
    [group({ lbEndpoints: [at("10.0.0.1"), at("10.0.0.1")] })],
    "endpoints[0].lb_endpoints[1].endpoint.address is 10.0.0.1 80, which is there already",
  ],
  [[group({ lbEndpoints: [{ endpoint: {} }] })], "endpoints[0].lb_endpoints[0].endpoint.address has to be set"],
  [
    [group({
      lbEndpoints: [{ ...at("10.0.0.1"), loadBalancingWeight: { value: 0 } }],
    })],
    "endpoints[0].lb_endpoints[0].load_balancing_weight is 0, it has to be at least 1",
  ],
];

Deno.test("assignments that clients refuse or leave out are known", () => {
  for (const [groups, problem] of ASSIGNMENTS) {
    const expected = problem && `ClusterLoadAssignment "c": ${problem}`;
    assertEquals(assignment(...groups), expected);
  }
});

const MANAGER: HttpConnectionManager = {
  statPrefix: "s",
  rds: { configSource: ADS, routeConfigName: "r" },
  httpFilters: [{ name: "router", typedConfig: pack(Router, {}) }],
};

const api = (changes: HttpConnectionManager = {}): Listener => ({
  name: "l",
  apiListener: {
    apiListener: pack(HttpConnectionManager, { ...MANAGER, ...changes }),
  },
});

const tcp = (changes: TcpProxy = {}): Listener => ({
  name: "l",
  address: { socketAddress: { address: "127.0.0.1", portValue: 80 } },
  filterChains: [{
    filters: [{
      name: "tcp",
      typedConfig: pack(TcpProxy, {
        statPrefix: "s",
        cluster: "c",
        ...changes,
      }),
    }],
  }],
});

const UDP: Listener = {
  name: "l",
  address: {
    socketAddress: { protocol: 1, address: "127.0.0.1", portValue: 53 },
  },
  listenerFilters: [{
    name: "udp",
    typedConfig: pack(UdpProxyConfig, {
      statPrefix: "s",
      matcher: {
        onNoMatch: {
          action: {
            name: "route",
            typedConfig: pack(UdpRoute, { cluster: "c" }),
          },
        },
      },
    }),
  }],
};

const socket = (address: string, portValue: number) => ({
  socketAddress: { address, portValue },
});

// deno-fmt-ignore: a case is a line.
const LISTENERS: readonly [Listener, string | undefined][] = [
  [api(), undefined],
  [tcp(), undefined],
  [UDP, undefined],
  [api({ httpFilters: [] }), "http_filters in api_listener.api_listener has to end with a Router"],
  [api({ statPrefix: "" }), "api_listener.api_listener.stat_prefix is empty"],
  [
    api({ rds: { configSource: {}, routeConfigName: "r" } }),
    "api_listener.api_listener.rds.config_source.config_source_specifier has to be set",
  ],
  [
    api({ rds: { configSource: { self: {} }, routeConfigName: "r" } }),
    "rds.config_source in api_listener.api_listener has to be ads",
  ],
  [api({ rds: { configSource: ADS } }), "rds.route_config_name in api_listener.api_listener is empty"],
  [api({ rds: undefined }), "api_listener.api_listener.route_specifier has to be set"],
  [api({ xffNumTrustedHops: 1 }), "xff_num_trusted_hops in api_listener.api_listener is not 0"],
  [
    { name: "l", apiListener: { apiListener: pack(Router, {}) } },
    "api_listener.api_listener has to be an HttpConnectionManager",
  ],
  [{ name: "l" }, "address has to be set unless api_listener is"],
  [{ ...tcp(), filterChains: [] }, "filter_chains is empty"],
  [
    { ...tcp(), filterChains: [{}] },
    "filter_chains[0].filters has to end with a TcpProxy or an HttpConnectionManager",
  ],
  [{ ...tcp(), address: socket("127.0.0.1", 0) }, "address.socket_address.port_value is 0"],
  [{ ...tcp(), address: socket("localhost", 80) }, 'address is "localhost", which is no IP'],
  [{ ...tcp(), address: socket("", 80) }, "address.socket_address.address is empty"],
  [tcp({ statPrefix: undefined }), "filter_chains[0].filters[0].typed_config.stat_prefix is empty"],
  [tcp({ cluster: undefined }), "filter_chains[0].filters[0].typed_config.cluster_specifier has to be set"],
  [
    tcp({ hashPolicy: [{ sourceIp: {} }, { sourceIp: {} }] }),
    "filter_chains[0].filters[0].typed_config.hash_policy has 2 entries, it has to have at most 1",
  ],
  [
    tcp({
      cluster: undefined,
      weightedClusters: { clusters: [{ name: "c", weight: 0 }] },
    }),
    "filter_chains[0].filters[0].typed_config.weighted_clusters.clusters[0].weight is 0, it has to be at least 1",
  ],
  [{ ...UDP, listenerFilters: [] }, "listener_filters of a UDP listener has to end with a UdpProxyConfig"],
  [
    {
      ...UDP,
      udpListenerConfig: {
        downstreamSocketConfig: { maxRxDatagramSize: { value: 65_536 } },
      },
    },
    "udp_listener_config.downstream_socket_config.max_rx_datagram_size is 65536, it has to be below 65536",
  ],
];

Deno.test("listeners that clients refuse are known", () => {
  for (const [message, problem] of LISTENERS) {
    const expected = problem && `Listener "l": ${problem}`;
    assertEquals(problemOf("listener", message), expected);
  }
  assertEquals(
    problemOf("listener", { ...tcp(), name: "" }),
    'Listener "": name is empty',
  );
});

const host = (changes: object = {}) => ({
  name: "v",
  domains: ["*"],
  routes: [{ match: { prefix: "" }, route: { cluster: "c" } }],
  ...changes,
});
const action = (route: object) =>
  host({ routes: [{ match: { prefix: "" }, route }] });

// deno-fmt-ignore: a case is a line.
const ROUTES: readonly [RouteConfiguration, string | undefined][] = [
  [{}, undefined],
  [{ virtualHosts: [host()] }, undefined],
  [{ name: "" }, "name is empty"],
  [{ virtualHosts: [host({ name: "" })] }, "virtual_hosts[0].name is empty"],
  [{ virtualHosts: [host({ domains: [] })] }, "virtual_hosts[0].domains has 0 entries, it has to have at least 1"],
  [{ virtualHosts: [host({ domains: ["a", "A"] })] }, 'virtual_hosts[0].domains has "A", which is there already'],
  [{ virtualHosts: [host(), host({ name: "w" })] }, 'virtual_hosts[1].domains has "*", which is there already'],
  [{ virtualHosts: [host(), host({ domains: ["x"] })] }, "virtual_hosts[1].name is there already"],
  [{ virtualHosts: [host({ domains: ["a.*.b"] })] }, 'virtual_hosts[0].domains has "a.*.b", which is no domain'],
  [{ virtualHosts: [host({ domains: ["*.a", "a.*", "b"] })] }, undefined],
  [
    { virtualHosts: [host({ domains: ["a\nb"] })] },
    'virtual_hosts[0].domains[0] is "a\\nb", which /^[^\\0\\n\\r]*$/ does not match',
  ],
  [
    { virtualHosts: [host({ routes: [{ route: { cluster: "c" } }] })] },
    "virtual_hosts[0].routes[0].match has to be set",
  ],
  [
    { virtualHosts: [host({ routes: [{ match: { prefix: "/" } }] })] },
    "virtual_hosts[0].routes[0].action has to be set",
  ],
  [
    { virtualHosts: [host({ routes: [{ match: {}, route: {} }] })] },
    "virtual_hosts[0].routes[0].match.path_specifier has to be set",
  ],
  [
    {
      virtualHosts: [host({
        routes: [{
          match: { pathSeparatedPrefix: "/a/" },
          route: { cluster: "c" },
        }],
      })],
    },
    'virtual_hosts[0].routes[0].match.path_separated_prefix is "/a/", which /^[^?#]+[^?#/]$/u does not match',
  ],
  [
    { virtualHosts: [action({ weightedClusters: { clusters: [] } })] },
    "virtual_hosts[0].routes[0].route.weighted_clusters.clusters has 0 entries, it has to have at least 1",
  ],
  [
    {
      virtualHosts: [
        action({ weightedClusters: { clusters: [{ name: "a" }] } }),
      ],
    },
    'virtual_hosts[0].routes[0].route.weighted_clusters has no weight for "a"',
  ],
  [
    {
      virtualHosts: [action({
        weightedClusters: { clusters: [{ name: "a", weight: { value: 0 } }] },
      })],
    },
    "virtual_hosts[0].routes[0].route.weighted_clusters has weights of 0 together",
  ],
];

Deno.test("routes that clients refuse are known", () => {
  for (const [changes, problem] of ROUTES) {
    const name = changes.name ?? "r";
    const expected = problem &&
      `RouteConfiguration ${JSON.stringify(name)}: ${problem}`;
    assertEquals(problemOf("route", { name: "r", ...changes }), expected);
  }
});

Deno.test("what an Any carries is looked at again when it is another one", () => {
  assertEquals(problemOf("listener", tcp()), undefined);
  assertEquals(typeof problemOf("listener", tcp({ statPrefix: "" })), "string");
});

Deno.test("a message without rules breaks none", () => {
  const node: Node = { id: "" };
  assertEquals(brokenRule("envoy.config.core.v3.Node", node), undefined);
});
