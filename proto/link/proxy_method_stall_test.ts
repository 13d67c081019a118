import { assertEquals } from "@std/assert";
import { ConduitProbe, settled } from "../../tests/support/conduit_probe.ts";
import { ConnectionPair } from "../../tests/support/connection_pair.ts";
import { FakeTimers } from "../../tests/support/fake_timers.ts";
import { MemoryConduit } from "../../tests/support/memory_conduit.ts";
import { ScriptedCaller } from "../../tests/support/packet_script.ts";
import { GrpcRouter } from "../grpc/server.ts";
import { CAPABILITIES_FIELD } from "./capabilities.ts";
import type { DialAnswer } from "./dial_handler.ts";
import { PROXY_PATH } from "./dial_proxy.ts";
import { HOLD_MS, proxyMethod } from "./proxy_method.ts";

/** A connected caller that reads nothing, and its target. */
async function stalled(metadata: Record<string, string>) {
  const timers = new FakeTimers();
  const answers: DialAnswer[] = [];
  const onDial = (_target: unknown, answer: DialAnswer) => {
    answers.push(answer);
    return { cancel: () => {} };
  };
  const router = new GrpcRouter({
    timers,
    methods: { [PROXY_PATH]: proxyMethod({ timers, onDial }) },
  });
  const pair = new ConnectionPair({
    clock: timers,
    onStream: (stream) => router.accept(stream),
  });
  const caller = new ScriptedCaller(pair.client, PROXY_PATH, metadata);
  caller.isReading = false;
  const address = "10.0.0.1:443";
  caller.say({ type: "DIAL_REQ", protocol: "tcp", address, random: 7n });
  await settled();
  const [near, far] = MemoryConduit.pair();
  const target = new ConduitProbe(far);
  answers[0]!.connected(near);
  timers.advance(HOLD_MS);
  return { caller, target };
}

const CALLERS = { Go: {}, ours: { [CAPABILITIES_FIELD]: "half-close" } };

for (const [name, metadata] of Object.entries(CALLERS)) {
  Deno.test(`a caller (${name}) that reads nothing hears of a reset all the same`, async () => {
    // What is left of the window decides whether a packet had to be kept in
    // front of the status.
    for (let spareOctets = 0; spareOctets < 128; spareOctets += 3) {
      const { caller, target } = await stalled(metadata);
      target.send(new Uint8Array(65_535 - 128 + spareOctets));
      await settled();
      target.send(new Uint8Array(1024 * 1024));
      await settled();
      target.reset("gave up");
      await settled();
      assertEquals(caller.heard.at(-1), "status ABORTED gave up");
    }
  });
}
