import { assertEquals } from "@std/assert";
import type { Road } from "../../client/road.ts";
import type { AdsAccess } from "../../agent/identity/ads_access.ts";
import { proxyRoad } from "./road.ts";
import { readFlags } from "../flags/read_flags.ts";
import { ROAD_ONLY_FLAGS } from "../flags/road_flags.ts";

const SERVER = { host: "tunnel.example", port: 8091 };
const NO_PROXY = { httpsProxy: undefined, noProxy: undefined };

const JOINED: AdsAccess = {
  kind: "joined",
  addresses: [SERVER],
  stateDirectory: "/state",
  node: "edge-1",
};

function road(
  access: AdsAccess | undefined,
  ...argv: readonly string[]
): Road | undefined {
  const sources = {
    argv,
    environment: (name: string) =>
      name === "XDG_STATE_HOME" ? "/nowhere" : undefined,
    readFile: () => "",
  };
  const reading = readFlags("proxy", ROAD_ONLY_FLAGS, sources);
  return proxyRoad(reading, sources, access);
}

const ownRoad: Road = {
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
  assertEquals(road(JOINED), ownRoad);
  // It says who asks discovery.
  assertEquals(road(JOINED, "--state-dir=/state"), ownRoad);
});

Deno.test("a road that flags name wins", () => {
  assertEquals(road(JOINED, "--server=unix:/s.sock")?.kind, "tunnel");
});

Deno.test("a discovery server that needs no proof says nothing about a road", () => {
  const plain = { kind: "plain", addresses: [SERVER] } as const;
  assertEquals(road(plain), undefined);
  assertEquals(road(undefined), undefined);
});
