import { assertEquals, assertThrows } from "@std/assert";
import { type EgressRoads, parseEgressConfig } from "./egress_config.ts";
import { formatEgressConfig } from "./egress_config_text.ts";
import type { Road } from "./road.ts";

const TLS = { caFile: "/ca.crt", certFile: "/c.crt", keyFile: "/c.key" };
const SOCKET = { kind: "unix", path: "/run/a: #b.sock" } as const;
const PORT = { kind: "tcp", host: "::1", port: 8090, tls: TLS } as const;

Deno.test("formatEgressConfig() writes what parseEgressConfig() reads", () => {
  const roads: EgressRoads = new Map<"cluster" | "etcd" | "controlplane", Road>(
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
  assertEquals(parseEgressConfig(formatEgressConfig(roads), "text"), roads);
});

Deno.test("formatEgressConfig() writes no road that kube-apiserver cannot take", () => {
  const road: Road = { kind: "tunnel", protocol: "grpc", address: PORT };
  assertThrows(() => formatEgressConfig(new Map([["cluster", road]])));
});
