/**
 * Clients of discovery that do not read, and what that does to others.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { TYPE_URLS } from "../../proto/xds/resource.ts";
import type { ClientSummary } from "../../services/discovery/status/client_answers.ts";
import { DiscoveryRig } from "../support/xds/discovery_rig.ts";
import { endpointsOf, serviceOf } from "../support/watch/scripted_source.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";
import {
  addressesIn,
  type SotwProbe,
  type XdsProbe,
} from "../support/xds/xds_probe.ts";

const WEB = "default/web:80";
const ENDPOINTS = 10_000;
const CHANGES = 10;

/** Ten thousand of them; one is at this port. */
function manyEndpoints(port: number) {
  const others = Array.from(
    { length: ENDPOINTS - 1 },
    (_, index) => `10.${index >> 16}.${index >> 8 & 255}.${index & 255}:80`,
  );
  return endpointsOf("web", ...others, `192.0.2.1:${port}`);
}

function subscribe(probe: XdsProbe, id: string): SotwProbe {
  const stream = probe.sotw();
  const typeUrl = TYPE_URLS.endpoints;
  stream.send({ node: { id }, typeUrl, resourceNames: [WEB] });
  return stream;
}

/** Takes a response, and says which port the one endpoint is at. */
async function portTaken(stream: SotwProbe): Promise<string | undefined> {
  const response = await stream.next();
  stream.send({
    typeUrl: TYPE_URLS.endpoints,
    resourceNames: [WEB],
    versionInfo: response.versionInfo!,
    responseNonce: response.nonce!,
  });
  const changed = addressesIn(response)
    .find((address) => address.startsWith("192.0.2.1:"));
  return changed?.split(":")[1];
}

Deno.test("a client that stops reading grows nothing and holds up nobody", async () => {
  await using rig = await DiscoveryRig.serving(
    {
      services: [serviceOf("web")],
      endpoints: [manyEndpoints(1)],
    },
    {},
    { windowMinMs: 1, windowMaxMs: 1 },
  );
  const summaryOf = async (name: string) => {
    const { clients } = await rig.admin("/v1/discovery/sync") as {
      clients: readonly ClientSummary[];
    };
    return clients.find(({ client }) => client === name)!;
  };
  const stuckProbe = await rig.plain();
  const stuck = subscribe(stuckProbe, "stuck");
  const lively = subscribe(await rig.plain(), "lively");
  assertEquals(await portTaken(stuck), "1");
  assertEquals(await portTaken(lively), "1");
  await eventually(
    "both are in step",
    async () => (await summaryOf("stuck")).kinds[0]!.acks === 1,
  );
  stuckProbe.isReading = false;
  let bytes = 0;
  for (let port = 2; port < 2 + CHANGES; port++) {
    rig.source.sink.add({ endpoints: [manyEndpoints(port)] });
    assertEquals(await portTaken(lively), String(port));
    const { keptBytes } = await summaryOf("stuck");
    if (bytes > 0) assertEquals(keptBytes, bytes);
    bytes = keptBytes;
  }
  // One response was begun, and no other is made.
  const { kinds: [kind] } = await summaryOf("stuck");
  assertEquals(kind!.responses, 2);
  assert(bytes > 0, "the client's buffers took a whole response");
  stuckProbe.isReading = true;
  assertEquals(await portTaken(stuck), "2");
  assertEquals(await portTaken(stuck), String(1 + CHANGES));
});

Deno.test("ten thousand endpoints of one service reach a client in one piece", async () => {
  await using rig = await DiscoveryRig.serving({
    services: [serviceOf("web")],
    endpoints: [manyEndpoints(1)],
  });
  const stream = subscribe(await rig.plain(), "client");
  const response = await stream.next();
  assertEquals(new Set(addressesIn(response)).size, ENDPOINTS);
});
