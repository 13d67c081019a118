/**
 * An audit log on a disk that is full: what is carried does not notice.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { tinyDisk, unmount } from "../support/memory/tiny_disk.ts";
import { eventually, Tunnel } from "../support/rigs/tunnel_harness.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";

const CONNECTIONS = 20;

async function linesOf(path: string): Promise<Record<string, unknown>[]> {
  const text = await Deno.readTextFile(path);
  return text.trimEnd().split("\n").map((line) => JSON.parse(line));
}

Deno.test("both ends write their audit logs to the end when they are told to go", async () => {
  const folder = await Deno.makeTempDir({ prefix: "audit-" });
  const [server, agent] = [`${folder}/server.log`, `${folder}/agent.log`];
  {
    await using tunnel = await TunnelProcesses.start({
      serverFlags: [
        `--audit-log=${server}`,
        "--graceful-shutdown-timeout=100ms",
      ],
      agentFlags: [`--audit-log=${agent}`, "--drain-timeout=100ms"],
    });
    for (let count = 0; count < CONNECTIONS; count++) {
      const { caller, target } = await tunnel.connect("grpc");
      caller.send("hello");
      await target.received(5);
    }
    for (const { child } of [tunnel.agent, tunnel.server]) {
      child.signal("SIGTERM");
      assertEquals((await child.ended).code, 0);
    }
  }
  for (const path of [server, agent]) {
    const lines = await linesOf(path);
    const of = (event: string) => lines.filter((line) => line.event === event);
    const [dials, ends] = [of("dial"), of("end")];
    assertEquals([dials.length, ends.length], [CONNECTIONS, CONNECTIONS], path);
    assertEquals(
      new Set(ends.map(({ dial }) => dial)),
      new Set(dials.map(({ dial }) => dial)),
    );
    for (const { bytesToTarget } of ends) assertEquals(bytesToTarget, 5);
  }
  await Deno.remove(folder, { recursive: true });
});

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
