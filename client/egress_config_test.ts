import { assertEquals, assertThrows } from "@std/assert";
import {
  EgressConfigError,
  type EgressRoutes,
  formatEgressConfig,
  parseEgressConfig,
} from "./egress_config.ts";
import { describeRoute, type TunnelRoute } from "./tunnel_route.ts";

const HEAD = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
`;
const UDS = `- name: cluster
  connection:
    proxyProtocol: GRPC
    transport: { uds: { udsName: /run/front.sock } }
`;
const TCP = `- name: controlplane
  connection:
    proxyProtocol: HTTPConnect
    transport:
      tcp:
        url: https://[::1]:8131
        tlsConfig: { caBundle: ca.crt, clientCert: c.crt, clientKey: c.key, tlsServerName: front }
`;
const DIRECT = `- name: etcd
  connection: { proxyProtocol: Direct }
`;

const BOTH = `- name: etcd
  connection: { proxyProtocol: GRPC, transport: { tcp: {}, uds: {} } }
`;

Deno.test("parseEgressConfig() reads a route per network context", () => {
  const routes = parseEgressConfig(HEAD + UDS + TCP + DIRECT, "egress.yaml");
  assertEquals(
    describeRoute(routes.get("cluster")!),
    "grpc over unix:/run/front.sock",
  );
  assertEquals(describeRoute(routes.get("etcd")!), "direct");
  assertEquals(routes.get("controlplane"), {
    kind: "tunnel",
    protocol: "http-connect",
    address: {
      kind: "tcp",
      host: "::1",
      port: 8131,
      tls: {
        caFile: "ca.crt",
        certFile: "c.crt",
        keyFile: "c.key",
        serverName: "front",
      },
    },
  });
});

// deno-fmt-ignore: the columns are the point.
const REFUSED: readonly [name: string, text: string, words: string][] = [
  ["what is not YAML",       "a: [",                                     "Cannot use egress.yaml: it is not YAML"],
  ["another kind",           "apiVersion: apiserver.k8s.io/v1beta1\nkind: Pod", "wanted EgressSelectorConfiguration"],
  ["an unknown field",       HEAD + UDS.replace("udsName", "path"),      'uds.path: there is no such field'],
  ["the old name master",    HEAD + UDS.replace("cluster", "master"),    'name: saw "master", wanted controlplane'],
  ["a context twice",        HEAD + UDS + UDS,                           "is there twice"],
  ["plain http",             HEAD + TCP.replace("https:", "http:"),      "wanted https://"],
  ["no URL",                 HEAD + TCP.replace("https://[::1]:8131", "x"), "wanted https://host:port"],
  ["no transport",           HEAD + "- {name: etcd, connection: {proxyProtocol: GRPC}}", "transport: it is missing"],
  ["a transport for Direct", HEAD + UDS.replace("GRPC", "Direct"),       'must not be with "Direct"'],
  ["both transports",        HEAD + BOTH,                               "exactly one"],
  ["no list",                HEAD,                                       "wanted a list"],
];

for (const [name, text, words] of REFUSED) {
  Deno.test(`parseEgressConfig() refuses ${name} and says where`, () => {
    assertThrows(
      () => parseEgressConfig(text, "egress.yaml"),
      EgressConfigError,
      words,
    );
  });
}

const TLS = { caFile: "/ca.crt", certFile: "/c.crt", keyFile: "/c.key" };
const SOCKET = { kind: "unix", path: "/run/a: #b.sock" } as const;
const PORT = { kind: "tcp", host: "::1", port: 8090, tls: TLS } as const;

Deno.test("formatEgressConfig() writes what parseEgressConfig() reads", () => {
  const routes: EgressRoutes = new Map<
    "cluster" | "etcd" | "controlplane",
    TunnelRoute
  >(
    [
      ["cluster", { kind: "tunnel", protocol: "grpc", address: SOCKET }],
      ["etcd", { kind: "direct" }],
      ["controlplane", {
        kind: "tunnel",
        protocol: "http-connect",
        address: { ...PORT, tls: { ...TLS, serverName: "front" } },
      }],
    ],
  );
  assertEquals(parseEgressConfig(formatEgressConfig(routes), "text"), routes);
});

Deno.test("formatEgressConfig() writes no route that kube-apiserver cannot take", () => {
  const route: TunnelRoute = {
    kind: "tunnel",
    protocol: "grpc",
    address: PORT,
  };
  assertThrows(() => formatEgressConfig(new Map([["cluster", route]])));
});
