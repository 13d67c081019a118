/**
 * The client library against whole tunnels: which route a dial takes, and what a
 * server that does not want us looks like.
 *
 * @module
 */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import {
  dial,
  parseEgressConfig,
  TunnelDialError,
  type TunnelRoute,
} from "../../client/mod.ts";
import { portOf } from "../../proto/peer/host_port.ts";
import { closedAddress, ProbeTarget } from "../support/peers/probe_target.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";

Deno.test("a network context takes the route that the file says", async () => {
  await using tunnel = await Tunnel.linked("streams");
  await using target = new ProbeTarget("hello");
  const routes = parseEgressConfig(
    `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: GRPC
    transport: { uds: { udsName: ${tunnel.socketPath} } }
- name: controlplane
  connection:
    proxyProtocol: HTTPConnect
    transport: { uds: { udsName: ${tunnel.socketPath} } }
- name: etcd
  connection: { proxyProtocol: Direct }
`,
    "egress.yaml",
  );
  const dials = () =>
    tunnel.metric(
      "konnectivity_network_proxy_server_dial_duration_seconds_count",
    );
  const before = await dials();
  for (
    const [context, through] of [
      ["cluster", 1],
      ["controlplane", 2],
      ["etcd", 2],
    ] as const
  ) {
    const conn = await dial(target.address, { routes, context });
    assertEquals(await new Response(upTo(conn.readable, 5)).text(), "hello");
    conn.close();
    assertEquals(await dials() - before, through, context);
  }
});

Deno.test("a context that the file does not name goes direct", async () => {
  await using target = new ProbeTarget("hello");
  const routes = new Map();
  const conn = await dial(target.address, { routes, context: "cluster" });
  assertEquals(await new Response(upTo(conn.readable, 5)).text(), "hello");
  conn.close();
});

for (const carrier of ["streams", "packets"] as const) {
  for (const protocol of ["grpc", "http-connect"] as const) {
    Deno.test(`${carrier}, ${protocol}: a refusal has Konnectivity's reason, and the code of what failed`, async () => {
      await using tunnel = await Tunnel.linked(carrier);
      const via = await tunnel.route(protocol);
      const refused = await failure(closedAddress(), via);
      assertEquals([refused.reason, refused.tunnelCode], [
        "endpoint",
        "TUN503",
      ]);
      assert(refused.message.includes("connection refused"), refused.message);
      const unknown = await failure("name.invalid:80", via);
      assertEquals(unknown.tunnelCode, "TUN505");
    });
  }
}

Deno.test("a target that names a connected node is that node's own loopback, over all frontends", async () => {
  await using tunnel = await Tunnel.linked("streams");
  await using target = new ProbeTarget("hello");
  const port = portOf(target.address);
  for (const protocol of ["grpc", "http-connect"] as const) {
    const via = await tunnel.route(protocol);
    const said: string[] = [];
    const onNode = (line: string) => said.push(line);
    const conn = await dial(`agent-1:${port}`, { via, onNode });
    assertEquals(await new Response(upTo(conn.readable, 5)).text(), "hello");
    conn.close();
    assertEquals(said, [
      `agent-1 is a connected node: dialing 127.0.0.1:${port} there, as ` +
      "--node agent-1 does",
    ]);
    // Programs of others say what they mean.
    const error = await failure(`agent-1:${port}`, via);
    assertMatch(error.message, /lookup agent-1/);
  }
});

async function failure(
  address: string,
  via: TunnelRoute,
): Promise<TunnelDialError> {
  return await assertRejects(() => dial(address, { via }), TunnelDialError);
}

/** The first `bytes` of `stream`, which is left open. */
function upTo(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  bytes: number,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = stream.getReader();
  let left = bytes;
  return new ReadableStream({
    async pull(controller) {
      const { value } = await reader.read();
      if (value !== undefined) controller.enqueue(value);
      left -= value?.length ?? left;
      if (left <= 0) controller.close();
    },
  });
}
