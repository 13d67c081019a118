import { assertEquals } from "@std/assert";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { FakeApiServer } from "../../tests/support/peers/fake_apiserver.ts";
import { leaseName } from "../kubernetes/paths.ts";
import type { Lease } from "../kubernetes/objects.ts";
import { connectStore } from "./store_connection.ts";

Deno.test("a server's Lease in Kubernetes has the name that upstream gives it", async () => {
  await using api = FakeApiServer.start();
  const location = { master: api.url };
  const connection = await connectStore(
    { kind: "kubernetes", kubernetes: location, namespace: "tunnel" },
    systemTimers,
  );
  const peers = await connection.ephemerals("peers", {
    serverId: "s1",
    instanceId: "i1",
    timeoutMs: 2_000,
    timers: systemTimers,
  });
  const following = Promise.withResolvers<void>();
  peers.watch({
    changed() {},
    following: following.resolve,
    problem: following.reject,
  });
  peers.put("member", "here");
  await following.promise;
  await peers.close();
  connection.close();
  const made = api.requests.filter(({ method }) => method === "POST");
  const names = made.map(({ body }) => (body as Lease).metadata.name);
  assertEquals(names, [leaseName("s1")]);
});
