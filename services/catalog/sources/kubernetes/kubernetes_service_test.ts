import { assertEquals } from "@std/assert";
import type { KubernetesService } from "../../../../neighbours/kubernetes/objects.ts";
import { NO_AFFINITY, NO_POLICY } from "../../model/model.ts";
import { serviceOfObject } from "./kubernetes_service.ts";

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
