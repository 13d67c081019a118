/**
 * Services over UDP whose endpoints are behind agents, through whole tunnels.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { MachineDialer } from "../../services/proxy/endpoints/endpoint_dialer.ts";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import { openDialer } from "../../client/tunnel_dialer.ts";
import type { Carrier } from "../../proto/link/link.ts";
import { DatagramPeer } from "../support/peers/datagrams.ts";
import { endpoints, ProxyRig, service } from "../support/rigs/proxy_rig.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";
import { KEY } from "../support/peers/udp_echo.ts";

const AGENT = { via: { kind: "agent" } } as const;

/** CONNECT carries TCP only. */
const WAYS: readonly (readonly [Carrier, FrontendProtocol])[] = [
  ["streams", "grpc"],
  ["packets", "grpc"],
];

for (const [carrier, way] of WAYS) {
  Deno.test(`${carrier}, ${way}: each UDP client has a conduit, and follows endpoints`, async () => {
    await using tunnel = await Tunnel.linked(carrier);
    await using a = await DatagramPeer.echo("a:");
    await using b = await DatagramPeer.echo("b:");
    await using one = await DatagramPeer.open();
    await using two = await DatagramPeer.open();
    const route = openDialer(await tunnel.route(way));
    {
      await using rig = new ProxyRig({
        dialer: new MachineDialer({ tunnel: route }),
      });
      rig.sink.set({
        services: [
          service("echo", {
            ports: [{ name: "", port: 53, protocol: "udp" }],
          }),
        ],
        endpoints: [endpoints("echo", [a.port], AGENT)],
      });
      const port = await rig.listening(KEY);
      assertEquals(await one.ask("1", port), "a:1");
      assertEquals(await two.ask("2", port), "a:2");
      const { proxy } = rig.proxy.served.get(KEY)!;
      assertEquals(proxy.load, 2);
      rig.sink.add({ endpoints: [endpoints("echo", [b.port], AGENT)] });
      assertEquals(await one.ask("3", port), "b:3");
      const long = "x".repeat(65_000);
      assertEquals((await two.ask(long, port)).length, long.length + 2);
      assertEquals(a.count, 2);
    }
    route.close();
  });
}
