import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import {
  type PortStatus,
  PROXY_STATUS_PATH,
  type ProxyStatus,
} from "../services/proxy/status/proxy_status.ts";
import { jsonAnswer } from "../net/admin/http_endpoints.ts";
import { listenHttp } from "../net/listen/listeners.ts";
import { deadPort } from "../tests/support/rigs/proxy_rig.ts";
import {
  ENDPOINTS_COMMAND,
  endpointsText,
  SERVICES_COMMAND,
  servicesText,
} from "./services.ts";
import { ExitCode } from "./program/exit_codes.ts";
import { ran } from "../tests/support/program/command_line.ts";

const WEB: PortStatus = {
  name: "default/web:http",
  ports: ["80/tcp on 127.0.0.1:20019"],
  service: "default/web",
  port: "http",
  protocol: "tcp",
  number: 80,
  listening: "127.0.0.1:20019",
  balance: "round-robin",
  source: "file",
  endpointsSource: "etcd",
  affinity: "client-ip",
  affinityClients: 3,
  open: 1,
  accepted: 12_345,
  refused: 2,
  retries: 0,
  ejections: 1,
  bytesFromClients: 1_500_000,
  bytesToClients: 10,
  moved: 0,
  endedHalfClosed: 0,
  endedIdle: 0,
  endedByEndpoint: 0,
  sessionsRefused: 0,
  datagramsResent: 0,
  crowdedOut: 0,
  datagramsDropped: 0,
  endpoints: [
    {
      address: "10.0.0.1:80",
      isReady: true,
      use: "in use",
      state: "ready",
      via: "direct",
      weight: 1,
      open: 1,
      total: 9,
      failures: 0,
      bytesSent: 5,
      bytesReceived: 6,
    },
    {
      address: "10.0.0.2:80",
      isReady: false,
      use: "ejected",
      why: "3 dials in a row failed; 7 s more: connection refused",
      state: "ready",
      via: "agent host=n1",
      zone: "a",
      weight: 2,
      open: 0,
      total: 0,
      failures: 3,
      bytesSent: 0,
      bytesReceived: 0,
    },
  ],
};

const DB: PortStatus = {
  ...WEB,
  name: "shop/db",
  service: "shop/db",
  port: "",
  number: 5_432,
  problem: "Cannot listen on 127.0.0.1:25120: something listens there already",
  affinity: "none",
  endpoints: [],
};

const STATUS: ProxyStatus = {
  version: 4,
  isSynced: true,
  sources: [],
  services: [WEB, withoutAddress(DB)],
  total: 2,
  draining: 2,
};

function withoutAddress({ listening: _, ...port }: PortStatus): PortStatus {
  return port;
}

/** A proxy that says so, and what a command makes of it. */
async function run(
  command: typeof SERVICES_COMMAND,
  ...argv: readonly string[]
) {
  const listener = listenHttp({ hostname: "127.0.0.1", port: 0 }, (request) => {
    const url = new URL(request.url);
    if (url.pathname !== PROXY_STATUS_PATH) {
      return new Response("", { status: 404 });
    }
    const service = url.searchParams.get("service");
    const services = STATUS.services
      .filter((port) => service === null || port.service === service);
    return jsonAnswer({ ...STATUS, services });
  });
  const said = await runAt(command, listener.address, ...argv);
  listener.close();
  await listener.finished;
  return said;
}

function runAt(
  command: typeof SERVICES_COMMAND,
  address: string,
  ...argv: readonly string[]
) {
  return ran(command.run, [...argv, `--proxy=${address}`]);
}

Deno.test("tunnel services shows a line for each port", async () => {
  const { code, output: out } = await run(SERVICES_COMMAND);
  assertEquals(code, ExitCode.OK);
  const lines = out.split("\n");
  assertMatch(
    lines[1]!,
    /^default\/web:http +80\/tcp +127\.0\.0\.1:20019 +file\+etcd +1\/2 +1 +12k +2 +1\.5M +10$/,
  );
  assertMatch(
    lines[2]!,
    /^shop\/db +5432\/tcp +- +file\+etcd +0\/0 .*something listens/,
  );
  assertEquals(lines[3], "2 connections of services that are gone");
});

