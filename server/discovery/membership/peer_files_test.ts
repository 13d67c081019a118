import { rememberedAgent as agent } from "../../../tests/support/memory/remembered_agent.ts";
import { assertEquals } from "@std/assert";
import { settled } from "../../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { inMemoryFolder } from "../../../tests/support/memory/memory_folder.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import { MemberFiles } from "./member_memory.ts";
import { GONE_MS, PeerFiles, RENEW_MS } from "./peer_files.ts";

/** A look at files. */
const LOOK_MS = 1_000;

/** A server of a directory: what it saves, and what it knows of the others. */
function serverOf(folder: string, id: string, timers: FakeTimers) {
  const files = new MemberFiles(folder, id, new RecordedLog());
  const peers = new PeerFiles(files, timers);
  const heard = { changes: 0 };
  return {
    ...{ files, peers, heard },
    start: () => peers.start(() => heard.changes++),
    states: () =>
      [...peers.current.values()].map(({ id, state }) => [id, state]),
  };
}

/** Lets `ms` pass, a look at a time. */
async function pass(timers: FakeTimers, ms: number): Promise<void> {
  for (let passed = 0; passed <= ms; passed += LOOK_MS) {
    const running = timers.pendingCount;
    timers.advance(LOOK_MS);
    // Each look is some calls to the disk, and then waits for the next one.
    do await new Promise((resolve) => setTimeout(resolve)); while (
      timers.pendingCount < running
    );
    await settled();
  }
}

Deno.test("servers of one directory know each other's agents, and not their own", () =>
  inMemoryFolder(async (folder) => {
    const timers = new FakeTimers();
    const [one, two] = ["s1", "s2"].map((id) => serverOf(folder, id, timers));
    await one!.files.save([agent("a", "ready"), agent("b", "serving")]);
    await two!.files.save([agent("b", "ready"), agent("c", undefined, 5)]);
    one!.start();
    two!.start();
    await pass(timers, RENEW_MS);
    assertEquals(one!.states(), [["b", "ready"], ["c", "unready"]]);
    assertEquals(two!.states(), [["a", "ready"], ["b", "serving"]]);
    const before = two!.heard.changes;
    await pass(timers, 2 * RENEW_MS);
    assertEquals(two!.heard.changes, before, "nothing has changed");
    await one!.files.save([agent("b", "serving")]);
    await pass(timers, LOOK_MS);
    assertEquals(two!.states(), [["b", "serving"]]);
    await Promise.all([one!.peers.stop(), two!.peers.stop()]);
    assertEquals(timers.pendingCount, 0);
  }));

Deno.test("agents of a server that touches its file no more have lost their links", () =>
  inMemoryFolder(async (folder) => {
    const timers = new FakeTimers();
    const [one, two] = ["s1", "s2"].map((id) => serverOf(folder, id, timers));
    await one!.files.save([agent("a", "ready")]);
    one!.start();
    two!.start();
    await pass(timers, RENEW_MS);
    assertEquals(two!.states(), [["a", "ready"]]);
    await one!.peers.stop();
    await pass(timers, GONE_MS);
    assertEquals(two!.states(), [["a", "unready"]]);
    one!.start();
    await pass(timers, RENEW_MS);
    assertEquals(two!.states(), [["a", "ready"]]);
    await Promise.all([one!.peers.stop(), two!.peers.stop()]);
  }));

Deno.test("a file that is spoiled or removed takes no agent away at once", () =>
  inMemoryFolder(async (folder) => {
    const timers = new FakeTimers();
    const [one, two] = ["s1", "s2"].map((id) => serverOf(folder, id, timers));
    await one!.files.save([agent("a", "ready")]);
    one!.start();
    two!.start();
    await pass(timers, RENEW_MS);
    await Deno.writeTextFile(one!.files.path, "{");
    await pass(timers, LOOK_MS);
    assertEquals(two!.states(), [["a", "ready"]]);
    await one!.peers.stop();
    await Deno.remove(one!.files.path);
    await pass(timers, GONE_MS);
    assertEquals(two!.states(), [["a", "unready"]]);
    await two!.peers.stop();
  }));
