/**
 * Programs that do not read what a relay passes on to them: what waits for them
 * is bounded, and nobody else waits.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { AdsRelay } from "../../agent/relay/ads_relay.ts";
import { plainUpstream } from "../../net/channel/server_upstream.ts";
import { TYPE_URLS } from "../../proto/xds/resource.ts";
import { DiscoveryRig } from "../support/xds/discovery_rig.ts";
import { RecordedLog } from "../support/watch/recorded_log.ts";
import { serviceOf } from "../support/watch/scripted_source.ts";
import { portOf } from "../support/rigs/tunnel_harness.ts";
import { namesIn, XdsProbe } from "../support/xds/xds_probe.ts";

/** Such that all clusters are several MiB: more than all windows hold. */
const SERVICES = 5_000;

Deno.test("a program that does not read stalls itself, and nobody beside it", async () => {
  const services = Array.from(
    { length: SERVICES },
    (_, index) => serviceOf(`service-${index}-${"x".repeat(200)}`),
  );
  await using rig = await DiscoveryRig.serving({ services });
  const relay = new AdsRelay({
    listen: { hostname: "127.0.0.1", port: 0 },
    upstream: plainUpstream([{ host: "127.0.0.1", port: rig.port }]),
    log: new RecordedLog(),
  });
  try {
    const node = { id: "probe", userAgentName: "envoy" };
    using stalled = await XdsProbe.plain(portOf(relay.address));
    stalled.isReading = false;
    const waiting = stalled.sotw();
    waiting.send({ node, typeUrl: TYPE_URLS.cluster });
    using other = await XdsProbe.plain(portOf(relay.address));
    const stream = other.sotw();
    stream.send({ node, typeUrl: TYPE_URLS.cluster });
    const clusters = await stream.next("cluster");
    assertEquals(namesIn("cluster", clusters).length, SERVICES);
    assertEquals(waiting.responses, []);
    stalled.isReading = true;
    const late = await waiting.next("cluster");
    assertEquals(namesIn("cluster", late).length, SERVICES);
    assert(late.resources!.length === SERVICES);
  } finally {
    relay.close();
  }
});