Deno.test("tunnel services says how discovery goes, and what it lacks", () => {
  const kind = {
    ...{ isWildcard: true, wanted: 0, held: 2, awaited: 0, absent: [] },
    ...{ version: "1", responses: 3, accepted: 2, refused: 1 },
  };
  const discovery = {
    mode: "delta",
    ...{ node: "n1/proxy", streams: 1 },
    kept: { path: "/state", problem: "the disk is full" },
  } as const;
  const refusal = { message: "x: it is bad", version: "1", atMs: 1 };
  const open = servicesText({
    ...STATUS,
    discovery: {
      ...discovery,
      state: "open",
      server: "192.0.2.1:8091",
      kinds: { service: { ...kind, refusal } },
    },
  });
  assertEquals(open.split("\n").slice(3, -2), [
    "discovery: n1/proxy follows 192.0.2.1:8091 (delta)",
    "refused of service: x: it is bad",
    "discovery: /state is not written: the disk is full",
  ]);
  const { kept: _, ...others } = discovery;
  const away = servicesText({
    ...STATUS,
    discovery: {
      ...others,
      state: "waiting",
      kinds: {},
      recalledFrom: "2026-01-01T00:00:00.000Z",
    },
  });
  assertEquals(away.split("\n").slice(3, -2), [
    "discovery: n1/proxy follows no server (waiting)",
    "discovery: the served state was saved at 2026-01-01T00:00:00.000Z",
  ]);
});

Deno.test("and gives programs what they read", async () => {
  const json = await run(SERVICES_COMMAND, "--json");
  assertEquals(JSON.parse(json.output), STATUS);
  const { output: out } = await run(SERVICES_COMMAND, "--env");
  assertStringIncludes(out, "WEB_SERVICE_PORT_HTTP=20019\n");
  assertEquals(out.includes("DB"), false, "it is served nowhere");
  const both = await run(SERVICES_COMMAND, "--env", "--hosts");
  assertEquals(both.code, ExitCode.USAGE);
});

Deno.test("tunnel endpoints says why one is left out", async () => {
  const { code, output: out } = await run(ENDPOINTS_COMMAND, "web");
  assertEquals(code, ExitCode.OK);
  const lines = out.split("\n");
  assertEquals(
    lines[0],
    "default/web:http 80/tcp, served on 127.0.0.1:20019, round-robin, " +
      "3 clients with affinity",
  );
  assertMatch(lines[2]!, /^10\.0\.0\.1:80 +in use +direct +- +1 +1 +9 +0 +5/);
  assertMatch(
    lines[3]!,
    /^10\.0\.0\.2:80 +ejected +agent host=n1 +a .*7 s more/,
  );
  const [head] = endpointsText({ ...WEB, lastError: "no route" }).split("\n");
  assertEquals(
    head,
    lines[0],
    "an error of one client is no fault of the port",
  );
  const json = await run(ENDPOINTS_COMMAND, "shop/db", "--json");
  assertEquals(JSON.parse(json.output)[0].number, 5_432);
  const empty = await run(ENDPOINTS_COMMAND, "shop/db");
  assertMatch(empty.output, /served nowhere \(Cannot listen.*\nno endpoints\n/);
});

Deno.test("a service that is not there is a failure, and so is no proxy", async () => {
  const missing = await run(ENDPOINTS_COMMAND, "nope");
  assertEquals(missing.code, ExitCode.FAILURE);
  assertStringIncludes(missing.errors, "knows no service default/nope");
  const said = await runAt(SERVICES_COMMAND, `127.0.0.1:${deadPort()}`);
  assertEquals(said.code, ExitCode.FAILURE);
  assertMatch(
    said.errors,
    /Cannot ask the proxy at .*: no program answers there/,
  );
});
