/**
 * Audit logs of processes that are told to end while connections stand: no line
 * stays behind in memory.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
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
