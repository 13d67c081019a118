/** Two servers of two versions, of which one sends dials on to the other. */

import { assertEquals } from "@std/assert";
import { ForwardingServers } from "../support/rigs/forwarding_servers.ts";
import { assertEchoes } from "../support/peers/datagram_echo.ts";
import { commandOfVersion, PAIRS } from "./versions.ts";

const BYTES = 1024 * 1024;

for (const [asked, linked] of PAIRS) {
  Deno.test(`versions: a server that is ${asked} forwards to one that is ${linked}`, async () => {
    const programs = [
      await commandOfVersion(asked),
      await commandOfVersion(linked),
    ];
    await using rig = await ForwardingServers.start(
      [[1], [0]],
      () => ["--peer-forwarding"],
      undefined,
      programs,
    );
    await rig.link("edge-7", 1);
    for (const protocol of ["grpc", "http-connect"] as const) {
      const { caller, target } = await rig.connect({
        protocol,
        node: "edge-7",
        earlyData: new TextEncoder().encode("first"),
      });
      await target.received(5);
      const bytes = new Uint8Array(BYTES).map((_, at) => at % 251);
      caller.send(bytes);
      target.send(bytes);
      await Promise.all([target.received(BYTES + 5), caller.received(BYTES)]);
      assertEquals(target.bytes.slice(5), bytes);
      assertEquals(caller.bytes, bytes);
      // One direction ends, and the other goes on.
      caller.finish();
      await target.ended;
      target.send("last words");
      await caller.received(BYTES + 10);
      target.finish();
      assertEquals((await caller.closed).kind, "clean", protocol);
    }
    const reset = await rig.connect({ protocol: "grpc", node: "edge-7" });
    reset.target.reset("enough");
    assertEquals((await reset.caller.closed).kind, "reset");
    const address = { kind: "unix", path: rig.servers[0]!.socket } as const;
    await assertEchoes({
      via: { kind: "tunnel", protocol: "grpc", address },
      node: "edge-7",
    });
  });
}
