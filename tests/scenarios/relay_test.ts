/**
 * Programs on a node that have no identity of their own: discovery and CONNECT
 * on loopback, passed on under the node's.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { StatusCode } from "../../proto/grpc/status.ts";
import { connectHost, MORE_CONNECT_MAX } from "../../proto/xds/relay_fields.ts";
import { TYPE_URLS } from "../../proto/xds/resource.ts";
import { structOf } from "../../proto/xds/struct_data.ts";
import { denoStream } from "../../net/stream/platform_stream.ts";
import { announced } from "../support/rigs/node_rig.ts";
import { ask } from "../support/rigs/proxy_rig.ts";
import { RelayScene } from "../support/rigs/relay_scene.ts";
import { readToEnd, writeAll } from "../support/peers/sockets.ts";
import { eventually, portOf } from "../support/rigs/tunnel_harness.ts";
import {
  addressesIn,
  type DeltaProbe,
  namesIn,
  type SotwProbe,
  type XdsProbe,
} from "../support/xds/xds_probe.ts";

const WEB = "default/web:80";
const ESTABLISHED = "HTTP/1.1 200 Connection Established\r\n\r\n";
/** A client that may be told of endpoints behind agents. */
const ENVOY = {
  id: "envoy-1",
  userAgentName: "envoy",
  metadata: structOf({ tunnel: { http_11_proxy: true } }),
};

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

const SERVED = `${ESTABLISHED}edge-1: hello`;

/** All that a program receives that says hello at once, up to an echo of it. */
async function received(scene: RelayScene, target: string): Promise<string> {
  const { conn, answer } = await scene.connect(target, "hello");
  let text = answer;
  const into = new Uint8Array(4_096);
  while (!text.endsWith("hello")) {
    const count = await conn.read(into).catch(() => null);
    if (count === null) break;
    text += decode(into.subarray(0, count));
  }
  conn.close();
  return text;
}

/** Asks for the clusters there are. */
async function clusters(stream: SotwProbe | DeltaProbe): Promise<void> {
  stream.send({ node: ENVOY, typeUrl: TYPE_URLS.cluster });
  await stream.next("cluster");
}

/** The addresses of a cluster as a client of the relay is told them. */
async function endpointsOf(probe: XdsProbe): Promise<readonly string[]> {
  const stream = probe.sotw();
  stream.send({ node: ENVOY, typeUrl: TYPE_URLS.cluster });
  let clusters = await stream.next("cluster");
  if (namesIn("cluster", clusters).length === 0) {
    // It is of before the agent came.
    const { nonce = "" } = clusters;
    stream.send({ typeUrl: TYPE_URLS.cluster, responseNonce: nonce });
    clusters = await stream.next("cluster");
  }
  assertEquals(namesIn("cluster", clusters), [WEB]);
  stream.send({ typeUrl: TYPE_URLS.endpoints, resourceNames: [WEB] });
  return addressesIn(await stream.next("endpoints"));
}

Deno.test("a program finds an endpoint by the relay, and reaches it by the relay", async () => {
  await using scene = await RelayScene.open();
  using probe = await scene.probe();
  const [address, ...others] = await endpointsOf(probe);
  assertEquals(others, []);
  assertMatch(address!, /^fd74:756e:6e65:6c00:/);
  const clients = JSON.stringify(await scene.rig.admin("/v1/discovery/sync"));
  assert(clients.includes("edge-2~envoy-1"), clients);
  const virtual = address!.slice(0, address!.lastIndexOf(":"));
  const target = `[${virtual}]:${scene.port}`;
  const { conn, answer } = await scene.connect(target);
  assertEquals(answer, ESTABLISHED);
  assertEquals(await ask(conn, "hello"), "edge-1: hello");
  conn.close();
});

for (const mode of ["sotw", "delta"] as const) {
  Deno.test(`${mode}: changes come through the relay, and so do the ends of both`, async () => {
    await using scene = await RelayScene.open();
    const { rig } = scene;
    using probe = await scene.probe();
    const stream = probe[mode]();
    stream.send({ node: ENVOY, typeUrl: TYPE_URLS.cluster });
    const { nonce } = await stream.next("cluster");
    stream.send({ typeUrl: TYPE_URLS.cluster, responseNonce: nonce! });
    await rig.link(await rig.joined("edge-3"), {
      services: [announced("db", 2, { port: 5432 })],
    });
    await stream.next("cluster");
    stream.halfClose();
    assertEquals((await stream.status).code, StatusCode.OK);
    const other = probe[mode]();
    await clusters(other);
    assertEquals(await scene.streams(), 1);
    other.cancel();
    await eventually(
      "the stream is over",
      async () => await scene.streams() === 0,
    );
  });
}

Deno.test("a relay serves connections with their ends, and bytes that come first", async () => {
  await using scene = await RelayScene.open();
  const { rig } = scene;
  const { target } = rig.tunnel;
  const port = portOf(target.address);
  await rig.link(await rig.joined("edge-4"), {
    services: [announced("ssh", port, { port: 22 })],
  });
  const headers = "\r\ntunnel-node: id=edge-4";
  const open = (early = "") =>
    scene.connect(`127.0.0.1:${port} HTTP/1.1${headers}\r\nx: `, early);
  const [{ conn, answer }, far] = await Promise.all([open(), target.next()]);
  assertEquals(answer, ESTABLISHED);
  far.send("banner");
  const into = new Uint8Array(100);
  assertEquals(decode(into.subarray(0, await conn.read(into) ?? 0)), "banner");
  await writeAll(conn, encode("all of it"));
  await conn.closeWrite();
  await far.ended;
  assertEquals(far.text, "all of it");
  far.send("and back");
  far.finish();
  assertEquals(decode(await readToEnd(conn)), "and back");
  conn.close();
  const [second, other] = await Promise.all([open("early"), target.next()]);
  await other.received(5);
  denoStream(second.conn).reset();
  assertEquals((await other.closed).kind, "reset");
});

