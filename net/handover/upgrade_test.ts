import { assert, assertEquals, assertMatch } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { openLibc } from "../libc/libc.ts";
import { sharedPoller } from "../poll/poller.ts";
import type { HandoverFields, PacketSocket } from "./packet_socket.ts";
import { Upgrade, type UpgradeOutcome } from "./upgrade.ts";
import { UpgradeRequests } from "./upgrade_requests.ts";
import { eventually } from "../../tests/support/watch/patience.ts";

Deno.test({
  name: "a program that is late is ended, and nothing of it stays",
  ignore: openLibc() === undefined,
  fn: lateProgram,
});

async function lateProgram(): Promise<void> {
  const timers = new FakeTimers();
  const outcomes: UpgradeOutcome[] = [];
  const said = Promise.withResolvers<number>();
  const upgrade = Upgrade.begin({
    // What a script has started keeps its output open.
    start: {
      file: "/bin/sh",
      words: ["-c", "sleep 600 & echo $! >&2; wait"],
      environment: { PATH: Deno.env.get("PATH") ?? "" },
    },
    timeoutMs: 1_000,
    timers,
    log: new RecordedLog(),
    forward: (bytes) => said.resolve(Number(new TextDecoder().decode(bytes))),
    over: (outcome) => void outcomes.push(outcome),
  })!;
  const release = sharedPoller()?.hold(systemTimers);
  const child = await said.promise;
  release?.();
  timers.advance(1_000);
  const [outcome] = outcomes;
  assertEquals(outcome?.kind, "failed");
  assertMatch(JSON.stringify(outcome), /it was not ready within 1 s/);
  // The kernel ends it in its own time, and lets go of it in its own, too.
  for (let turn = 0; turn < 1_000 && timers.pendingCount > 0; turn++) {
    await timers.advance(50);
  }
  assert(!isListed(upgrade.pid));
  await eventually("the child ends", () => !runs(child));
  assertEquals(timers.pendingCount, 0);
}

Deno.test("a process of another container starts no program here by a name", async () => {
  const said: HandoverFields[] = [];
  const requests = new UpgradeRequests({
    command: "proxy",
    words: [],
    environment: () => ({}),
    isBusy: () => true,
    timers: new FakeTimers(),
    log: new RecordedLog(),
    forward() {},
  });
  const ask = async (pid: number, isNamed: boolean) => {
    const socket = {
      peer: { pid, uid: 0 },
      send: (words: HandoverFields) => said.push(words),
    } as unknown as PacketSocket;
    const first = { ask: "upgrade", file: "/bin/sleep" };
    await requests.serve(socket, first, isNamed);
    return String(said.pop()!.no);
  };
  // As the kernel says of one that cannot be seen from here.
  assertMatch(await ask(0, true), /^only processes of its own container/);
  assertMatch(await ask(0, false), /^another process is about to take/);
  if (openLibc() === undefined) return;
  assertMatch(await ask(Deno.pid, true), /^another process is about to take/);
});

/** A zombie does not: its parent has ended, and another one looks some time. */
function runs(pid: number): boolean {
  try {
    const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
    return !/\) [ZX] /.test(stat);
  } catch {
    return false;
  }
}

/** A process that has ended is, too, until its parent has looked. */
function isListed(pid: number): boolean {
  try {
    return Deno.statSync(`/proc/${pid}`).isDirectory;
  } catch {
    return false;
  }
}
