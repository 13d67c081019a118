import { assert, assertEquals } from "@std/assert";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { ConnectionPair } from "../../tests/support/memory/connection_pair.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { ScriptedCallee } from "../../tests/support/watch/packet_script.ts";
import { ErrorCode } from "../frames/wire_error.ts";
import { GrpcRouter } from "../grpc/server.ts";
import type { Stream } from "../streams/stream.ts";
import { CAPABILITIES_FIELD, PROXY_PATH } from "./capabilities.ts";
import { dialProxy } from "./proxy_client.ts";

/** How a connected conduit ends when its callee resets the stream. */
async function endAfter(code: ErrorCode): Promise<string> {
  const timers = new FakeTimers();
  const callee = new ScriptedCallee();
  const router = new GrpcRouter({
    timers,
    methods: { [PROXY_PATH]: callee.serve },
  });
  let stream!: Stream;
  const pair = new ConnectionPair({
    clock: timers,
    onStream: (accepted) => router.accept(stream = accepted),
  });
  let conduit: ConduitProbe | undefined;
  dialProxy(pair.client, { protocol: "tcp", address: "10.0.0.1:443" }, {
    onConnected: (connected) => conduit = new ConduitProbe(connected),
    onFailed: (error) => {
      throw error;
    },
  }, { authority: "server", timers, dialId: 1 });
  await settled();
  callee.answer({ [CAPABILITIES_FIELD]: "half-close" });
  callee.say({ type: "DIAL_RSP", error: "", connectId: 1, random: 1 });
  await settled();
  assert(conduit !== undefined);
  stream.reset(code);
  return (await conduit.closed).kind;
}

Deno.test("a stream that was reset on purpose is a reset, never a loss", async () => {
  assertEquals(await endAfter(ErrorCode.ENHANCE_YOUR_CALM), "reset");
  assertEquals(await endAfter(ErrorCode.CANCEL), "reset");
  assertEquals(await endAfter(ErrorCode.INTERNAL_ERROR), "reset");
});

Deno.test("a stream that was refused is a loss", async () => {
  assertEquals(await endAfter(ErrorCode.REFUSED_STREAM), "lost");
});
