import { assertEquals } from "@std/assert";
import type { TunnelRoute } from "../../client/tunnel_route.ts";
import type { AdsAccess } from "../../agent/identity/ads_access.ts";
import { proxyRoute } from "./discovery.ts";
import { readFlags } from "../flags/read_flags.ts";
import { ROUTE_ONLY_FLAGS } from "../flags/route_flags.ts";

const SERVER = { host: "tunnel.example", port: 8091 };
const NO_PROXY = { httpsProxy: undefined, noProxy: undefined };

const JOINED: AdsAccess = {
  kind: "joined",
  addresses: [SERVER],
  stateDirectory: "/state",
  node: "edge-1",
};

function route(
  access: AdsAccess | undefined,
  ...argv: readonly string[]
): TunnelRoute | undefined {
  const sources = {
    argv,
    environment: (name: string) =>
      name === "XDG_STATE_HOME" ? "/nowhere" : undefined,
    readFile: () => "",
  };
  const reading = readFlags("proxy", ROUTE_ONLY_FLAGS, sources);
  return proxyRoute(reading, sources, access);
}

const ownRoute: TunnelRoute = {
  kind: "node",
  addresses: [SERVER],
  files: {
    ca: "/state/ca.pem",
    cert: "/state/cert.pem",
    key: "/state/key.pem",
  },
  serverName: "tunnel-server",
  proxyEnv: NO_PROXY,
};

Deno.test("a proxy reaches endpoints through the servers that it asks for services", () => {
  assertEquals(route(JOINED), ownRoute);
  // It says who asks discovery.
  assertEquals(route(JOINED, "--state-dir=/state"), ownRoute);
});

Deno.test("a route that flags name wins", () => {
  assertEquals(route(JOINED, "--server=unix:/s.sock")?.kind, "tunnel");
});

Deno.test("a discovery server that needs no proof says nothing about a route", () => {
  const plain = { kind: "plain", addresses: [SERVER] } as const;
  assertEquals(route(plain), undefined);
  assertEquals(route(undefined), undefined);
});
