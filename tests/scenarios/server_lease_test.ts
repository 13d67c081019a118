import { assertEquals } from "@std/assert";
import { FakeApiServer } from "../support/peers/fake_apiserver.ts";
import { eventually, Tunnel } from "../support/rigs/tunnel_harness.ts";

Deno.test("a server that drains is not counted any more, though it still serves", async () => {
  await using api = FakeApiServer.start();
  await using tunnel = await Tunnel.open({
    server: {
      serverId: "s1",
      shutdownTimeoutMs: 60_000,
      kubernetes: {
        master: api.url,
        lease: { namespace: "kube-system", labels: { app: "tunnel" } },
      },
    },
  });
  const of = (method: string) =>
    api.requests.filter((seen) =>
      seen.method === method && seen.path.includes("/leases")
    ).length;
  await eventually("the lease", () => of("POST") === 1);
  await tunnel.link({ carrier: "streams" });
  const held = await tunnel.connect("grpc");
  tunnel.server.shutdown();
  await eventually("its end", () => of("DELETE") === 1);
  held.caller.send("still here");
  await held.target.received(10);
  tunnel.server.stop("the test has seen enough");
  await tunnel.server.finished;
  assertEquals(of("DELETE"), 1);
});