Deno.test("a relay refuses what the server does, and says so with a status", async () => {
  await using scene = await RelayScene.open();
  const port = scene.connectPort;
  const statusOf = async (target: string) => {
    const { conn, answer } = await scene.connect(target);
    conn.close();
    return answer.split("\r\n")[0]!;
  };
  assertMatch(
    await statusOf("127.0.0.1:22"),
    /^HTTP\/1\.1 403 Cannot dial tcp 127\.0\.0\.1:22: refused, no rule of the/,
  );
  assertMatch(
    await statusOf("[fd74:756e:6e65:6c00::1]:80"),
    /^HTTP\/1\.1 503 Cannot dial .*: no endpoint that is there has this/,
  );
  assertMatch(await statusOf("nonsense"), /^HTTP\/1\.1 400 /);
  const get = await Deno.connect({ hostname: "127.0.0.1", port });
  await writeAll(get, encode("GET / HTTP/1.1\r\n\r\n"));
  assertMatch(decode(await readToEnd(get)), /^HTTP\/1\.1 405 /);
  get.close();
});

Deno.test("while the server is away a relay says so at once, and why", async () => {
  await using scene = await RelayScene.open();
  using probe = await scene.probe();
  const stream = probe.sotw();
  await clusters(stream);
  scene.rig.tunnel.server.stop("the server burns");
  assertEquals((await stream.status).code, StatusCode.UNAVAILABLE);
  for (let attempt = 0; attempt < 3; attempt++) {
    const late = probe.sotw();
    late.send({ node: ENVOY, typeUrl: TYPE_URLS.cluster });
    const { code, message } = await late.status;
    assertEquals(code, StatusCode.UNAVAILABLE);
    assertMatch(message, /^no discovery server can be reached: .*refused/);
  }
  const { conn, answer } = await scene.connect("127.0.0.1:80");
  conn.close();
  assertMatch(answer, /^HTTP\/1\.1 503 Cannot .*refused/);
});

/** How streams of programs end, and in whose words. */
const ENDS: readonly (readonly [
  what: string,
  end: (scene: RelayScene, stream: SotwProbe) => unknown,
  code: StatusCode,
  says: RegExp,
])[] = [
  [
    "what the server refuses a program is told in its words",
    (_, stream) => stream.send({ typeUrl: TYPE_URLS.cluster }),
    StatusCode.INVALID_ARGUMENT,
    /its first request has no node\.id/,
  ],
  [
    "a node that is revoked relays for nobody any more",
    async ({ rig, node }, stream) => {
      await clusters(stream);
      await rig.nodes.change(node.name, (record) => ({
        ...record,
        state: "revoked",
      }));
    },
    StatusCode.PERMISSION_DENIED,
    /the node was revoked/,
  ],
  [
    "an agent that ends notifies its programs",
    async ({ agent }, stream) => {
      await clusters(stream);
      agent.running.shutdown();
    },
    StatusCode.UNAVAILABLE,
    /the relay on this node is stopping/,
  ],
];

for (const [what, end, code, says] of ENDS) {
  Deno.test(what, async () => {
    await using scene = await RelayScene.open();
    using probe = await scene.probe();
    const stream = probe.sotw();
    await end(scene, stream);
    const status = await stream.status;
    assertEquals(status.code, code);
    assertMatch(status.message, says);
  });
}

Deno.test("a relay finds the server again, and clients that come back are served", async () => {
  await using scene = await RelayScene.open();
  using probe = await scene.probe();
  const [address] = await endpointsOf(probe);
  const target = address!.replace(/^(.*):(\d+)$/, "[$1]:$2");
  assertEquals(await received(scene, target), SERVED);
  await scene.rig.restart(async () => {
    const { conn, answer } = await scene.connect(target);
    conn.close();
    assertMatch(answer, /^HTTP\/1\.1 503 /);
  });
  // The address from before still means the same endpoint.
  await eventually(
    "the endpoint is reached again",
    async () => await received(scene, target) === SERVED,
  );
  await eventually("discovery is passed on again", async () => {
    const stream = probe.sotw();
    stream.send({ node: ENVOY, typeUrl: TYPE_URLS.cluster });
    try {
      return namesIn("cluster", await stream.next("cluster")).includes(WEB);
    } catch {
      // UNAVAILABLE until the relay has looked again.
      return false;
    } finally {
      stream.cancel();
    }
  });
});

Deno.test("the relay for connections listens at other addresses of loopback, too", async () => {
  await using scene = await RelayScene.open();
  using probe = await scene.probe();
  const [address] = await endpointsOf(probe);
  const virtual = address!.slice(0, address!.lastIndexOf(":"));
  for (const number of [1, MORE_CONNECT_MAX]) {
    const target = `[${virtual}]:${scene.port}`;
    const host = connectHost(number);
    const { conn, answer } = await scene.connect(target, "", host);
    assertEquals(answer, ESTABLISHED);
    conn.close();
  }
});
