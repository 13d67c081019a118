import { assertEquals } from "@std/assert";
import {
  type ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import {
  dialRequest,
  MemoryFrontend,
} from "../../tests/support/memory/memory_frontend.ts";
import type { ScriptedCaller } from "../../tests/support/watch/packet_script.ts";
import { FIRST_HOLD_MS } from "./first_hold.ts";

/** A connected caller that reads nothing, and its target. */
async function stalled(
  call: (frontend: MemoryFrontend) => ScriptedCaller,
): Promise<{ caller: ScriptedCaller; target: ConduitProbe }> {
  const frontend = new MemoryFrontend();
  const caller = call(frontend);
  caller.isReading = false;
  caller.say(dialRequest);
  await settled();
  const target = frontend.connect();
  frontend.timers.advance(FIRST_HOLD_MS);
  return { caller, target };
}

const CALLERS = {
  Go: (frontend: MemoryFrontend) => frontend.goCaller(),
  ours: (frontend: MemoryFrontend) => frontend.ourCaller(),
};

for (const [name, call] of Object.entries(CALLERS)) {
  Deno.test(`a caller (${name}) that reads nothing is sent a reset all the same`, async () => {
    // What is left of the window decides whether a packet had to be kept in
    // front of the status.
    for (let spareBytes = 0; spareBytes < 128; spareBytes += 3) {
      const { caller, target } = await stalled(call);
      target.send(new Uint8Array(65_535 - 128 + spareBytes));
      await settled();
      target.send(new Uint8Array(1024 * 1024));
      await settled();
      target.reset("gave up");
      await settled();
      assertEquals(caller.received.at(-1), "status ABORTED gave up");
    }
  });
}
