/**
 * Who is told what by discovery, and until when.
 *
 * @module
 */

import { assertEquals, assertMatch } from "@std/assert";
import { StatusCode } from "../../proto/grpc/status.ts";
import { TYPE_URLS } from "../../proto/xds/resource.ts";
import { certificates } from "../support/certificates/certificates.ts";
import { DiscoveryRig } from "../support/xds/discovery_rig.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";
import { memoryFolder } from "../support/memory/memory_folder.ts";
import { ScriptedSource, serviceOf } from "../support/watch/scripted_source.ts";
import { namesIn, type SotwProbe, XdsProbe } from "../support/xds/xds_probe.ts";

const services = [serviceOf("web"), serviceOf("shop/cart")];

/** Clusters that a stream is told of next; it takes them. */
async function clusters(stream: SotwProbe): Promise<readonly string[]> {
  const response = await stream.next("cluster");
  stream.send({
    typeUrl: TYPE_URLS.cluster,
    versionInfo: response.versionInfo!,
    responseNonce: response.nonce!,
  });
  return [...namesIn("cluster", response)].sort();
}

function subscribe(probe: XdsProbe, id: string): SotwProbe {
  const stream = probe.sotw();
  stream.send({ node: { id }, typeUrl: TYPE_URLS.cluster });
  return stream;
}

Deno.test("a node is sent what the policy lets it see, also when that changes", async () => {
  const { client } = await certificates();
  const policyFile = `${await Deno.makeTempDir()}/policy.json`;
  const write = (allow: readonly string[]) =>
    Deno.writeTextFile(
      policyFile,
      JSON.stringify({ discovery: [{ node: "node1", allow }] }),
    );
  await write(["shop/*"]);
  await using rig = await DiscoveryRig.serving({ services }, {
    server: { authorization: { policyFile } },
  });
  const ours = subscribe(await rig.tls(client), "node1/envoy");
  const nobody = subscribe(await rig.plain(), "node1");
  assertEquals(await clusters(ours), ["shop/cart:80"]);
  // What it calls itself where nobody proves anything opens no door.
  assertEquals(await clusters(nobody), []);
  await write(["*"]);
  rig.tunnel.server.reload();
  assertEquals(await clusters(ours), ["default/web:80", "shop/cart:80"]);
  await write(["default/*"]);
  rig.tunnel.server.reload();
  assertEquals(await clusters(ours), ["default/web:80"]);
  assertEquals(nobody.responses, []);
  await Deno.remove(policyFile);
});

Deno.test("a revoked node is sent nothing any more, a pending one not yet", async () => {
  const source = new ScriptedSource("script");
  await using rig = await IdentityRig.open({}, memoryFolder(), {
    discovery: { sources: [source], windowMinMs: 50, windowMaxMs: 1_000 },
  });
  source.sink.set({ services });
  source.sink.synced();
  const node = await rig.joined("edge-7");
  const { port, ca } = await rig.place();
  using probe = await XdsProbe.tls(port, { pair: await node.pair(), ca });
  const stream = subscribe(probe, "edge-7");
  assertEquals((await clusters(stream)).length, 2);
  const change = (state: "revoked" | "approved") =>
    rig.nodes.change(node.name, (record) => ({ ...record, state }));
  await change("revoked");
  const status = await stream.status;
  assertEquals(status.code, StatusCode.PERMISSION_DENIED);
  assertMatch(status.message, /the node was revoked/);
  const again = subscribe(probe, "edge-7");
  assertEquals((await again.status).code, StatusCode.PERMISSION_DENIED);
  assertEquals(again.responses, []);
  await change("approved");
  assertEquals((await clusters(subscribe(probe, "edge-7"))).length, 2);
  const other = subscribe(probe, "edge-8");
  assertEquals((await other.status).code, StatusCode.PERMISSION_DENIED);
});
