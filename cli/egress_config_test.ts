import { assertEquals, assertMatch } from "@std/assert";
import { parseEgressConfig } from "../client/egress_config.ts";
import type { FrontendProtocol, TunnelRoute } from "../client/tunnel_route.ts";
import { EGRESS_CONFIG_COMMAND } from "./egress_config.ts";
import { ExitCode } from "./program/exit_codes.ts";
import { ran } from "../tests/support/program/command_line.ts";

const PORT = [
  "--server-cert=s.crt",
  "--server-key=s.key",
  "--server-ca-cert=clients.crt",
];
const CLIENT = [
  "--ca-bundle=/pki/ca.crt",
  "--client-cert=/pki/c.crt",
  "--client-key=/pki/c.key",
];

function run(...argv: string[]) {
  return ran(EGRESS_CONFIG_COMMAND.run, argv, {
    environment: (name) => name === "XDG_STATE_HOME" ? "/state" : undefined,
  });
}

async function routeFor(...argv: string[]): Promise<TunnelRoute | undefined> {
  const { output, errors } = await run(...argv);
  assertEquals(errors, "");
  return parseEgressConfig(output, "what was printed").get("cluster");
}

Deno.test("tunnel egress-config writes the way to a server on a unix socket", async () => {
  const at = (protocol: FrontendProtocol): TunnelRoute => ({
    kind: "tunnel",
    protocol,
    address: { kind: "unix", path: "/run/t.sock" },
  });
  const socket = ["--uds-name=/run/t.sock", "--state-dir=/s"];
  assertEquals(await routeFor(...socket), at("grpc"));
  assertEquals(
    await routeFor(...socket, "--mode=http-connect"),
    at("http-connect"),
  );
  assertEquals(
    await routeFor(...socket, "--protocol=http-connect"),
    at("http-connect"),
  );
});

Deno.test("tunnel egress-config knows where a server without flags listens", async () => {
  const route = await routeFor("--state-dir=/s");
  assertEquals(route, {
    kind: "tunnel",
    protocol: "grpc",
    address: { kind: "unix", path: "/s/frontend.sock" },
  });
});

Deno.test("tunnel egress-config writes the way to a port, with certificates", async () => {
  const route = await routeFor(...PORT, ...CLIENT, "--tls-server-name=tunnel");
  assertEquals(route, {
    kind: "tunnel",
    protocol: "http-connect",
    address: {
      kind: "tcp",
      host: "127.0.0.1",
      port: 8090,
      tls: {
        caFile: "/pki/ca.crt",
        certFile: "/pki/c.crt",
        keyFile: "/pki/c.key",
        serverName: "tunnel",
      },
    },
  });
});

Deno.test("tunnel egress-config sends those contexts through the tunnel that are named", async () => {
  const { output } = await run("--contexts=cluster,controlplane");
  const routes = parseEgressConfig(output, "what was printed");
  assertEquals([...routes.keys()], ["cluster", "controlplane"]);
});

// deno-fmt-ignore: the columns are the point.
const REFUSED: readonly [name: string, argv: string[], words: RegExp][] = [
  ["gRPC to a port",            [...PORT, ...CLIENT, "--protocol=grpc"],  /over unix sockets only/],
  ["a server of gRPC on a port", [...PORT, ...CLIENT, "--mode=grpc"],     /use --uds-name or --mode=auto/],
  ["the other protocol",        ["--mode=http-connect", "--protocol=grpc"], /leave --protocol out/],
  ["a port without a CA",       [...PORT],                                /without --ca-bundle/],
  ["a port without a key",      [...PORT, ...CLIENT.slice(0, 2)],         /without --client-key/],
  ["any free port",             [...PORT, ...CLIENT, "--server-port=0"],  /--server-port=0/],
  ["what the server refuses",   ["--server-cert=s.crt"],                  /--server-key/],
];

for (const [name, argv, words] of REFUSED) {
  Deno.test(`tunnel egress-config refuses ${name}`, async () => {
    const { code, errors, output } = await run(...argv);
    assertMatch(errors, words);
    assertEquals([code, output], [ExitCode.USAGE, ""]);
  });
}

Deno.test("the way through a gateway of this machine is its socket", async () => {
  const { output } = await run("--frontend=unix:/run/gate.sock");
  assertEquals(parseEgressConfig(output, "x").get("cluster"), {
    kind: "tunnel",
    protocol: "grpc",
    address: { kind: "unix", path: "/run/gate.sock" },
  });
  const other = await run("--frontend=/run/g.sock", "--protocol=http-connect");
  assertMatch(other.output, /HTTPConnect[^]*udsName: \/run\/g.sock/);
  const both = await run("--frontend=/g.sock", "--uds-name=/s.sock");
  assertEquals(both.code, ExitCode.USAGE);
  assertMatch(both.errors, /--uds-name together with --frontend/);
  const wrong = await run("--frontend=host:1");
  assertMatch(wrong.errors, /saw "host:1", wanted unix:\/path/);
});
