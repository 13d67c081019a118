import { assertEquals, assertThrows } from "@std/assert";
import {
  type EgressRoutes,
  formatEgressConfig,
  parseEgressConfig,
} from "./egress_config.ts";
import type { TunnelRoute } from "./tunnel_route.ts";

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
