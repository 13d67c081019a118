import { assertEquals, assertStringIncludes } from "@std/assert";
import type { KubernetesService } from "../../../../neighbours/kubernetes/objects.ts";
import { annotationProblemOf, serviceOfObject } from "./kubernetes_service.ts";

function service(
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
  const object = service({
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
    const object = service({
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
  const object = service(Object.fromEntries(names.map((name) => [name, "x"])));
  const said = annotationProblemOf(object)!;
  assertStringIncludes(said, "; …");
  assertEquals(said.length < 500, true);
});
