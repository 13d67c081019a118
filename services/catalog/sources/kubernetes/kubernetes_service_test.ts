import { assertEquals, assertStringIncludes } from "@std/assert";
import type { KubernetesService } from "../../../../neighbours/kubernetes/objects.ts";
import { NO_AFFINITY, NO_POLICY } from "../../model/model.ts";
import { annotationProblemOf, serviceOfObject } from "./kubernetes_service.ts";

function service(
  spec: NonNullable<KubernetesService["spec"]>,
  annotations: Record<string, string> = {},
): KubernetesService {
  return { metadata: { namespace: "shop", name: "web", annotations }, spec };
}

Deno.test("a Service has its ports, and no affinity unless it says so", () => {
  const object = service({
    clusterIP: "10.96.0.7",
    ports: [
      { name: "http", port: 80, protocol: "TCP", appProtocol: "http" },
      { name: "dns", port: 53, protocol: "UDP" },
      { name: "phone", port: 5060, protocol: "SCTP" },
      { port: 9100 },
      { name: "h2", port: 8080, appProtocol: "kubernetes.io/h2c" },
      { name: "rpc", port: 50051, protocol: "TCP", appProtocol: "grpc" },
    ],
  });
  assertEquals(serviceOfObject(object), {
    namespace: "shop",
    name: "web",
    ports: [
      { name: "http", port: 80, protocol: "tcp", appProtocol: "http" },
      { name: "dns", port: 53, protocol: "udp" },
      { name: "", port: 9100, protocol: "tcp" },
      {
        name: "h2",
        port: 8080,
        protocol: "tcp",
        appProtocol: "kubernetes.io/h2c",
      },
      { name: "rpc", port: 50051, protocol: "tcp", appProtocol: "grpc" },
    ],
    affinity: NO_AFFINITY,
    policy: NO_POLICY,
  });
});

Deno.test("affinity keeps its time, or Kubernetes' three hours", () => {
  const affinity = (timeoutSeconds?: number) =>
    serviceOfObject(service({
      clusterIP: "10.96.0.7",
      sessionAffinity: "ClientIP",
      ...timeoutSeconds === undefined
        ? {}
        : { sessionAffinityConfig: { clientIP: { timeoutSeconds } } },
    }))?.affinity;
  assertEquals(affinity(60), { kind: "client-ip", ttlMs: 60_000 });
  assertEquals(affinity(), { kind: "client-ip", ttlMs: 10_800_000 });
});

Deno.test("ExternalName and headless services are nobody's to proxy", () => {
  const specs = [
    { type: "ExternalName", externalName: "db.example" },
    { clusterIP: "None" },
    { clusterIP: "" },
    {},
  ];
  for (const spec of specs) {
    assertEquals(serviceOfObject(service(spec)), undefined);
  }
});

Deno.test("a service that prefers near endpoints is aware of zones", () => {
  const clusterIP = "10.96.0.7";
  const near = service({ clusterIP, trafficDistribution: "PreferClose" });
  assertEquals(serviceOfObject(near)?.policy, { zoneAware: true });
  const here = service({ clusterIP, trafficDistribution: "PreferSameNode" });
  assertEquals(serviceOfObject(here)?.policy, {
    zoneAware: true,
    nodeAware: true,
  });
  const annotations = { "service.kubernetes.io/topology-mode": "Auto" };
  const old = service({ clusterIP }, annotations);
  assertEquals(serviceOfObject(old)?.policy, { zoneAware: true });
});

function annotated(
  annotations: Record<string, string>,
  protocol = "TCP",
): KubernetesService {
  return {
    metadata: { namespace: "shop", name: "web", annotations },
    spec: {
      clusterIP: "10.96.0.7",
      trafficDistribution: "PreferSameNode",
      ports: [{ port: 80, protocol }],
    },
  };
}

const NEAR = { zoneAware: true, nodeAware: true };

Deno.test("annotations of a Service are its policy, with the values of a file", () => {
  const object = annotated({
    "proxy.tunnel/balance": "least-connections",
    "proxy.tunnel/dial-timeout": "500ms",
    "proxy.tunnel/udp-idle": "10s",
    "proxy.tunnel/drain": "0s",
    "proxy.tunnel/on-endpoint-removed": "reset",
    "proxy.tunnel/idle-timeout": "1h",
    "proxy.tunnel/zone-aware": "false",
    "proxy.tunnel/health": "{http: {path: /ready, port: 8181}, interval: 5s}",
    "proxy.tunnel/ejection": "failures: 5\ntime: 1m",
    "example.org/balance": "dice",
  });
  assertEquals(annotationProblemOf(object), undefined);
  assertEquals(serviceOfObject(object)?.policy, {
    zoneAware: false,
    nodeAware: true,
    balance: "least-connections",
    dialTimeoutMs: 500,
    udpIdleMs: 10_000,
    drainMs: 0,
    onEndpointRemoved: "reset",
    idleTimeoutMs: 3_600_000,
    health: {
      kind: "http",
      path: "/ready",
      port: 8181,
      intervalMs: 5_000,
      timeoutMs: 2_000,
    },
    ejection: { failures: 5, timeMs: 60_000 },
  });
});

// deno-fmt-ignore: the columns are the point.
const WRONG: readonly (readonly [name: string, value: string, problem: string])[] = [
  ["balance",        "dice",                'balance: saw "dice", wanted round-robin'],
  ["balanse",        "random",              "did you mean proxy.tunnel/balance?"],
  ["drain",          "soon",                'drain: saw "soon", wanted a time'],
  ["drain",          "30",                  "drain: saw 30, wanted a time"],
  ["health",         "{http: {path: x}}",   "is no path to ask for its health"],
  ["health",         "{tcp: {}, interval: x}", 'health: interval: saw "x"'],
  ["health",         "{http: [",            "health: it is not YAML"],
  ["health",         "x".repeat(2_000),     "1024 characters at most"],
  ["__proto__",      "x",                   "there is no such annotation"],
  ["health",
    "{http: {status: [&a [1,1,1,1,1,1,1,1], &b [*a,*a,*a,*a,*a,*a,*a,*a], [*b,*b,*b,*b,*b,*b,*b]]}}",
    "too many parts"],
];

for (const [name, value, problem] of WRONG) {
  Deno.test(`annotation ${name}: ${value.slice(0, 30)} is refused alone`, () => {
    const object = annotated({
      [`proxy.tunnel/${name}`]: value,
      "proxy.tunnel/zone-aware": "true",
      "proxy.tunnel/udp-idle": "10s",
    });
    assertEquals(serviceOfObject(object)?.policy, {
      ...NEAR,
      udpIdleMs: 10_000,
    });
    const said = annotationProblemOf(object) ?? "";
    assertStringIncludes(said, "Service shop/web is served without");
    assertStringIncludes(said, problem);
    assertEquals(said.length < 500, true);
  });
}

Deno.test("a hundred bad annotations are one sentence", () => {
  const names = Array.from({ length: 100 }, (_, i) => `proxy.tunnel/a${i}`);
  const object = annotated(
    Object.fromEntries(names.map((name) => [name, "x"])),
  );
  const said = annotationProblemOf(object)!;
  assertStringIncludes(said, "; …");
  assertEquals(said.length < 500, true);
});
