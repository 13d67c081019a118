/**
 * An audit log on a disk that is full: what is carried does not notice.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { tinyDisk, unmount } from "../support/memory/tiny_disk.ts";
import { eventually, Tunnel } from "../support/rigs/tunnel_harness.ts";

const KIB = 1024;

const disk = await tinyDisk(64);

Deno.test({
  name: "a full disk costs lines, which are counted, and nothing else",
  ignore: disk === undefined,
  async fn() {
    const folder = disk!;
    const path = `${folder}/audit.log`;
    const ballast = `${folder}/ballast`;
    await Deno.writeFile(ballast, new Uint8Array(56 * KIB));
    const bytes = 5;
    {
      await using tunnel = await Tunnel.open({
        server: {
          authorization: { audit: { path, bytesMax: 1e6, filesMax: 2 } },
        },
      });
      await tunnel.link();
      // Some 500 bytes a connection: 8 KiB are soon full.
      const connect = async () => {
        const pair = await tunnel.connect("http-connect");
        pair.caller.send("12345");
        await pair.target.received(bytes);
        pair.caller.finish();
        pair.target.finish();
        await Promise.all([pair.caller.closed, pair.target.closed]);
      };
      for (let n = 0; n < 40; n++) await connect();
      await tunnel.log.until(/^Cannot write the audit log .*No space left/);
      for (let n = 0; n < 10; n++) await connect();
      const problems = tunnel.log.matching(/^Cannot write the audit log/);
      assertEquals(problems.length, 1);
      await Deno.remove(ballast);
      await tunnel.log.until(/can be written again$/);
      const written = "tunnel_server_audit_lines_total";
      await eventually(
        "all lines are in the file",
        async () => await tunnel.metric(written) === 100,
      );
      const dropped = "tunnel_server_audit_dropped_lines_total";
      assertEquals(await tunnel.metric(dropped), 0);
    }
    const lines = (await Deno.readTextFile(path)).trim().split("\n");
    const entries = lines.map((line) => JSON.parse(line));
    assertEquals(entries.length, 100);
    const dials = entries.filter(({ event }) => event === "dial");
    assertEquals(dials.map(({ dial }) => dial), dials.map((_, n) => n + 1));
    assert(
      entries.every(({ bytesToTarget = bytes }) => bytesToTarget === bytes),
    );
    await unmount(folder);
  },
});
