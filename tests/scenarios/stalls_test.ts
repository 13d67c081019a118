/**
 * Callers and targets that stop reading, and what that costs others.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import type { FrontendProtocol } from "../../client/road.ts";
import { Tunnel } from "../support/tunnel_harness.ts";

const PROTOCOLS: readonly FrontendProtocol[] = ["grpc", "http-connect"];
const MIB = 1024 * 1024;

for (const protocol of PROTOCOLS) {
  Deno.test(`streams, ${protocol}: stalled callers and stalled targets slow nobody`, async () => {
    await using tunnel = await Tunnel.linked("streams");
    const downloads = [];
    const uploads = [];
    for (let index = 0; index < 4; index++) {
      const download = await tunnel.connect(protocol);
      download.caller.stopReading();
      download.target.send(new Uint8Array(24 * MIB));
      downloads.push(download);
      const upload = await tunnel.connect(protocol);
      upload.target.stopReading();
      upload.caller.send(new Uint8Array(24 * MIB));
      uploads.push(upload);
    }
    // More than all windows on the way: whoever can stall has stalled.
    const other = await tunnel.connect(protocol);
    other.target.send(new Uint8Array(8 * MIB));
    other.caller.send(new Uint8Array(8 * MIB));
    await other.caller.received(8 * MIB);
    await other.target.received(8 * MIB);
    for (const { caller, target } of [...downloads, ...uploads]) {
      assertEquals([caller.end, target.end], [undefined, undefined]);
    }
    for (const { caller, target } of downloads) {
      assert(caller.receivedOctets < 24 * MIB);
      // Backpressure reaches the target itself.
      assert(target.queuedOctets > 0, "nothing was held back");
    }
    for (const { caller } of uploads) {
      assert(caller.queuedOctets > 0, "nothing was held back");
    }
    // Once they read again, all of it arrives.
    const [download] = downloads;
    download!.caller.startReading();
    await download!.caller.received(24 * MIB);
    const [upload] = uploads;
    upload!.target.startReading();
    await upload!.target.received(24 * MIB);
  });
}
