/**
 * `tunnel bench` against whole tunnels: every route, both carriers, and agents
 * that cannot be measured.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { serveBench } from "../../agent/dial/bench_targets.ts";
import { ExitCode } from "../../cli/program/exit_codes.ts";
import type { TunnelRoute } from "../../client/tunnel_route.ts";
import { bench } from "../support/rigs/bench_command.ts";
import { identifiers } from "../support/memory/fake_link.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";
import { connectTls } from "../../net/dial/server_connect.ts";
import { dialTarget } from "../../net/dial/dial.ts";
import { openClientConnection } from "../../net/http2/client_connection.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import type { DialHandler } from "../../proto/link/dial_handler.ts";
import type { DialError } from "../../proto/peer/dial_error.ts";
import { PacketsAgentLink } from "../../proto/link/packets_agent.ts";
import { certificates } from "../support/certificates/certificates.ts";

const dial: DialHandler = (target, answer) => {
  const controller = new AbortController();
  dialTarget(target, { signal: controller.signal }).then(
    (conduit) => answer.connected(conduit),
    (error: DialError) => answer.failed(error),
  );
  return { cancel: () => controller.abort() };
};

/** Links such an agent; it goes with the server. */
async function plainAgent(tunnel: Tunnel): Promise<void> {
  const { ca, client } = await certificates();
  const linked = Promise.withResolvers<void>();
  await connectTls({
    host: "127.0.0.1",
    port: tunnel.agentPort,
    credentials: { ca, ...client },
    alpn: ["h2"],
    proxyEnv: {},
    timeoutMs: 10_000,
  }).then((stream) => {
    const connection = openClientConnection(stream, {
      timers: systemTimers,
    });
    new PacketsAgentLink(connection, {
      agentId: "go-1",
      identifiers: "",
      authority: "tunnel-server",
      onDial: dial,
      timers: systemTimers,
      onServerInfo: () => linked.resolve(),
      onClosed: (error) => {
        linked.reject(error);
        connection.shutdown(error.message);
      },
    });
  });
  await linked.promise;
}

const QUICK = ["--duration=250ms", "--connections=4"];

/** Flags that say what `route` says. */
function flagsOf(route: TunnelRoute): string[] {
  if (route.kind !== "tunnel") throw new TypeError("Expected a tunnel");
  const { address, protocol } = route;
  const mode = `--proxy-mode=${protocol}`;
  if (address.kind === "unix") return [mode, `--server=unix:${address.path}`];
  const { caFile, certFile, keyFile } = address.tls;
  return [
    mode,
    `--server=${address.host}:${address.port}`,
    ...[`--ca-cert=${caFile}`, `--cert=${certFile}`, `--key=${keyFile}`],
  ];
}

for (const carrier of ["streams", "packets"] as const) {
  for (const frontend of ["unix", "tcp"] as const) {
    for (const protocol of ["grpc", "http-connect"] as const) {
      Deno.test(`bench measures over ${protocol}, ${frontend}, ${carrier}`, async () => {
        await using tunnel = await Tunnel.linked(carrier, { frontend });
        const route = flagsOf(await tunnel.route(protocol));
        const { code, output, errors } = await bench([...QUICK, ...route]);
        assertEquals([code, errors], [ExitCode.OK, ""]);
        const [who, ...rows] = output.trimEnd().split("\n");
        assertMatch(who!, /^agent agent-1 \(tunnel\/[\d.]+\), /);
        assert(who!.includes(`${protocol} over `), who);
        assertEquals(rows.map((row) => row.replace(/ {3,}.*/, "").trim()), [
          "round trip",
          "down, 1 connection",
          "down, 4 connections",
          "up, 1 connection",
          "up, 4 connections",
          "new connections, 4 at a time",
        ]);
        for (const row of rows) assertMatch(row, /[1-9]/);
      });
    }
  }
}

Deno.test("--node chooses the agent that is measured", async () => {
  await using tunnel = await Tunnel.open();
  for (const host of ["node1", "node2"]) {
    await tunnel.link({
      agentId: `agent of ${host}`,
      identifiers: identifiers({ host: [host] }),
    });
  }
  const route = flagsOf(await tunnel.route("http-connect"));
  for (const node of ["node1", "node2"]) {
    const flags = ["--measure=rtt", "--json", `--node=${node}`];
    const { output } = await bench([...QUICK, ...route, ...flags]);
    const result = JSON.parse(output);
    assertEquals(result.agent, `agent of ${node}`);
    assertEquals(result.figures.length, 1);
    assert(result.figures[0].p50Ms > 0);
  }
  const nobody = await bench([...QUICK, ...route, "--node=node3", "--json"]);
  assertEquals(nobody.code, ExitCode.REFUSED);
  assertMatch(JSON.parse(nobody.output).error, /node3/);
  assertMatch(nobody.errors, /^tunnel bench: [^\n]*node3[^\n]*\n$/);
});

Deno.test("interrupted, bench prints what it has", async () => {
  await using tunnel = await Tunnel.linked("streams");
  const route = flagsOf(await tunnel.route("grpc"));
  const flags = ["--duration=30s", ...route];
  const config = { isTerminal: true, interruptAt: /round trip .*█/ };
  const first = await bench(flags, config);
  assertEquals(first.code, ExitCode.OK);
  assertMatch(first.output, /^agent .*\n {2}round trip .*\n$/);
  assertMatch(first.errors, /interrupted\n$/);
  const json = await bench([...flags, "--json"], config);
  const { interrupted, figures } = JSON.parse(json.output);
  assertEquals([interrupted, figures.length], [true, 1]);
});

Deno.test("an agent with --bench-target=false says so", async () => {
  await using tunnel = await Tunnel.open();
  await tunnel.link({ dials: { hasBenchTarget: false } });
  for (const protocol of ["grpc", "http-connect"] as const) {
    const { code, errors } = await bench(flagsOf(await tunnel.route(protocol)));
    assertEquals(code, ExitCode.REFUSED);
    assertMatch(errors, /this agent runs with --bench-target=false .*\n$/);
  }
});

Deno.test("what is no bench target is reported as that", async () => {
  await using tunnel = await Tunnel.linked("streams");
  const route = flagsOf(await tunnel.route("grpc"));
  const target = `--target=${tunnel.server.addresses.health}`;
  const { code, errors } = await bench([...QUICK, ...route, target]);
  assertEquals(code, ExitCode.FAILURE);
  assertMatch(
    errors,
    /no bench target; start one with tunnel bench --serve \[TUN\d+\]\n/,
  );
});

Deno.test("an agent like Konnectivity's is measured against bench --serve", async () => {
  await using tunnel = await Tunnel.open();
  await plainAgent(tunnel);
  const route = [...QUICK, ...flagsOf(await tunnel.route("grpc"))];
  const without = await bench(route);
  assertEquals(without.code, ExitCode.FAILURE);
  assertMatch(without.errors, /the agent has no bench target .*--serve/);
  const served = serveBench({ hostname: "127.0.0.1", port: 0 }, () => {});
  const { address } = served;
  const { code, output } = await bench([...route, `--target=${address}`]);
  served.close();
  assertEquals(code, ExitCode.OK);
  assert(output.startsWith(`target ${address} (tunnel/`), output);
  assertEquals(output.trimEnd().split("\n").length, 7);
});
