/**
 * The log of processes: what each level shows, and what is held back of repeated
 * lines when a process ends.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { closedAddress } from "../support/peers/probe_target.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { patience } from "../support/watch/patience.ts";

/** One connection, and three that fail; @returns what both ends have logged. */
async function logsAt(level: number): Promise<readonly [string, string]> {
  await using tunnel = await TunnelProcesses.start({
    serverFlags: [`--v=${level}`, "--graceful-shutdown-timeout=100ms"],
    agentFlags: [`--v=${level}`, "--drain-timeout=100ms"],
  });
  const { caller, target } = await tunnel.connect("grpc");
  caller.send("hello");
  await target.received(5);
  caller.finish();
  target.finish();
  await Promise.all([caller.closed, target.closed]);
  const closed = { protocol: "tcp", address: closedAddress() };
  for (let turn = 0; turn < 3; turn++) {
    await tunnel.dial("grpc", { target: closed }).catch(() => {});
  }
  const { agent, server } = tunnel;
  for (const { child } of [agent, server]) {
    child.signal("SIGTERM");
    assertEquals((await child.ended).code, 0);
  }
  const [one, other] = [server.child.logFile, agent.child.logFile];
  return [await Deno.readTextFile(one), await Deno.readTextFile(other)];
}

/** How many lines of `log` begin so, behind time and level. */
function count(log: string, pattern: RegExp): number {
  return log.split("\n").filter((line) => pattern.test(line)).length;
}

Deno.test("--v=2 says what failed, once and with a count, and no more of connections", async () => {
  for (const log of await logsAt(2)) {
    assertEquals(count(log, / INFO connection failed: /), 2);
    assertMatch(log, / connection failed: .* \(same, 2 more until \S+Z\)/);
    assertEquals(count(log, / DEBUG /), 0);
  }
});

Deno.test("--v=4 has each connection, --v=10 its packets as well", async () => {
  const ended = / DEBUG connection ended .*end=clean bytesToTarget=5 /;
  for (const log of await logsAt(4)) {
    assertEquals(count(log, ended), 1);
    assertEquals(count(log, / TRACE /), 0);
  }
  for (const log of await logsAt(10)) {
    assertEquals(count(log, ended), 1);
    assertMatch(log, / TRACE DIAL_REQ (?:to|from) (?:agent|server): 0 bytes\n/);
    assertMatch(log, / TRACE DATA (?:to|from) (?:agent|server): 5 bytes\n/);
  }
});

/** Runs a line of shell, with `$0` in it. */
async function shell(script: string, word: string): Promise<void> {
  const args = ["-c", script, word];
  await new Deno.Command("sh", { args, stderr: "null" }).output();
}

Deno.test("a reader of the log that stands still holds nobody up", async () => {
  const pipe = await Deno.makeTempFile();
  await Deno.remove(pipe);
  await shell('mkfifo "$0"', pipe);
  // Who could read, and does not.
  const reader = new Deno.Command("sh", {
    args: ["-c", 'exec sleep 300 0<>"$0"', pipe],
  }).spawn();
  {
    await using tunnel = await TunnelProcesses.start({
      agent: "none",
      serverProgram: [
        ...["sh", "-c", 'f="$1"; shift; exec "$@" 2>"$f"', "sh", pipe],
      ],
      serverFlags: ["--v=4"],
    });
    const { child, healthUrl } = tunnel.server;
    await shell(
      'dd if=/dev/zero of="$0" bs=4096 count=64 oflag=nonblock',
      pipe,
    );
    // Both write lines, and the server answers that it is ready.
    const agent = await tunnel.addAgent("ours");
    await agent.child.stop("SIGKILL");
    const response = await fetch(`${healthUrl}/healthz`, {
      signal: AbortSignal.timeout(patience(5_000)),
    });
    assertEquals([response.status, await response.text()], [200, "ok"]);
    // What it would still say at its end is not waited for either.
    const startMs = performance.now();
    child.signal("SIGTERM");
    assertEquals((await child.ended).code, 0);
    assert(performance.now() - startMs < patience(5_000));
  }
  reader.kill("SIGKILL");
  await reader.status;
  await Deno.remove(pipe);
});
