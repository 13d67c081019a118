import { assertEquals, assertStringIncludes } from "@std/assert";
import type {
  KubernetesNode,
  KubernetesService,
} from "../../../neighbours/kubernetes/objects.ts";
import {
  ADDRESS_ANNOTATION,
  findAddresses,
  SERVICE_ADDRESSES_MAX,
  type ServiceView,
} from "./service_addresses.ts";

const PORTS = [
  { name: "metrics", port: 9090, nodePort: 30090 },
  { name: "tcp", port: 10262, nodePort: 31008 },
];

function service(
  type: string,
  changed: Partial<KubernetesService> & { annotation?: string } = {},
): KubernetesService {
  const { annotation, spec, ...rest } = changed;
  return {
    metadata: {
      name: "x-tunnel-server-svc",
      ...annotation === undefined
        ? {}
        : { annotations: { [ADDRESS_ANNOTATION]: annotation } },
    },
    spec: { type, clusterIP: "10.96.0.9", ports: PORTS, ...spec },
    ...rest,
  };
}

function node(
  isReady: boolean,
  ...addresses: { type: string; address: string }[]
): KubernetesNode {
  const conditions = [{ type: "Ready", status: isReady ? "True" : "Unknown" }];
  return { metadata: {}, status: { addresses, conditions } };
}

const internal = (address: string) => ({ type: "InternalIP", address });
const external = (address: string) => ({ type: "ExternalIP", address });
const hostname = (address: string) => ({ type: "Hostname", address });

/** What is found, as words; without anything, what was looked at. */
function find(
  service: KubernetesService,
  view: Partial<ServiceView> = {},
): string {
  const { addresses, looked } = findAddresses({
    service,
    portName: "tcp",
    nodes: [],
    isInside: false,
    ...view,
  });
  if (addresses.length === 0) return `none: ${looked.join("; ")}`;
  return addresses.map(({ host, port }) => `${host} ${port}`).join(", ");
}

function balancer(...ingress: { ip?: string; hostname?: string }[]) {
  return { status: { loadBalancer: { ingress } } };
}

Deno.test("an annotation wins, and keeps its port", () => {
  const at = (annotation: string) =>
    find(
      service("LoadBalancer", { annotation, ...balancer({ ip: "1.1.1.1" }) }),
    );
  assertEquals(at("tunnel.example:8443"), "tunnel.example 8443");
  assertEquals(at("203.0.113.7:31008"), "203.0.113.7 31008");
  assertEquals(at("[2001:db8::7]:443"), "2001:db8::7 443");
  assertEquals(at("a.example:1, b.example:2"), "a.example 1, b.example 2");
  assertEquals(at("tunnel.example"), "tunnel.example 10262");
});

Deno.test("an annotation that is none is passed over, and that is said", () => {
  const wrong = ["http://a:1", "a:0", "a:99999", "a:b", ":1", "::1:22", "a:1,"];
  for (const annotation of wrong) {
    const found = find(service("ClusterIP", { annotation }));
    assertStringIncludes(found, `is "${annotation}", wanted HOST:PORT`);
  }
});

Deno.test("a load balancer is known by address or name", () => {
  const at = (...ingress: { ip?: string; hostname?: string }[]) =>
    find(service("LoadBalancer", balancer(...ingress)), { isInside: true });
  assertEquals(at({ ip: "203.0.113.7" }), "203.0.113.7 10262");
  assertEquals(at({ hostname: "lb.example" }), "lb.example 10262");
  assertEquals(
    at({ ip: "203.0.113.7", hostname: "lb.example" }, { ip: "203.0.113.8" }),
    "203.0.113.7 10262, 203.0.113.8 10262",
  );
  // Not ready: from inside there is another way.
  assertEquals(at(), "10.96.0.9 10262");
});

Deno.test("on nodes' ports external addresses come first, and nodes that are ready", () => {
  const nodes = [
    node(false, internal("10.0.0.1"), external("203.0.113.1")),
    node(true, internal("10.0.0.2"), external("203.0.113.2"), hostname("b")),
    node(true, internal("10.0.0.3")),
  ];
  assertEquals(
    find(service("NodePort"), { nodes }),
    "203.0.113.2 31008, 203.0.113.1 31008, 10.0.0.2 31008, 10.0.0.3 31008, " +
      "10.0.0.1 31008",
  );
});

Deno.test("the Service's own address is for who is inside", () => {
  assertEquals(
    find(service("ClusterIP"), { isInside: true }),
    "10.96.0.9 10262",
  );
  const spec = { clusterIPs: ["10.96.0.9", "fd00::9"], ports: PORTS };
  assertEquals(
    find(service("ClusterIP", { spec }), { isInside: true }),
    "10.96.0.9 10262, fd00::9 10262",
  );
});

Deno.test("when nothing is found, all that was looked at is named", () => {
  assertEquals(
    find(service("LoadBalancer")),
    "none: it has no annotation x-tunnel-server-external-addr; its load " +
      "balancer has no address yet; it is not of type NodePort; its own " +
      "address is for use inside the cluster only",
  );
  const reasons: [string, Partial<ServiceView>, KubernetesService][] = [
    ["nodes may not be listed", {
      nodes: "nodes may not be listed",
    }, service("NodePort")],
    ["none of its nodes has an address", {}, service("NodePort")],
    ['no port named "grpc", only metrics, tcp', {
      portName: "grpc",
      isInside: true,
    }, service("ClusterIP")],
    ['its port "tcp" has no nodePort yet', {}, {
      ...service("NodePort"),
      spec: { type: "NodePort", ports: [{ name: "tcp", port: 1 }] },
    }],
    ["it has no address of its own", { isInside: true }, {
      ...service("ClusterIP"),
      spec: { type: "ClusterIP", clusterIP: "None", ports: PORTS },
    }],
    ["it is of type ClusterIP, not LoadBalancer", {}, { metadata: {} }],
  ];
  for (const [words, view, found] of reasons) {
    assertStringIncludes(find(found, view), words);
  }
});

Deno.test("of a thousand nodes a few are enough", () => {
  const nodes = Array.from(
    { length: 1000 },
    (_, i) => node(true, internal(`10.0.${i >> 8}.${i & 255}`)),
  );
  const found = find(service("NodePort"), { nodes }).split(", ");
  assertEquals(found.length, SERVICE_ADDRESSES_MAX);
  assertEquals(
    find(service("NodePort"), { nodes: [nodes[0]!, nodes[0]!] }),
    [
      "10.0.0.0 31008",
    ].join(),
  );
});
